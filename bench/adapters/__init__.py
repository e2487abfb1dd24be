"""Operators for benchmark suites.  With bench/ on PYTHONPATH: adapters.tritonbench."""
