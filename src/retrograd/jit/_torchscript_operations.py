"""The operations that TorchScript's text calls: aten's on tensors, and Python's on numbers, lists, dictionaries and texts."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .. import _dtypes
from ..tensor import Tensor
from ._marks import Error

# By the numbers that TorchScript has for dtypes.
DTYPES = dict(
    enumerate("uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool".split())  # noqa: SIM905
) | {15: "bfloat16"}


def _of(module: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Return functions of Python by their names, which are TorchScript's, too."""
    return {name: getattr(module, name) for name in names.split()}


NUMBERS: dict[str, Callable[..., Any]] = {
    **_of(operator, "add sub mul floordiv pow neg eq ne lt gt le ge __and__ __or__ __xor__ __lshift__ __rshift__"),
    **_of(builtins, "abs str ord chr hex round hash"),
    **_of(math, "fmod ceil floor sqrt log exp log2 log10 sin cos isnan isinf"),
    "div": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "Int": int,
    "Float": float,
    "Bool": bool,
    "Complex": complex,
}
ALWAYS: dict[str, Callable[..., Any]] = {
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__not__": operator.not_,
    "__range_length": lambda start, stop, step: len(range(start, stop, step)),
    "__derive_index": lambda i, start, step: start + i * step,
    "format": lambda text, *values: text.format(*values),
    "percentFormat": lambda text, *values: text % values,
    "warn": lambda *args, **kwargs: import_module("warnings").warn(str(args[0]), stacklevel=2),
    "device": lambda name: import_module("retrograd").device(name),
}
CONTAINERS: dict[str, Callable[..., Any]] = {
    **_of(builtins, "len list dict sorted any all sum min max"),
    **_of(operator, "__contains__ __getitem__"),
    "_set_item": operator.setitem,
    "Delete": operator.delitem,
    "select": operator.getitem,
    "slice": lambda items, start=None, stop=None, step=1: items[slice(start, stop, step)],
    "copy": lambda items: items.copy(),
    "keys": lambda items: list(items.keys()),
    "values": lambda items: list(items.values()),
    "items": lambda items: list(items.items()),
    "sort": lambda items, reverse=False: items.sort(reverse=reverse),
    "join": lambda text, parts: text.join(parts),
}
METHODS = """append extend insert pop remove clear index count reverse get update setdefault split strip lstrip rstrip lower upper
startswith endswith replace find rfind isdigit isalpha title capitalize splitlines zfill""".split()  # noqa: SIM905
OF_TENSORS: dict[str, Callable[..., Any]] = {
    "size": lambda x, dim=None: list(x.size()) if dim is None else x.size(dim),
    "stride": lambda x, dim=None: list(x.stride()) if dim is None else x.stride(dim),
    "len": len,
    "__getitem__": operator.getitem,
    "Int": int,
    "IntImplicit": int,
    "Float": float,
    "FloatImplicit": float,
    "Bool": bool,
    "ScalarImplicit": lambda x: x.item(),
    "rsub": lambda x, other, alpha=1: other - x * alpha,
    "is_floating_point": lambda x: x.is_floating_point(),
    "numel": lambda x: x.numel(),
    "dim": lambda x: x.dim(),
    "_transformer_encoder_layer_fwd": lambda *args, **kwargs: _encoder_layer(*args, **kwargs),
    "tensor": lambda value, **options: import_module("retrograd").tensor(value, **options),
}


def _encoder_layer(
    x: Any, width: int, heads: int, in_weight: Any, in_bias: Any, out_weight: Any, out_bias: Any, uses_gelu: bool,
    norm_first: bool, eps: float, weight_1: Any, bias_1: Any, weight_2: Any, bias_2: Any, up: Any, up_bias: Any, down: Any,
    down_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Compute a layer of a transformer's encoder, which torch has as one operation."""
    F = import_module("retrograd.nn.functional")  # noqa: N806
    padding, attended = (mask, None) if mask_type == 1 else (None, mask)

    def attention(y: Any) -> Any:
        turned = y.transpose(0, 1)
        made, _ = F.multi_head_attention_forward(
            turned, turned, turned, width, heads, in_weight, in_bias, None, None, False, 0.0, out_weight, out_bias,
            training=False, key_padding_mask=padding, need_weights=False, attn_mask=attended,
        )  # fmt: skip
        return made.transpose(0, 1)

    def forward(y: Any) -> Any:
        return F.linear((F.gelu if uses_gelu else F.relu)(F.linear(y, up, up_bias)), down, down_bias)

    def first(y: Any) -> Any:
        return F.layer_norm(y, (width,), weight_1, bias_1, eps)

    def second(y: Any) -> Any:
        return F.layer_norm(y, (width,), weight_2, bias_2, eps)

    if norm_first:
        x = x + attention(first(x))
        return x + forward(second(x))
    x = first(x + attention(x))
    return second(x + forward(x))


class Operations:
    """What text calls `torch`."""

    def __getattr__(self, name: str) -> Any:
        name = name.removeprefix("private_")
        if name.startswith("__") and name not in ALWAYS and name not in NUMBERS and name not in CONTAINERS:
            raise AttributeError(name)
        made = _operation(name)
        setattr(self, name, made)
        return made


def _operation(name: str) -> Callable[..., Any]:
    if name in ALWAYS:
        return ALWAYS[name]

    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, (list, dict, str, tuple)) and not _is_of_aten(name, first):
            if name in METHODS:
                return getattr(first, name)(*args[1:])
            if name in CONTAINERS:
                return CONTAINERS[name](*args)
        if name in NUMBERS and not any(isinstance(each, Tensor) for each in args):
            return NUMBERS[name](*args)
        return _on_tensors(name, args, _options(kwargs))

    return call


