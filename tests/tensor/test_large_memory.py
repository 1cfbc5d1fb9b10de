"""Memory of large arrays, which the C library keeps for the next ones."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import pytest

from retrograd._core import heap

PROGRAM = """
import resource
import numpy as np
import retrograd

def touched(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(size, np.uint8)[::4096] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

size = 48 << 20
touched(size)
print(touched(size))
"""


def _is_told() -> bool:
    """Tell whether this is a machine whose C library is told to keep as much."""
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return False
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // heap.SHARE >= 64 << 20


@pytest.mark.skipif(not _is_told(), reason="another C library, or less than 2 GiB of memory")
@pytest.mark.parametrize("variables", [{}, {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}])
def test_the_next_large_array_finds_memory_that_the_process_has_used(variables: dict[str, Any]) -> None:
    """Unless the user has said otherwise, by glibc's own variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=kept | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) < 10) is not bool(variables)
