"""The sizes from which something else pays: threads, blocks, passes that cost a few calls. All in elements unless it says otherwise.

Behind each stands what was measured; "not measured" says that no figure is known. Whoever changes one measures with benchmarks/nn.py
before and after, and writes down what came out. Sizes at which one algorithm takes over from another stand beside the algorithms.
"""

import os
from typing import Final

# ---- threads ----
# Waking a thread takes 10 us, one pass over this many elements 150 us (ADR 0008).
WIDE: Final = 1 << 19
# Scores: each costs an exponential and two products, so threads pay sooner. Not measured.
WIDE_ATTENTION: Final = 1 << 16
# Elements of patches: below, our threads and those of BLAS disturb each other. Not measured.
WIDE_CONVOLUTION: Final = 1 << 22

# ---- blocks ----
# A few blocks of float32 fit into the second cache, and Python's part is small beside them. Not measured.
BLOCK: Final = 1 << 16
# Kernels with a handful of temporaries, all of which stay in the second cache. Not measured.
KERNEL_BLOCK: Final = 1 << 15
ATTENTION_BLOCK: Final = 1 << 15  # scores
# Columns are summed in strips of so many rows. Not measured.
COLUMN_STRIP: Final = 32
# Patches that are made at a time, and up to which the backward finds them again instead of making them anew. Not measured.
PATCHES: Final = 1 << 19
PATCHES_KEPT: Final = 1 << 19
# Random numbers: a multiple of 32; a block and its temporaries stay in the second cache. Not measured.
RANDOM_BLOCK: Final = 1 << 16
# Pairs of classes that are compared at a time. Not measured.
PAIRS_OF_CLASSES: Final = 1 << 20

# ---- passes: from here on memory, not calls, takes the time ----
# `_core/passes.py`: NumPy's branches cost ten times as much as bit arithmetic, `maximum` with a number three times as much as `clip`;
# below, the calls do.
LARGE: Final = 1 << 12
# Numbers of a matrix that is small: many transposed ones are quicker copied first, and then multiplied.
SMALL_MATRIX: Final = 1 << 10
LARGE_PRODUCT: Final = 1 << 12  # of a matrix; not measured
LARGE_POOL: Final = 1 << 11  # not measured
LARGE_CROSS_ENTROPY: Final = 1 << 13  # not measured

# ---- memory kept for the backward ----
EXPONENTIALS_KEPT: Final = 1 << 23  # of attention; more are computed again. Not measured.

# ---- gathering products of shared weights (ADR 0007: the backward of 50 steps with hidden 512, batch 1 takes 1.5 ms, not 6.6) ----
GATHERED_ROWS: Final = 32  # of a use: from more, a product of its own is quick enough
GATHERED_ROOM: Final = 128  # rows of a block: more do not make the product quicker
GATHERED_SMALL: Final = (
    1 << 15
)  # of weights: half as many rows are as good, and BLAS does not wake a second thread for them
GATHERED_USES: Final = 16  # as the engine counts, by two: uses that are worth a block

# ---- kernels made from formulas ----
# A call of a kernel takes 6 us, one of NumPy 1 us: from here on a formula of a few passes is quicker as a kernel. Scripts with smaller
# arrays never load LLVM. Tests set RETROGRAD_NATIVE_FROM=1 to send everything through kernels.
NATIVE: Final = int(os.environ.get("RETROGRAD_NATIVE_FROM", 1 << 13))
# Formulas that call what NumPy computes one by one: log1p takes 17 ns an element, a kernel 1.
NATIVE_SLOW: Final = min(NATIVE, 1 << 12)
# exp, which NumPy does in all lanes: 2^18 of float32 take it 116 us, a kernel 62, and half the error.
NATIVE_EXP: Final = 2 * NATIVE
# Gradients whose memory does not stay in the processor's cache: the backward of neighbouring nodes is one kernel (Note [Regions] in
# `_graph/regions.py`). Nine nodes of 2 million float32: 4.5 ms of one thread, not 10.
REGION: Final = WIDE if NATIVE > 1 else 1
# Elements of an item: a microsecond of work, beside which what an item costs does not show.
NATIVE_BLOCK: Final = 1 << 12
# Bytes of a result that is written past the cache, so that its memory is not read first. An elementwise chain with its backward on two
# threads, with and without: 78 and 95 ms for results of 40 MB, but 8.5 and 7.2 ms for 8 MB, which the next operation finds in the cache.
# One thread does not wait for the memory's bandwidth, and never does so: results of 40 MB of that chain 27 and 23 ms, of relu 1.7 and 1.5.
STREAMED: Final = 1 << 25
# Elements times operations: about 60 us of work; waking a thread takes 50, finding one that still looks for work 1.
NATIVE_WORK: Final = 1 << 21
# The same for calls that are run together: 100 us, of which a second thread, which may take 50 to wake, saves a quarter.
NATIVE_CALLS: Final = 6 << 20