def _is_of_aten(name: str, first: Any) -> bool:
    """Whether a call with a list is one of tensors: `cat`, `stack`, but not `append`."""
    return name in ("sum", "min", "max", "any", "all", "sort") and isinstance(first, Tensor)


def _options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return options as ours: dtypes are numbers in the text, and memory is laid out as it is."""
    made = {name: value for name, value in kwargs.items() if name not in ("layout", "pin_memory", "memory_format")}
    if "dtype" in made:
        made["dtype"] = _dtype(made["dtype"])
    return made


def _dtype(value: Any) -> Any:
    return getattr(_dtypes, DTYPES[value]) if type(value) is int else value


def _on_tensors(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name == "to":
        return _to(*args, **kwargs)
    if name in ("softmax", "log_softmax", "softmin") and len(args) == 3:
        args = (*args[:2], _dtype(args[2]))
    if name.startswith("upsample_"):
        return _resized(name, *args)
    if name in OF_TENSORS:
        return OF_TENSORS[name](*args, **kwargs)
    aten = import_module("retrograd").ops.aten
    try:
        function = getattr(aten, name)
        result = function(*args, **kwargs)
    except (AttributeError, NotImplementedError):
        if not name.endswith("_") or name.startswith("_"):
            raise
        result = args[0].copy_(_on_tensors(name[:-1], args, kwargs))
    return (
        list(result) if type(result) is tuple and name in ("split", "chunk", "unbind", "split_with_sizes") else result
    )


def _resized(name: str, x: Any, size: Any, *rest: Any) -> Any:
    """Do what the forms of `aten::upsample_...` do: to a size, or by factors, in one list or one by one."""
    mode = name.removeprefix("upsample_")[:-2]
    corners, factors = (None, rest) if mode.startswith("nearest") else (rest[0], rest[1:])
    scale = next((each for each in factors if each is not None), None)
    resize = import_module("retrograd.nn.functional").interpolate
    if size is not None:
        return resize(x, size=list(size), mode=mode, align_corners=corners)
    return resize(x, scale_factor=scale, mode=mode, align_corners=corners)


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Do what the forms of `aten::to` do: to a dtype, a device with a dtype, or as another tensor."""
    given = [each for each in args if not isinstance(each, bool) and each is not None]
    copies = len(args) > 1 and [each for each in args if isinstance(each, bool)][1:] == [True]
    made = x
    for each in (*given, kwargs.get("dtype"), kwargs.get("device")):
        if each is not None:
            made = made.to(_dtype(each) if type(each) is int else each)
    return made.clone() if copies and made is x else made


class _Prim:
    """What text calls `ops.prim`: questions about tensors, and errors."""

    def __getattr__(self, name: str) -> Any:
        return PRIM.get(name) or _attribute_or_operation(name)


def _attribute_or_operation(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        found = getattr(args[0], name, None) if len(args) == 1 and isinstance(args[0], Tensor) else None
        return _operation(name)(*args) if found is None or callable(found) else found

    return call


def _raise(message: str, kind: str = "") -> None:
    name = kind.rpartition(".")[2]
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        raise found(message)
    raise Error(message)


PRIM: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda value: import_module("retrograd").tensor(value),
    "RaiseException": _raise,
    "shape": lambda x: list(x.shape),
    **dict.fromkeys(["is_nested", "is_sparse", "is_quantized", "is_mkldnn", "is_xpu", "is_mps"], lambda x: False),
    "type": lambda device: device.type,
    "min": min,
    "max": max,
    "abs": abs,
    "unchecked_unwrap_optional": lambda value: value,
    "ImplicitTensorToNum": lambda x: x.item(),
}


class _Ops:
    """Operations of a library, by the library's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(import_module("retrograd").ops, self._name), name)


class Interpreter:
    """What text calls `ops`."""

    def __getattr__(self, name: str) -> Any:
        made: Any = _Prim() if name == "prim" else (Operations() if name == "aten" else _Ops(name))
        setattr(self, name, made)
        return made
