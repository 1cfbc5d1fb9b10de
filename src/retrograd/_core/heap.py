"""Memory that the C library keeps for us.

glibc hands the memory of a large array back to the system when the array dies, and the next one pays for every page anew: 0.3 us for
4 KiB, more than a pass over it. What "large" is, it learns from what programs free, but 32 MiB is the most that it will learn; so it is
told. Arrays of up to `large` bytes then stay in the heap, and up to twice as many bytes of the heap are kept while nobody uses them. On
ten million float32 a softmax takes half the time. Whoever has set glibc's own variables is left alone, and so are other C libraries.
"""

import ctypes
import os
from typing import Final

MOST: Final = 128 << 20
SHARE: Final = 32  # of the machine's memory
# parameters of glibc's mallopt
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3


def keep_large_arrays() -> None:
    """Tell glibc how large an array is whose memory goes back to the system at once."""
    if any(name in os.environ for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")):
        return
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries may give mallopt's parameters another meaning
        large = min(MOST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE)
    except (AttributeError, OSError, TypeError, ValueError):  # no glibc, or no word about the machine
        return
    library.mallopt(MMAP_THRESHOLD, large)
    library.mallopt(TRIM_THRESHOLD, 2 * large)


keep_large_arrays()
