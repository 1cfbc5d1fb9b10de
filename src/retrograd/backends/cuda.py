"""torch.backends.cuda: switches that programs set. Here they change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

from .._absent import finder
from ..cuda import _cupy, _number
from ..cuda import is_available as is_built

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Accept the switches for a block: attention has one form here."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)


def _switch(name: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    """Make the functions that set and return the switch for a form of attention."""

    def enable(enabled: bool) -> None:
        """Accept the switch: attention has one form here."""
        _attention[name] = enabled

    def is_enabled() -> bool:
        """Return the switch."""
        return _attention[name]

    enable.__name__ = enable.__qualname__ = f"enable_{name}_sdp"
    is_enabled.__name__ = is_enabled.__qualname__ = f"{name}_sdp_enabled"
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


# ---- what steers CUDA's libraries, which CuPy calls as it likes ----
_fp16_bf16_math = False


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Accept the switch: sums of half precision are taken in float32."""
    global _fp16_bf16_math
    _fp16_bf16_math = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Return the switch."""
    return _fp16_bf16_math


def is_flash_attention_available() -> bool:
    """Tell whether there is a kernel of that kind: attention has one form here."""
    return False


is_ck_sdpa_available = is_flash_attention_available


class SDPAParams(NamedTuple):
    """The arguments of an attention, for the question which kernels could compute it."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Tell whether such a kernel would compute it: there is none."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


class _BlasBackend(IntEnum):
    """Who multiplies matrices."""

    Default, Cublas, Cublaslt, Ck = range(4)


class _LinalgBackend(IntEnum):
    """Who decomposes matrices."""

    Default, Cusolver, Magma = range(3)


class _ROCmFABackend(IntEnum):
    """Who computes attention on AMD's devices."""

    Default, AOTriton, Ck = range(3)


_preferred: dict[type[IntEnum], IntEnum] = {
    _BlasBackend: _BlasBackend.Cublas,
    _LinalgBackend: _LinalgBackend.Default,
    _ROCmFABackend: _ROCmFABackend.Default,
}


def _prefer(kind: type[IntEnum], backend: Any) -> Any:
    if isinstance(backend, str):
        known = {one.name.lower(): one for one in kind}
        if backend not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        backend = known[backend]
    if backend is not None:
        if not isinstance(backend, kind):
            raise RuntimeError("Unknown input value type.")
        _preferred[kind] = backend
    return _preferred[kind]


def preferred_blas_library(backend: Any = None) -> Any:
    """Accept a wish who multiplies matrices, and return it."""
    return _prefer(_BlasBackend, backend)


def preferred_linalg_library(backend: Any = None) -> Any:
    """Accept a wish who decomposes matrices, and return it."""
    return _prefer(_LinalgBackend, backend)


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """Accept a wish who computes attention, and return it."""
    return _prefer(_ROCmFABackend, backend)


def blas_workspace_size(size: int | None = None, backend: Any = None) -> int:
    """Refuse: CuPy keeps cuBLAS's memory to itself."""
    raise NotImplementedError(
        "torch.backends.cuda.blas_workspace_size: CuPy keeps the memory of CUDA's libraries to itself"
    )


cublas_workspace_size = cublaslt_workspace_size = blas_workspace_size


class cuFFTPlanCacheAttrContextProp:  # noqa: N801 - torch's name
    """A number of a cache of plans, which can be read and perhaps set."""

    def __init__(self, getter: Any, setter: Any) -> None:
        self.getter, self.setter = getter, setter

    def __get__(self, obj: Any, objtype: Any) -> Any:
        return self.getter(obj.device_index)

    def __set__(self, obj: Any, val: Any) -> None:
        if isinstance(self.setter, str):
            raise RuntimeError(self.setter)
        self.setter(obj.device_index, val)


def _plans(index: int) -> Any:
    return _cupy().fft.config.get_plan_cache()


class cuFFTPlanCache:  # noqa: N801 - torch's name
    """The plans of Fourier transforms that CuPy keeps for a device."""

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    size = cuFFTPlanCacheAttrContextProp(
        lambda index: _plans(index).get_curr_size(),
        ".size is a read-only property showing the number of plans currently in the cache. To change the cache capacity, set "
        "cufft_plan_cache.max_size.",
    )
    max_size = cuFFTPlanCacheAttrContextProp(
        lambda index: _plans(index).get_size(), lambda index, size: _plans(index).set_size(size)
    )

    def clear(self) -> None:
        """Forget the plans."""
        _plans(self.device_index).clear()


class cuFFTPlanCacheManager(cuFFTPlanCache):  # noqa: N801 - torch's name
    """The plans of the current device; `[device]` has those of another."""

    def __init__(self) -> None:
        super().__init__(-1)

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        _cupy()
        return cuFFTPlanCache(_number(device))


cufft_plan_cache = cuFFTPlanCacheManager()
cuBLASModule = type(matmul)  # noqa: N816 - torch's name


__getattr__ = finder("torch.backends.cuda")

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
]
