"""Functions that torch makes of others before autograd sees them, made of the same ones: shapes, indexing, conversions, arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._core.primitive import parameters_of
from .._modes import current_mode
from ..nn.modules.module import _parse_to as parsed_to
from ..tensor import _base
from ..tensor._functions.casting import PYTHON_TYPES
from ..tensor._functions.shape import _moved as moved_order
from ..tensor._functions.shape import fitted
from ..tensor._storage.storages import CONVERSIONS
from . import flat_tensors, hidden

torch: Any = import_module(__package__.partition(".")[0])
F: Any = torch.nn.functional
aten: Any = import_module(f"{torch.__name__}.ops").aten
Tensor: Any = torch.Tensor
FOUND: dict[str, Callable[..., Any]] = {}
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def composite(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say for which functions a decomposition is."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names or (function.__name__,):
            FOUND[name] = function
        return function

    return register


def layer(name: str, *reads: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say for which function a decomposition is that gets its parameters by name, of those of the public function.

    It takes no call that gives any other parameter a value but its default.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        function.reads = reads or parameters_of(function)  # type: ignore[attr-defined]
        FOUND[name] = function
        return function

    return register


def pair(value: Any, count: int = 2) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value) * count if len(value) == 1 else list(value)
    return [value] * count


# ---- products ----
@composite()
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if bias is None:
        return torch.matmul(input, weight.t())
    if input.dim() == 2:
        return torch.addmm(bias, input, weight.t())
    if input.dim() == 3 and input.is_contiguous():
        made = torch.addmm(bias, input.view(math.prod(input.shape[:-1]), input.shape[-1]), weight.t())
        return made.view(*input.shape[:-1], made.shape[-1])
    return torch.matmul(input, weight.t()) + bias


@composite("matmul", "__matmul__", "linalg_matmul")
def matmul(input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return NotImplemented
    left, right = input.dim(), other.dim()
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if left == 1 and right == 1:
        return torch.dot(input, other)
    if left == 2 and right == 1:
        return torch.mv(input, other)
    if left == 1 and right == 2:
        made = torch.mm(input.unsqueeze(0), other)
        return made.squeeze(0) if made.requires_grad or current_mode().transforms else made.squeeze_(0)
    if left == 2 and right == 2:
        return torch.mm(input, other)
    if right <= 2 and left >= 3:
        sizes = input.shape[:-1]
        folded = input.reshape(-1, input.shape[-1])
        if right == 1:
            return folded.mv(other).view(sizes)
        return aten._unsafe_view.default(folded.mm(other), [*sizes, other.shape[-1]])
    if left == 2:  # and more on the right: the other way round
        return matmul(other.mT, input.mT).mT
    column = right == 1
    batch = torch.broadcast_shapes(input.shape[:-2] if left > 1 else (), other.shape[:-2])
    first = input.unsqueeze(0) if left == 1 else input
    second = other.unsqueeze(1) if column else other
    n, m, p = first.shape[-2], first.shape[-1], second.shape[-1]
    first = first.expand([*batch, n, m]).reshape(-1, n, m)
    second = second.expand([*batch, m, p]).reshape(-1, m, p)
    sizes = [*batch, *([] if left == 1 else [n]), *([] if column else [p])]
    return aten._unsafe_view.default(first.bmm(second), sizes)


FOUND["__rmatmul__"] = lambda self, other: matmul(other, self)
FOUND["outer"] = FOUND["ger"] = lambda input, vec2: input.reshape(input.shape[0], 1) * vec2


# ---- shapes ----
@composite()
def reshape(input: Any, *shape: Any) -> Any:
    sizes = list(fitted(shape, input.numel()))
    with hidden():
        try:
            input.detach().view(sizes) if type(input) is Tensor else None
            can_view = _viewable(input, sizes)
        except RuntimeError:
            can_view = False
    if can_view:
        return input.view(sizes)
    return aten._unsafe_view.default(input.clone(memory_format=torch.contiguous_format), sizes)


def _viewable(input: Any, sizes: list[int]) -> bool:
    from .._core.meta_arrays import with_strides

    if type(input) is Tensor:
        return True
    shadow = with_strides(input.shape, input.stride(), input._array.dtype)
    return shadow.reshape(tuple(sizes)).base is not None


@composite()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    rank = input.dim()
    if rank == 0:
        return input.reshape(1)
    start, end = start_dim % rank, end_dim % rank
    if start == end:
        return input
    sizes = list(input.shape)
    return input.reshape([*sizes[:start], math.prod(sizes[start : end + 1]), *sizes[end + 1 :]])


@composite()
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    dim %= input.dim()
    try:
        parts = fitted((sizes,), input.shape[dim])
    except RuntimeError:
        return NotImplemented  # it is refused
    return input.view([*input.shape[:dim], *parts, *input.shape[dim + 1 :]])


FOUND["ravel"] = lambda self: self.contiguous().view(-1)
FOUND["view_as"] = lambda self, other: self.view(other.shape)
FOUND["reshape_as"] = lambda self, other: self.reshape(other.shape)
FOUND["expand_as"] = lambda self, other: self.expand(other.shape)
FOUND["type_as"] = lambda self, other: self.to(other.dtype)
FOUND["narrow"] = lambda input, dim, start, length: aten.slice.Tensor(input, dim, int(start), int(start) + length)
FOUND["conj"] = lambda input: aten._conj.default(input) if input.is_complex() else input
FOUND["diag"] = lambda input, diagonal=0: (
    torch.diag_embed(input, diagonal) if input.dim() == 1 else torch.diagonal_copy(input, diagonal)
)


@composite()
def real(input: Any) -> Any:
    if not input.is_complex():
        return input
    return torch.view_as_real(input.conj() if input.is_conj() else input).select(-1, 0)


@composite()
def imag(input: Any) -> Any:
    if not input.is_complex():
        return NotImplemented  # it is refused
    if input.is_conj():
        return torch._neg_view(torch.view_as_real(input.conj()).select(-1, 1))
    return torch.view_as_real(input).select(-1, 1)


FOUND["adjoint"] = lambda self: self.transpose(-2, -1).conj()


@composite("movedim", "moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    moves = [[one] if isinstance(one, int) else list(one) for one in (source, destination)]
    return input.permute(moved_order(input.dim(), *moves))


def _listed(tensors: Any) -> list[Any]:
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


@composite()
def broadcast_tensors(*tensors: Any) -> Any:
    given = _listed(tensors)
    shape = torch.broadcast_shapes(*[one.shape for one in given])
    return tuple(one if one.shape == shape else one.expand(shape) for one in given)


@composite()
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    given = _listed(tensors)
    if indexing != "ij" or any(one.dim() > 1 for one in given):
        return NotImplemented
    shape = [one.numel() for one in given]
    return tuple(
        one.view([-1 if k == n else 1 for n in range(len(given))]).expand(shape) for k, one in enumerate(given)
    )


@composite()
def cartesian_prod(*tensors: Any) -> Any:
    given = _listed(tensors)
    if len(given) == 1:
        return given[0].view(given[0].shape)
    return torch.stack([one.flatten() for one in torch.meshgrid(given, indexing="ij")], 1)


FOUND["chunk"] = lambda input, chunks, dim=0: input.split(-(-input.shape[dim] // chunks), dim)
FOUND["__iter__"] = lambda self: iter(self.unbind(0))


# ---- indexing ----
@composite("__getitem__")
def getitem(self: Any, index: Any) -> Any:
    result, tensors = _by_views(self, index)
    return result if tensors is None else aten.index.Tensor(result, tensors)


def _by_views(self: Any, index: Any) -> tuple[Any, Any]:
    """Take what views give of an index; and the tensors that are left, None if there are none."""
    parts = list(index) if isinstance(index, tuple) else [index]
    used = sum(_dims_of(one) for one in parts)
    if any(one is Ellipsis for one in parts):
        at = next(k for k, one in enumerate(parts) if one is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.dim() - used)
        parts = [slice(None) if one is Ellipsis else one for one in parts]  # any further one
    tensors: list[Any] = []
    dim, result = 0, self
    for one in parts:
        if one is None:
            result = result.unsqueeze(dim)
            tensors.append(None)
            dim += 1
        elif isinstance(one, bool):
            result = result.unsqueeze(dim)
            tensors.append(torch.tensor([0] if one else [], dtype=torch.int64))
            dim += 1
        elif isinstance(one, slice):
            if one != slice(None):
                size = result.shape[dim]
                start, stop = (None if x is None else int(x) for x in (one.start, one.stop))
                start = 0 if start is None else start
                stop = 9223372036854775807 if stop is None else stop
                if not (start == 0 and stop >= size and one.step in (None, 1)):
                    step = () if one.step in (None, 1) else (int(one.step),)
                    result = aten.slice.Tensor(result, dim, start, stop, *step)
            tensors.append(None)
            dim += 1
        elif isinstance(one, Tensor) and (one.dim() or one.dtype == torch.bool):
            tensors.append(one)
            dim += one.dim() if one.dtype in (torch.bool, torch.uint8) else 1
        elif isinstance(one, (list, tuple)) or (hasattr(one, "__array__") and not isinstance(one, Tensor) and one.ndim):
            one = torch.tensor(one)
            tensors.append(one)
            dim += one.dim() if one.dtype == torch.bool else 1
        else:
            number = int(one)
            size = result.shape[dim] if dim < result.dim() else 0
            if dim >= result.dim():
                raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of bounds for dimension {dim} with size {size}")
            result = result.select(dim, number)
    while tensors and tensors[-1] is None:
        tensors.pop()
    if not any(one is not None for one in tensors):
        return (result if result is not self or index in ((), Ellipsis) else aten.alias.default(result)), None
    return result, tensors


def _dims_of(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8):
        return int(part.dim())
    return 1


@composite("__setitem__")
def setitem(self: Any, index: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        with hidden():
            value = torch.tensor(value, dtype=self.dtype, device=self.device)
        value = fresh(value) if current_mode().dispatch_modes else value
    target, tensors = _by_views(self, index)
    if tensors is not None:
        if value.dtype != self.dtype:
            value = value.to(self.dtype)
        aten.index_put_.default(target, tensors, value)
    elif not value.dim() and target.dim() and type(self) not in _base.dispatch_types:
        target.fill_(value)
    else:
        while value.dim() > target.dim() and value.shape[0] == 1:
            value = value.squeeze(0)
        target.copy_(value)
    return None


@composite("take_along_dim")
def take_along_dim(input: Any, indices: Any, dim: Any = None) -> Any:
    if dim is None:
        return NotImplemented
    batch = torch.broadcast_shapes(
        [n if k != dim % input.dim() else 1 for k, n in enumerate(input.shape)],
        [n if k != dim % input.dim() else 1 for k, n in enumerate(indices.shape)],
    )
    own, wanted = list(batch), list(batch)
    own[dim], wanted[dim] = input.shape[dim], indices.shape[dim]
    spread = input.expand(own)
    return spread.gather(dim, indices.expand(wanted).remainder(input.shape[dim]))


# ---- conversions ----
@composite("to")
def to(self: Any, *args: Any, copy: bool = False, **kwargs: Any) -> Any:
    args = tuple(PYTHON_TYPES[one] if isinstance(one, type) else one for one in args)
    device, dtype, non_blocking, memory_format = parsed_to(args, kwargs)
    flags = [one for one in args if isinstance(one, bool)]
    non_blocking, copy = (*flags, *(non_blocking, copy)[len(flags) :])
    same = (dtype is None or dtype == self.dtype) and (device is None or _same_device(device, self.device))
    if same and not copy and (memory_format is None or self.is_contiguous(memory_format=memory_format)):
        return self
    return aten._to_copy.default(
        self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format
    )


def _same_device(one: Any, other: Any) -> bool:
    return one.type == other.type and (one.index is None or other.index is None or one.index == other.index)


for _name, _dtype in (CONVERSIONS | {"cfloat": "complex64", "cdouble": "complex128"}).items():
    FOUND[_name] = lambda self, _dtype=_dtype, memory_format=None: self.to(getattr(torch, _dtype))
FOUND["cpu"] = lambda self, memory_format=None: self.to("cpu")


@composite("contiguous")
def contiguous(self: Any, memory_format: Any = None) -> Any:
    if self.is_contiguous() if memory_format is None else self.is_contiguous(memory_format=memory_format):
        return self
    return self.clone(memory_format=torch.contiguous_format if memory_format is None else memory_format)


FOUND["item"] = lambda self: _number(self, "item")
for _name, _kind in {"float": float, "int": int, "index": int, "bool": bool, "complex": complex}.items():
    FOUND[f"__{_name}__"] = lambda self, _name=f"__{_name}__", _kind=_kind: _kind(_number(self, _name))
FOUND["is_nonzero"] = FOUND["__bool__"]


def _number(self: Any, method: str) -> Any:
    """Return the only element; a plain tensor says what is wrong where there are others."""
    if self.numel() != 1:
        with hidden():
            return getattr(torch.zeros((), dtype=self.dtype).expand(self.shape), method)()
    return aten._local_scalar_dense.default(self)


# They are operations of their own.
FOUND |= dict.fromkeys(
    ("as_tensor", "new_tensor", "asarray", "__ror__", "__rand__", "__rxor__"), lambda *args, **kwargs: NotImplemented
)


def fresh(made: Any) -> Any:
    """Show a tensor that was made of Python's data."""
    return aten.lift_fresh.default(made)


