"""A second Python, started so that it finds the same Vulkan."""

import os
import sys

PYTHON = [*os.environ.get("VKGEMM_LAUNCHER", "").split(), sys.executable]
