"""Name the places tensors live in, and the layouts they have there."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NoReturn, Self, TypeVar

_DEVICE_TYPES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
    "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_DEVICE_STRING: Final = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")
_LARGEST_INT: Final = (1 << 31) - 1
_SIGNATURES: Final = " * (torch.device device)\n{} * (str type, int index = -1)\n"


# ---- the devices of blocks ----
_entered: ContextVar[tuple[device, ...]] = ContextVar("retrograd_entered_devices", default=())


# Both in C: see Note [Leaving a mode cannot be interrupted] in `_modes.py`. A step reads the devices and writes all but the last.
class _Enter:
    __getitem__ = _entered.set


class _Steps(map):  # type: ignore[type-arg]
    next = property(next)


_enter: Any = _Enter()
_steps = _Steps(_entered.set, map(operator.itemgetter(slice(None, -1)), iter(_entered.get, None)))
_exit: Callable[..., Any] = partial("{0.next.var.name:.0}".format, _steps)


class device:  # noqa: N801
    """Name a kind of device and, optionally, which one of its kind.

    Args:
        *args: "cpu", "cuda" or "cuda:0"; or the kind and the number
        **kwargs: `type` and `index`, by name

    Example:
        >>> torch.device("cuda:1").index, torch.ones(1).device
        (1, device(type='cpu'))
    """

    __module__ = "retrograd"

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Read a device from a string, a kind and an index, a number, or another device."""
        if not kwargs and len(args) == 1 and isinstance(args[0], device):
            kind, index = args[0].type, args[0].index
        else:
            kind, index = _parse_arguments(args, kwargs)
        made = object.__new__(cls)
        object.__setattr__(made, "type", kind)
        object.__setattr__(made, "index", index)
        return made

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse subclasses."""
        raise TypeError("type 'torch.device' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse changes."""
        if name in device.__slots__:
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __repr__(self) -> str:
        """Return the call that makes this device."""
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        """Return the string that names this device."""
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        """Compare kind and index; no index differs from every index."""
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        """Hash kind and index."""
        return hash((self.type, self.index))

    def __lt__(self, other: object) -> bool:
        """Refuse to order devices."""
        raise TypeError("comparison not implemented")

    __le__ = __gt__ = __ge__ = __lt__

    def __reduce__(self) -> tuple[Callable[..., device], tuple[Any, ...]]:
        """Pickle as the call that makes this device."""
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self) -> Self:
        """Make this the device of new tensors until the block ends."""
        entered = (*_entered.get(), self)
        _enter[entered]
        return self

    __exit__ = staticmethod(_exit)  # returns to the device of the enclosing block


def _parse_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int | None]:
    if len(args) + len(kwargs) == 1 and "index" not in kwargs:
        return _parse_one(args, kwargs)
    if len(args) > 2 or ("type" not in kwargs and not args):
        raise _no_such_call(args, kwargs)
    named = {**kwargs, **dict(zip(("type", "index"), args, strict=False))}
    kind, index = named.pop("type"), named.pop("index", None)
    if not isinstance(kind, (str, bytes)):
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_type_name(kind)}")
    if index is not None and (isinstance(index, bool) or not hasattr(index, "__index__")):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {_type_name(index)}")
    if named:
        raise TypeError(f"device() got an unexpected keyword argument '{next(iter(named))}'")
    kind, string_index = _parse_string(kind)
    if string_index is not None:
        raise RuntimeError(
            f"type (string) must not include an index because index was passed explicitly: {kind}:{string_index}"
        )
    return kind, None if index is None else _check_index(operator.index(index))


def _parse_one(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int | None]:
    name, value = ("device", args[0]) if args else next(iter(kwargs.items()))
    if name not in ("type", "device"):
        raise _no_such_call(args, kwargs)
    if isinstance(value, (str, bytes)):
        return _parse_string(value)
    if name == "device" and isinstance(value, device):
        return value.type, value.index
    if name == "device" and isinstance(value, int) and not isinstance(value, bool):
        index = _check_index(value)
        if _accelerator is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return _accelerator, index
    raise _no_such_call(args, kwargs)


def _parse_string(text: str | bytes) -> tuple[str, int | None]:
    if isinstance(text, bytes):
        text = text.decode()
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _DEVICE_STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, digits = match.groups()
    if kind not in _DEVICE_TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {kind}")
    if digits is None:
        return kind, None
    if int(digits) > _LARGEST_INT:
        raise RuntimeError(f"Could not parse device index '{digits}' in device string '{text}'")
    return kind, int(digits)


def _check_index(index: int) -> int:
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    return index


def _no_such_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    given = ", ".join(map(_type_name, args))
    reason = ""
    if kwargs:
        given += (", " if args else "") + "".join(f"{name}={_type_name(kwargs[name])}, " for name in kwargs)
        reason = f"      didn't match because some of the keywords were incorrect: {', '.join(kwargs)}\n"
    elif len(args) == 1:
        reason = f"      didn't match because some of the arguments have invalid types: (!{given}!)\n"
    return TypeError(
        f"device() received an invalid combination of arguments - got ({given}), but expected one of:\n"
        + _SIGNATURES.format(reason)
    )


def _type_name(value: object) -> str:
    return "torch.device" if isinstance(value, device) else type(value).__name__


# --- defaults ----------------------------------------------------------------------------------------------

_accelerator: str | None = None
_CPU: Final = device("cpu")
_base: ContextVar[device | None] = ContextVar("retrograd_default_device", default=None)


def register_accelerator(kind: str | None) -> None:
    """Say which kind of device a bare number stands for."""
    global _accelerator
    _accelerator = kind


def set_default_device(value: device | str | int | None) -> None:
    """Set the device of new tensors outside any `with device` block of this thread."""
    _base.set(None if value is None else device(value))


def chosen_device() -> device | None:
    """Return the device that a block or `set_default_device` has chosen, if one has."""
    entered = _entered.get()
    return entered[-1] if entered else _base.get()


def get_default_device() -> device:
    """Return the device of new tensors.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    current = chosen_device()
    if current is None:
        return _CPU
    if current.index is None and current.type not in ("cpu", "meta"):
        return device(current.type, 0)
    return current


# --- layouts -----------------------------------------------------------------------------------------------


class _Named:
    """Share what `layout` and `memory_format` have in common."""

    __slots__ = ("name",)

    name: str

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse: the only instances are this module's singletons."""
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        """Return the name as user code writes it."""
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        """Pickle and copy to the one object that the package has under this name."""
        return self.name


class layout(_Named):  # noqa: N801
    """Say how a tensor's elements are stored."""

    __module__ = "retrograd"
    __slots__ = ()


class memory_format(_Named):  # noqa: N801
    """Say in which order of dimensions a tensor's elements are stored."""

    __module__ = "retrograd"
    __slots__ = ()


_Singleton = TypeVar("_Singleton", bound=_Named)


def _make(cls: type[_Singleton], name: str) -> _Singleton:
    made = object.__new__(cls)
    made.name = name
    return made


strided = _make(layout, "strided")
# names only, for programs that ask what a tensor is, and for the errors of functions that refuse them
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = OTHER_LAYOUTS = tuple(
    _make(layout, name) for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
)
contiguous_format = _make(memory_format, "contiguous_format")
preserve_format = _make(memory_format, "preserve_format")
channels_last = _make(memory_format, "channels_last")
channels_last_3d = _make(memory_format, "channels_last_3d")


def _get_layout(name: str) -> layout:
    """Return the layout that is shown as `name`: files call this by torch's name."""
    return {repr(each): each for each in (strided, *OTHER_LAYOUTS)}[name]