def _made_of_data(name: str) -> Any:
    def made(data: Any, **kwargs: Any) -> Any:
        if hasattr(getattr(data, "_array", None), "place"):
            return torch.tensor.raw(data, **kwargs)
        with hidden():
            result = getattr(torch, name)(_with_numbers(data), **kwargs)
        return fresh(result)

    return made


def _with_numbers(data: Any) -> Any:
    """Put the numbers of wrappers in their place in lists."""
    if isinstance(data, (list, tuple)) and flat_tensors(data):
        return [_with_numbers(one) for one in data]
    if hasattr(getattr(data, "_array", None), "place"):
        return _with_numbers([*data.unbind()]) if data.dim() else data.item()
    return data


FOUND["tensor"], FOUND["from_numpy"] = _made_of_data("tensor"), _made_of_data("from_numpy")


# ---- arithmetic under other names ----
FOUND["__rsub__"] = lambda self, other: torch.rsub(self, other)
FOUND["__rtruediv__"] = FOUND["__rdiv__"] = lambda self, other: self.reciprocal() * other
FOUND["__rpow__"] = lambda self, other: torch.pow(other, self)
FOUND["__rfloordiv__"] = lambda self, other: torch.floor_divide(other, self)
FOUND["__rmod__"] = lambda self, other: torch.remainder(other, self)
FOUND["__pos__"] = FOUND["positive"] = lambda self: self
FOUND["square"] = lambda input: input.pow(2)
FOUND["__ipow__"] = lambda self, other: self.pow_(other)
FOUND["square_"] = lambda self: self.pow_(2)


