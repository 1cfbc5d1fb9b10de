"""What few programs ask of CUDA: handles and errors of its library, NVIDIA's management library, old types. CuPy has most of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from .. import _dtypes
from . import _cupy, _number, device, is_available

has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Call a function now, or never: CuPy begins by itself where there is a device."""
    if is_available():
        callable()


# ---- the library's handles and errors ----
class cudaStatus:  # noqa: N801 - torch's name
    """What the CUDA library answers: 0 for success."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """An error that the CUDA library returned as a number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_cupy().cuda.runtime.getErrorString(code)} ({code})")


class DeferredCudaCallError(Exception):
    """An error of a call that waited until CUDA was used."""


def check_error(res: int) -> None:
    """Raise an error unless the CUDA library has answered 0."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def current_blas_handle() -> int:
    """Return the address of what cuBLAS works with."""
    return int(_cupy().cuda.device.get_cublas_handle())


def current_solver_handle() -> int:
    """Return the address of what cuSOLVER works with."""
    return int(_cupy().cuda.device.get_cusolver_handle())


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Tell whether a device reads the memory of another."""
    return bool(_cupy().cuda.runtime.deviceCanAccessPeer(_number(device), _number(peer_device)))


def ipc_collect() -> None:
    """Do nothing: memory is not lent to other processes."""
    _cupy()


def get_gencode_flags() -> str:
    """Return the flags a compiler would need: nothing, as nothing is compiled ahead."""
    return ""


def is_tf32_supported() -> bool:
    """Tell whether float32 could be multiplied with fewer bits: CuPy does so only on request."""
    return False


_sync_debug_mode = 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept torch's setting for reporting waits; none is reported."""
    global _sync_debug_mode
    _cupy()
    known = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in known:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = known[debug_mode]
    _sync_debug_mode = debug_mode


def get_sync_debug_mode() -> int:
    """Return the wish."""
    _cupy()
    return _sync_debug_mode


class device_of(device):  # noqa: N801 - torch's name
    """Make the device of a tensor the current one for a block; one on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        self._on_device = bool(obj.is_cuda)
        if self._on_device:
            super().__init__(obj.get_device())

    def __enter__(self) -> None:
        if self._on_device:
            super().__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._on_device:
            super().__exit__(*exc)


# ---- NVIDIA's management library ----
def _managed(device: Any) -> tuple[Any, Any]:
    """Return the library and its handle of a device."""
    try:
        import pynvml  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from error
    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByIndex(_number(device))


def clock_rate(device: Any = None) -> int:
    """Return the clock of the processors in megahertz."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetClockInfo(handle, 1))


def device_memory_used(device: Any = None) -> int:
    """Return the bytes that all programs hold."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetMemoryInfo(handle).used)


def memory_usage(device: Any = None) -> int:
    """Return the share of time in which memory was read or written, in percent."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def utilization(device: Any = None) -> int:
    """Return the share of time in which anything was computed, in percent."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def power_draw(device: Any = None) -> int:
    """Return the power in milliwatts."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def temperature(device: Any = None) -> int:
    """Return the temperature in degrees."""
    library, handle = _managed(device)
    return int(library.nvmlDeviceGetTemperature(handle, 0))


# ---- old types ----
class _OldType(type):
    """The class of `torch.cuda.FloatTensor` and the like: an instance is any tensor, or storage, of the dtype on a GPU."""

    dtype: _dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = "TypedStorage" if cls.__name__.endswith("Storage") else "Tensor"
        is_one = any(one.__name__ == kind for one in type(instance).__mro__)
        return is_one and instance.dtype is cls.dtype and bool(instance.is_cuda)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = cls.__name__
        if not is_available():
            _refuse(name)
        own = import_module(__name__.partition(".")[0])
        return getattr(own, name)(*args, **kwargs).cuda()

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


def _refuse(name: str) -> NoReturn:
    if name.endswith("Storage"):
        _cupy()  # says that there is no device
    raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")


_OLD_DTYPES = {"Half": "float16", "BFloat16": "bfloat16", "Float": "float32", "Double": "float64"}
_OLD_DTYPES |= {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool"}
_OLD_STORAGES = _OLD_DTYPES | {"ComplexFloat": "complex64", "ComplexDouble": "complex128"}


def _old_type(name: str, dtype: str) -> Any:
    return _OldType(name, (), {"dtype": _dtypes.dtype_named(dtype), "is_cuda": True, "__module__": "retrograd.cuda"})


globals().update({f"{name}Tensor": _old_type(f"{name}Tensor", dtype) for name, dtype in _OLD_DTYPES.items()})
globals().update({f"{name}Storage": _old_type(f"{name}Storage", dtype) for name, dtype in _OLD_STORAGES.items()})
