"""Draw from torch's CPU random stream: its generator and its distributions, over plain NumPy arrays.

Every function takes the generator first, returns a fresh C-contiguous array and advances the generator
exactly as far as torch would. Where torch's own result depends on the CPU, its AVX2 kernels are matched.

A torch fill visits a strided tensor in memory order, not in index order, so a caller that fills a
non-contiguous array passes it to `fill_in_memory_order`. `normal` must then be told `contiguous=False`,
because torch leaves its block algorithm for the scalar one.
"""

from .categorical import multinomial
from .continuous import bernoulli, cauchy, exponential, geometric, log_normal, uniform
from .counts import poisson
from .filling import fill_in_memory_order, fill_order
from .gaussian import normal
from .generator import DEFAULT_SEED, Generator, Mt19937
from .integers import randint, random_, randperm