@composite("norm")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if p in ("fro", None):
        p = 2
    if isinstance(p, str):
        return NotImplemented
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return torch.linalg.vector_norm(input, p, dims, keepdim, **({} if dtype is None else {"dtype": dtype}))


@composite("linalg_norm")
def linalg_norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: N803
    if ord is None or (A.dim() == 1 or isinstance(dim, int)):
        return torch.linalg.vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    return NotImplemented


def _by_correction(name: str) -> Callable[..., Any]:
    def decomposed(input: Any, *args: Any, **kwargs: Any) -> Any:
        op = getattr(aten, name).correction
        if args and isinstance(args[0], bool):
            kwargs["unbiased"], args = args[0], args[1:]
        dim = kwargs.pop("dim", args[0] if args else None)
        args = args[1:]
        if args:
            kwargs["unbiased" if isinstance(args[0], bool) else "correction"] = args[0]
        if "unbiased" in kwargs:
            kwargs["correction"] = int(kwargs.pop("unbiased"))
        elif dim is not None:
            kwargs.setdefault("correction", 1)
        dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
        options = {key: value for key, value in kwargs.items() if value is not None and value is not False}
        return op(input, *([] if dims is None else [dims]), **options)

    return decomposed


for _name in ("var", "std", "var_mean", "std_mean"):
    FOUND[_name] = _by_correction(_name)


def _without_memory(name: str, got: str = ".") -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(self._array, "place"):
            raise RuntimeError(f".{name}() is not supported for tensor subclasses{got.format(type(self).__name__)}")
        return NotImplemented

    return refuse


for _name in ("numpy", "__array__", "__dlpack__"):
    FOUND[_name] = _without_memory(_name)
FOUND["tolist"] = _without_memory("tolist", ", got {}")
