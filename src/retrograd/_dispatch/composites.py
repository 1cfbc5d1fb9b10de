"""Functions that torch makes of others before autograd sees them, made of the same ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._core.primitive import parameters_of
from .._modes import current_mode
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


def layer(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say for which function a decomposition is that gets its parameters by name, of those of the public function.

    It takes no call that gives any other parameter a value but its default.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        function.reads = parameters_of(function)  # type: ignore[attr-defined]
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


@composite("__rmatmul__")
def rmatmul(self: Any, other: Any) -> Any:
    return matmul(other, self)


@composite("outer", "ger")
def outer(input: Any, vec2: Any) -> Any:
    return input.reshape(input.shape[0], 1) * vec2


# ---- shapes ----
@composite()
def reshape(input: Any, *shape: Any) -> Any:
    sizes = _shape_of(input, shape)
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


def _shape_of(input: Any, shape: Any) -> list[int]:
    sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    sizes = [int(n) for n in sizes]
    if -1 in sizes:
        known = -math.prod(sizes)
        sizes[sizes.index(-1)] = input.numel() // known if known else 0
    if math.prod(sizes) != input.numel():
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {input.numel()}")
    return sizes


@composite("view")
def view(self: Any, *shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], torch.dtype):
        return NotImplemented
    return aten.view.default(self, list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape))


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
    sizes = list(sizes)
    if -1 in sizes:
        sizes[sizes.index(-1)] = input.shape[dim] // -math.prod(sizes)
    return input.view([*input.shape[:dim], *sizes, *input.shape[dim + 1 :]])


FOUND["ravel"] = lambda self: self.contiguous().view(-1)
FOUND["view_as"] = lambda self, other: self.view(other.shape)
FOUND["reshape_as"] = lambda self, other: self.reshape(other.shape)
FOUND["expand_as"] = lambda self, other: self.expand(other.shape)
FOUND["type_as"] = lambda self, other: self.to(other.dtype)
FOUND["narrow"] = lambda input, dim, start, length: aten.slice.Tensor(input, dim, int(start), int(start) + length)
FOUND["movedim"] = FOUND["moveaxis"] = lambda input, source, destination: input.permute(
    _moved(input.dim(), source, destination)
)
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


def _moved(rank: int, source: Any, destination: Any) -> list[int]:
    froms, tos = ([one % rank for one in ([x] if isinstance(x, int) else x)] for x in (source, destination))
    rest = iter([k for k in range(rank) if k not in froms])
    return [froms[tos.index(k)] if k in tos else next(rest) for k in range(rank)]


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


@composite("expand")
def expand(self: Any, *sizes: Any, implicit: bool = False) -> Any:
    return aten.expand.default(
        self, list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    )


@composite("permute")
def permute(input: Any, *dims: Any) -> Any:
    return aten.permute.default(input, list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims))


@composite("repeat")
def repeat(self: Any, *sizes: Any) -> Any:
    return aten.repeat.default(
        self, list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    )


@composite("chunk")
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    size = input.shape[dim]
    return input.split(-(-size // chunks), dim)


@composite("split")
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(split_size_or_sections, int):
        return tuple(aten.split.Tensor(tensor, split_size_or_sections, *([dim] if dim else [])))
    return tuple(aten.split_with_sizes.default(tensor, list(split_size_or_sections), *([dim] if dim else [])))


@composite("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    return tuple(aten.unbind.int(input, *([dim] if dim else [])))


@composite("__iter__")
def iterate(self: Any) -> Any:
    return iter(self.unbind(0))


# ---- conversions ----
@composite("to")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
    memory_format, non_blocking = kwargs.get("memory_format"), kwargs.get("non_blocking", False)
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        dtype, device = rest[0].dtype, rest[0].device
        rest = rest[1:]
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest and (isinstance(rest[0], (str, torch.device, int)) or rest[0] is None):
        device = rest.pop(0)
        if rest and isinstance(rest[0], torch.dtype):
            dtype = rest.pop(0)
    if rest:
        non_blocking, copy = rest[0], (rest[1] if len(rest) > 1 else copy)
    device = None if device is None else torch.device(device)
    same = (dtype is None or dtype == self.dtype) and (device is None or _same_device(device, self.device))
    if same and not copy and (memory_format is None or self.is_contiguous(memory_format=memory_format)):
        return self
    options: dict[str, Any] = {"dtype": dtype, "device": device, "memory_format": memory_format}
    if non_blocking:
        options["non_blocking"] = True
    return aten._to_copy.default(self, **{key: value for key, value in options.items() if value is not None})


def _same_device(one: Any, other: Any) -> bool:
    return one.type == other.type and (one.index is None or other.index is None or one.index == other.index)


for _name, _dtype in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "cfloat": "complex64",
    "cdouble": "complex128",
}.items():
    FOUND[_name] = lambda self, _dtype=_dtype, memory_format=None: self.to(getattr(torch, _dtype))
FOUND["cpu"] = lambda self, memory_format=None: self.to("cpu")


@composite("contiguous")
def contiguous(self: Any, memory_format: Any = None) -> Any:
    if self.is_contiguous() if memory_format is None else self.is_contiguous(memory_format=memory_format):
        return self
    return self.clone(memory_format=torch.contiguous_format if memory_format is None else memory_format)


@composite("item", "__float__", "__int__", "__bool__", "__index__", "__complex__")
def item(self: Any) -> Any:
    return _number(self, "item")


def _number(self: Any, method: str) -> Any:
    """Return the only element; a plain tensor says what is wrong where there are others."""
    if self.numel() != 1:
        with hidden():
            return getattr(torch.zeros((), dtype=self.dtype).expand(self.shape), method)()
    return aten._local_scalar_dense.default(self)


FOUND["__float__"] = lambda self: float(_number(self, "__float__"))
FOUND["__int__"] = lambda self: int(_number(self, "__int__"))
FOUND["__index__"] = lambda self: int(_number(self, "__index__"))
FOUND["__bool__"] = lambda self: bool(_number(self, "__bool__"))
FOUND["__complex__"] = lambda self: complex(_number(self, "__complex__"))
FOUND["is_nonzero"] = FOUND["__bool__"]


@composite("as_tensor", "scalar_tensor", "new_tensor", "asarray")
def made_of_tensors(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


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
FOUND["floor_divide_"] = lambda self, other: NotImplemented
FOUND["__ror__"] = FOUND["__rand__"] = FOUND["__rxor__"] = lambda self, other: NotImplemented


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
