"""One table of names: what is a function of the package, what is a method of Tensor, what is both."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import _dtypes
from . import (
    _asking,
    _casting,
    _creation,
    _indexing,
    _inplace,
    _masks,
    _matrix,
    _pointwise,
    _reductions,
    _sampling,
    _shaping,
    _splitting,
)
from ._tensor import Tensor as TensorClass

Tensor: Any = TensorClass  # what is set here is not declared in the class

# module -> names that are functions of the package and methods of Tensor
BOTH = {
    _pointwise: """neg negative exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin arcsin acos arccos
        atan arctan sigmoid relu erf reciprocal abs absolute sign sgn floor ceil trunc fix isnan isinf isfinite logical_not
        bitwise_not atan2 arctan2 maximum minimum eq ne not_equal lt less le less_equal gt greater ge greater_equal
        logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor remainder fmod floor_divide add sub subtract
        mul multiply div divide true_divide pow square round clamp clip where conj lerp addcmul addcdiv""",
    _reductions: """sum mean prod amax amin max min argmax argmin any all logsumexp softmax log_softmax cumsum sort argsort
        var std norm""",
    _shaping: """reshape permute transpose swapaxes swapdims t movedim moveaxis unsqueeze squeeze broadcast_to flatten ravel
        select narrow diagonal flip tril triu as_strided clone""",
    _splitting: "split chunk unbind",
    _matrix: "mm bmm mv dot outer matmul addmm",
    _indexing: "gather index_select scatter scatter_add index_add index_put",
    _masks: "masked_fill masked_select nonzero take_along_dim",
}
FUNCTIONS = {
    _asking: "is_tensor is_floating_point is_complex numel result_type real imag equal allclose",
    _pointwise: "complex rsub",
    _shaping: "cat concat concatenate stack",
    _creation: """tensor as_tensor asarray from_numpy zeros ones empty full zeros_like ones_like empty_like full_like arange
        linspace eye scalar_tensor meshgrid""",
    _sampling: """Generator default_generator manual_seed seed initial_seed get_rng_state set_rng_state rand randn randint
        randperm rand_like randn_like randint_like bernoulli normal multinomial""",
}
METHODS = {
    _shaping: "view expand expand_as view_as contiguous",
    _casting: "to item tolist numpy",
    _creation: "new_zeros new_ones new_empty new_full",
    _indexing: "index_put_",
    _inplace: "copy_ fill_ zero_ masked_fill_ detach_ requires_grad_",
    _sampling: "uniform_ normal_ random_ bernoulli_ exponential_",
}
INPLACE_FROM_FUNCTIONS = """neg exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan sigmoid
    relu erf reciprocal abs sign floor ceil trunc pow square clamp round remainder fmod floor_divide eq ne lt le gt ge
    logical_not logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or bitwise_xor lerp addcmul addcdiv cumsum
    tril triu scatter scatter_add index_add"""
CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32"}
CASTS |= {
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def functions() -> dict[str, Any]:
    """Return the functions of the package by name."""
    found = {}
    for table in (BOTH, FUNCTIONS):
        for module, names in table.items():
            for name in names.split():
                found[name] = getattr(module, name)
    return found


def _reflected(function: Any) -> Any:
    return lambda self, other: function(other, self)


def _operators() -> dict[str, Any]:
    p = _pointwise

    def rsub(self: Any, other: Any) -> Any:
        return p.reversed_subtract(self, other) if p.is_operand(other) else NotImplemented

    def rtruediv(self: Any, other: Any) -> Any:
        return p._mul(p.reciprocal(self), other) if p.is_operand(other) else NotImplemented

    def power(self: Any, other: Any) -> Any:
        return p.power(self, other) if p.is_operand(other) else NotImplemented

    def rpow(self: Any, other: Any) -> Any:
        return p.power(other, self) if p.is_operand(other) else NotImplemented

    def matmul(self: Any, other: Any) -> Any:
        return _matrix.product(self, other) if isinstance(other, Tensor) else NotImplemented

    def rmatmul(self: Any, other: Any) -> Any:
        return _matrix.product(other, self) if isinstance(other, Tensor) else NotImplemented

    def equal(self: Any, other: Any) -> Any:
        return p.eq(self, other) if p.is_operand(other) else False

    def not_equal(self: Any, other: Any) -> Any:
        return p.ne(self, other) if p.is_operand(other) else True

    binary = {"add": p._add, "sub": p._sub, "mul": p._mul, "truediv": p._div, "floordiv": p.floor_divide}
    binary |= {"mod": p.remainder, "and": p.bitwise_and, "or": p.bitwise_or, "xor": p.bitwise_xor}
    table: dict[str, Any] = {f"__{name}__": function for name, function in binary.items()}
    table |= {"__radd__": p._add, "__rmul__": p._mul, "__rsub__": rsub, "__rtruediv__": rtruediv}
    table |= {f"__r{n}__": _reflected(binary[n]) for n in ("floordiv", "mod", "and", "or", "xor")}
    table |= {"__pow__": power, "__rpow__": rpow, "__matmul__": matmul, "__rmatmul__": rmatmul}
    table |= {"__lt__": p.lt, "__le__": p.le, "__gt__": p.gt, "__ge__": p.ge, "__eq__": equal, "__ne__": not_equal}
    table |= {"__neg__": p.neg, "__pos__": lambda self: self, "__abs__": p.abs, "__invert__": p.bitwise_not}
    table |= {"__getitem__": _indexing.getitem, "__setitem__": _indexing.setitem}
    table |= {"__float__": _casting.to_number(float), "__int__": _casting.to_number(int)}
    table |= {
        "__complex__": _casting.to_number(complex),
        "__bool__": _casting.truth,
        "__index__": _casting.index_number,
    }
    return table


def install_methods() -> None:
    """Give Tensor its methods and operators."""
    for table in (BOTH, METHODS):
        for module, names in table.items():
            for name in names.split():
                setattr(Tensor, name, getattr(module, name))
    for name in INPLACE_FROM_FUNCTIONS.split():
        function = next(getattr(m, name) for m in (_pointwise, _reductions, _shaping, _indexing) if hasattr(m, name))
        setattr(Tensor, f"{name}_", _inplace.inplace(name, function))
    for name, function in (
        ("add", _pointwise.add),
        ("sub", _pointwise.sub),
        ("mul", _pointwise.mul),
        ("div", _pointwise.div),
    ):
        method = _inplace.arithmetic(name, function)
        setattr(Tensor, f"{name}_", method)
        setattr(Tensor, f"__i{'truediv' if name == 'div' else name}__", method)
    Tensor.__ipow__ = Tensor.pow_
    Tensor.__ifloordiv__, Tensor.__imod__ = Tensor.floor_divide_, Tensor.remainder_
    Tensor.__iand__, Tensor.__ior__, Tensor.__ixor__ = Tensor.bitwise_and_, Tensor.bitwise_or_, Tensor.bitwise_xor_
    for name in ("t", "transpose", "unsqueeze", "squeeze", "swapaxes", "swapdims"):
        setattr(Tensor, f"{name}_", _inplace.reshaping(name, getattr(_shaping, name)))
    for name, dtype in CASTS.items():
        setattr(Tensor, name, _casting.caster(name, _dtypes.dtype_named(dtype)))
    Tensor.bool = _casting.caster("bool", _dtypes.bool_)
    Tensor.type_as = lambda self, other: self.to(other.dtype)
    Tensor.new_tensor = _creation.new_tensor_method
    Tensor.cpu = lambda self, *a, **k: _casting.to(self, device="cpu")
    Tensor.cuda = lambda self, device="cuda", **k: _casting.to(self, device=device)
    Tensor.reshape_as = lambda self, other: self.reshape(other.shape)
    Tensor.clamp_min, Tensor.clamp_max = _pointwise.clamp_min, _pointwise.clamp_max
    for name in ("T", "mT", "H", "mH"):
        setattr(Tensor, name, property(partial(_shaping.transposed_property, kind=name, depth=2)))
    Tensor.where = lambda self, condition, other: _pointwise.where(condition, self, other)
    Tensor.real = property(lambda self: _pointwise.real_view(self, "real"))
    Tensor.imag = property(lambda self: _pointwise.real_view(self, "imag"))
    for name, operator in _operators().items():
        setattr(Tensor, name, operator)
    Tensor.__hash__ = object.__hash__  # setting __eq__ would have cleared it
