"""torch.signal.windows."""

from ...tensor._functions.windows import (
    bartlett,
    blackman,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    general_hamming,
    hamming,
    hann,
    kaiser,
    nuttall,
)

__all__ = [name for name in dir() if not name.startswith("_")]
