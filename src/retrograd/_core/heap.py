"""Memory that the C library keeps for us.

glibc hands the memory of a large array back to the system when the array dies, and the next one pays for every page anew: 0.3 us for
4 KiB, more than a pass over it. How large "large" is, it learns from what programs free: after one block of 32 MiB, which is the most
it will learn, smaller arrays stay in the heap, and up to 64 MiB of the heap are kept. The block is never touched, so it takes no memory.
Other C libraries do not mind.
"""

from contextlib import suppress

import numpy as np

LARGEST_LESSON = (32 << 20) - (8 << 10)  # bytes; with the allocator's own, not above 32 MiB

with suppress(MemoryError):  # a process that may not have so much goes on as it is
    np.empty(LARGEST_LESSON, np.uint8)  # dies at once
