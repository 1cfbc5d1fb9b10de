"""torch.utils.cpp_extension: extensions in C++ and CUDA. They need torch's own libraries, which are not here."""

from .._absent import finder

CUDA_HOME = ROCM_HOME = None

__getattr__ = finder("torch.utils.cpp_extension")
__all__ = ["CUDA_HOME", "ROCM_HOME"]
