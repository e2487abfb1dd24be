"""What the parts of peers.py share: a case as the line that `vkgemm bench --json` prints of it."""

import json
import sys


def time_and_print(torch, time_case, make, flops, m, n, k, name, epilogue, kernel,
                   b_bytes=None, **more):
    """Times what make() returns and prints the line; what a case cannot do becomes its
    error. `more`: keys beside the common ones, or in their place."""
    row = {
        "device": torch.cuda.get_device_name(),
        "driver": f"CUDA {torch.version.cuda}, PyTorch {torch.__version__}",
        "m": m, "n": n, "k": k, "type": name, "layout_a": "row_major", "layout_b": "row_major",
        "epilogue": epilogue, "l2": "cold", "kernel": kernel,
    } | more
    print(f"{name} {m}x{n}x{k} {row['layout_a']} {row['layout_b']} {row.get('groups', '')} "
          f"{epilogue}, {kernel} …", file=sys.stderr)
    try:
        row["median_ms"] = time_case(make())
        row["tflops"] = flops / row["median_ms"] * 1e-9
        if b_bytes is not None:
            row["b_gigabytes_per_second"] = b_bytes / row["median_ms"] * 1e-6
    except (RuntimeError, AttributeError) as error:  # out of memory, or it does not compile
        row["error"] = str(error)[:200]
    print(json.dumps(row), flush=True)
