"""Give Tensor its methods and operators, and the package its functions, from the index in `_names.py`."""

from __future__ import annotations

import sys
from functools import cache, partial
from importlib import import_module
from types import FunctionType
from typing import Any

from .. import _dtypes, _errors
from .._modes import NO_GRAD, PLAIN, read_mode
from .._tracebacks import guarded, hide
from ..overrides import asks_nobody, refuse_other_torch, refusing, spreading
from ._aliasing import inplace as _inplace
from ._functions import casting as _casting
from ._functions import creation as _creation
from ._functions import elementwise as _pointwise
from ._functions import index as _indexing
from ._functions import matrix_products as _matrix
from ._functions import shape as _shaping
from ._names import LATER, NOW, Names
from ._tensor import Tensor as TensorClass

Tensor: Any = TensorClass  # what is set here is not declared in the class

CASTS = {
    "chalf": "complex32",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
}
CASTS |= {
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


# Methods of a few nanoseconds whose arguments, if they have any, Python checks well enough.
PLAIN_METHODS = {
    *CASTS,
    *"bool contiguous item tolist numpy zero_ detach_ requires_grad_ cpu".split(),  # noqa: SIM905
}

# Operators that a mode or class gets as the method of this name: as in torch, `x + 1` is handed over as `Tensor.add`.
HANDED_OVER = {
    f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "lt", "le", "gt", "ge", "ne", "neg", "abs")
}
HANDED_OVER |= {
    "__radd__": "add",
    "__rmul__": "mul",
    "__truediv__": "div",
    "__mod__": "remainder",
    "__pos__": "positive",
}
HANDED_OVER |= {"__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor"}

PACKAGE = __name__.partition(".")[0]


def _named(value: Any, name: str) -> Any:
    """Let what is written in a private file say where programs find it, which is how pickles find it again.

    Of several names the first is kept, and a function of the package that is a method as well stays that function.
    """
    if "._" in value.__module__ and isinstance(value, (FunctionType, type)):
        value.__module__ = "torch" if sys.modules.get("torch") is sys.modules[PACKAGE] else PACKAGE
        value.__qualname__ = name
        if value.__name__ == "<lambda>":
            value.__name__ = name.rpartition(".")[2]
    return value


_above: dict[str, Names] = {}  # files of layers above this one


@cache
def _family(module: str) -> Any:
    family = import_module(f"{PACKAGE}.{module}" if module in _above else f"{__package__}.{module}")
    names = NOW.get(module) or LATER[module]
    for name in (names.both + " " + names.functions).split():
        if not _is_in_place(name):
            _named(getattr(family, name), name)
    return family


def _is_in_place(name: str) -> bool:
    """Tell whether a name is that of a method that writes in place; the package's function of that name is another object."""
    return name.endswith("_") and name[0] != "_"


@cache
def _refusing(value: Any) -> Any:
    """Let a public function refuse arguments in torch's words, if it does not do so itself."""
    return asks_nobody(value if hasattr(value, "refuses") or not isinstance(value, FunctionType) else refusing(value))


def _set_method(name: str, function: Any, doc: str | None = None) -> None:
    if doc is not None:
        function.__doc__ = doc
    method = _named(function, f"Tensor.{name}")
    method = asks_nobody(method) if name in PLAIN_METHODS or name.startswith("__") else _refusing(method)
    type.__setattr__(Tensor, name, method)  # which tells nobody: it is the library's own


def functions() -> dict[str, Any]:
    """Return the functions of the package by name; those of families loaded later are found by `find`."""
    found = {}
    for module, names in NOW.items():
        for name in (names.both + " " + names.functions).split():
            found[name] = _refusing(getattr(_family(module), name))
    return found


def _owners(families: dict[str, Names], *kinds: str) -> dict[str, str]:
    """Return the file of every public name of some kinds."""
    return {
        name: module for module, names in families.items() for kind in kinds for name in getattr(names, kind).split()
    }


later_functions = _owners(LATER, "both", "functions") | _owners(NOW | LATER, "writing")


def find(name: str) -> Any:
    """Return a function that is loaded or made when asked for, or None if there is no such name."""
    module = later_functions.get(name)
    if module is None:
        return None
    if not _is_in_place(name):
        return _refusing(getattr(_family(module), name))
    own = getattr(_family(module), name, None)
    if own is not None and own.__name__ != name:  # the second name of another
        return getattr(sys.modules[PACKAGE], own.__name__)
    return in_place_function(getattr(Tensor, name, None) or own)


@cache
def in_place_function(method: Any) -> Any:
    """Make a function of a method that writes in place: its tensor is called `input`."""

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return method(input, *args, **kwargs)

    call.__name__, call.__doc__, call.__wrapped__ = method.__name__, method.__doc__, method  # type: ignore[attr-defined]
    return refusing(_named(call, method.__name__))


class _LaterMethod:
    """Stands in the class for a method of a family that is not loaded yet."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        _install(self.module, LATER[self.module])
        return getattr(owner if instance is None else instance, self.name)


def _install(module: str, names: Names) -> None:
    """Make methods of a file's functions."""
    family = _family(module)
    for name in (names.both + " " + names.methods).split():
        function = getattr(family, name)
        _set_method(name, spreading(function) if name in names.spread.split() else function)
    for name in names.inplace.split():
        function = getattr(family, name)
        make = getattr(function, "in_place", _inplace.inplace)
        _set_method(f"{name}_", make(name, function))


def _reflected(name: str, function: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        try:
            if not isinstance(self, Tensor):
                raise _errors.not_of_tensors(name, self)
            return function(other, self)
        except Exception as error:
            hide(error)
            raise

    return method


def _shift(name: str, reflected: bool) -> Any:
    """Make an operator that shifts bits; few programs do, so its file is loaded when it is first used."""

    def shift(self: Any, other: Any) -> Any:
        try:
            function = getattr(
                _family("_functions.elementwise_pairs"), "left_shift" if name == "lshift" else "right_shift"
            )
            return function(other, self) if reflected else function(self, other)
        except Exception as error:
            hide(error)
            raise

    return shift


def _operators() -> dict[str, Any]:
    p = _pointwise

    def rsub(self: Any, other: Any) -> Any:
        try:
            return p.reversed_subtract(self, other) if p.is_operand(other) else NotImplemented
        except Exception as error:
            hide(error)
            raise

    def rtruediv(self: Any, other: Any) -> Any:
        try:
            return p._mul(p.reciprocal(self), other) if p.is_operand(other) else NotImplemented
        except Exception as error:
            hide(error)
            raise

    def refused(other: Any) -> Any:
        refuse_other_torch((other,))
        return NotImplemented

    def power(self: Any, other: Any, modulus: Any = None) -> Any:
        try:
            return p.power(self, other) if modulus is None and p.is_operand(other) else refused(other)
        except Exception as error:
            hide(error)
            raise

    def rpow(self: Any, other: Any, modulus: Any = None) -> Any:
        try:
            return p.power(other, self) if modulus is None and p.is_operand(other) else refused(other)
        except Exception as error:
            hide(error)
            raise

    def matmul(self: Any, other: Any) -> Any:
        try:
            if not isinstance(other, Tensor):
                return refused(other)
            mode = read_mode()  # a mode that is set may want to see the call
            return _matrix.product(self, other) if mode is PLAIN or mode is NO_GRAD else _matrix.matmul(self, other)
        except Exception as error:
            hide(error)
            raise

    def rmatmul(self: Any, other: Any) -> Any:
        try:
            return matmul(other, self) if isinstance(other, Tensor) else refused(other)
        except Exception as error:
            hide(error)
            raise

    def equal(self: Any, other: Any) -> Any:
        try:
            return p.eq(self, other) if p.is_operand(other) else refused(other)
        except Exception as error:
            hide(error)
            raise

    def not_equal(self: Any, other: Any) -> Any:
        try:
            return p.ne(self, other) if p.is_operand(other) else refused(other)
        except Exception as error:
            hide(error)
            raise

    def invert(self: Any) -> Any:
        try:
            if self.dtype.is_floating_point or self.dtype.is_complex:
                raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
            return p.bitwise_not(self)
        except Exception as error:
            hide(error)
            raise

    binary = {"add": p._add, "sub": p._sub, "mul": p._mul, "truediv": p._div, "floordiv": p.floor_quotient}
    binary |= {"mod": p.modulo, "and": p.OPERATORS["and"], "or": p.OPERATORS["or"], "xor": p.OPERATORS["xor"]}
    table: dict[str, Any] = {f"__{name}__": function for name, function in binary.items()}
    table |= {"__radd__": p.radd, "__rmul__": p.rmul, "__rsub__": rsub, "__rtruediv__": rtruediv, "__rdiv__": rtruediv}
    names = {f"__r{n}__": binary[n] for n in ("floordiv", "mod", "and", "or", "xor")}
    table |= {name: _reflected(name, function) for name, function in names.items()}
    table |= {"__pow__": power, "__rpow__": rpow, "__matmul__": matmul, "__rmatmul__": rmatmul}
    table |= {f"__{name}__": p.OPERATORS[name] for name in ("lt", "le", "gt", "ge")}
    table |= {"__eq__": equal, "__ne__": not_equal, "__div__": p._div}
    table |= {"__neg__": p.neg, "__pos__": lambda self: self, "__abs__": p.abs, "__invert__": invert}
    table |= {f"__{r}{n}__": _shift(n, bool(r)) for n in ("lshift", "rshift") for r in ("", "r")}
    table |= {"__getitem__": _indexing.getitem, "__setitem__": _indexing.setitem}
    table |= {"__float__": _casting.to_number(float), "__int__": _casting.to_number(int)}
    table |= {
        "__complex__": _casting.to_number(complex),
        "__bool__": _casting.truth,
        "__index__": _casting.index_number,
    }
    return table


def _no_sparse(self: Any, name: str) -> Any:
    raise AttributeError(
        f"'{type(self).__name__}' object has no attribute '{name}': retrograd has no sparse tensors, it computes with dense "
        "ones"
    )


def _install_later(families: dict[str, Names]) -> None:
    for module, names in families.items():
        for name in (names.both + " " + names.methods).split() + [f"{name}_" for name in names.inplace.split()]:
            type.__setattr__(Tensor, name, _LaterMethod(module, name))


def install_names(families: dict[str, Names]) -> None:
    """Receive the names of files of layers above this one."""
    _above.update(families)
    LATER.update(families)
    later_functions.update(_owners(families, "both", "functions", "writing"))
    _install_later(families)


def install_methods() -> None:
    """Give Tensor its methods and operators."""
    for module, names in NOW.items():
        _install(module, names)
    _install_later(LATER)
    Tensor.__iadd__, Tensor.__isub__, Tensor.__imul__ = Tensor.add_, Tensor.sub_, Tensor.mul_
    Tensor.__ipow__ = Tensor.pow_
    Tensor.__itruediv__ = Tensor.__idiv__ = Tensor.div_
    Tensor.__ifloordiv__, Tensor.__imod__ = Tensor.floor_divide_, Tensor.remainder_
    _set_method("__ilshift__", lambda self, other: self.bitwise_left_shift_(other))
    _set_method("__irshift__", lambda self, other: self.bitwise_right_shift_(other))
    Tensor.__iand__, Tensor.__ior__, Tensor.__ixor__ = Tensor.bitwise_and_, Tensor.bitwise_or_, Tensor.bitwise_xor_
    for name, dtype in CASTS.items():
        _set_method(name, _casting.caster(name, _dtypes.dtype_named(dtype)))
    _set_method("bool", _casting.caster("bool", _dtypes.bool_))
    _set_method("type_as", lambda self, other: self.to(other.dtype), "Return the tensor in the dtype of another.")
    _set_method("new_tensor", _creation.new_tensor_method)
    _set_method(
        "cpu",
        guarded(lambda self, memory_format=None: _casting.to(self, device="cpu", memory_format=memory_format)),
        "Return the tensor in the memory of the CPU: itself, if it is there.",
    )
    to_cuda = "Return the tensor in the memory of a CUDA device: itself, if it is there."
    _set_method("cuda", lambda self, device="cuda", **k: _casting.to(self, device=device), to_cuda)
    _set_method("reshape_as", lambda self, other: self.reshape(other.shape), "Reshape to the shape of another tensor.")
    for name in ("T", "mT", "H", "mH"):
        setattr(Tensor, name, property(partial(_shaping.transposed_property, kind=name)))
    for name in ("to_sparse", *(f"to_sparse_{layout}" for layout in ("coo", "csr", "csc", "bsr", "bsc"))):
        nothing = "There are no sparse tensors; asking for it raises AttributeError."
        setattr(Tensor, name, property(partial(_no_sparse, name=name), doc=nothing))
    choose = "Take the tensor's elements where a condition holds, and elsewhere those of another."
    _set_method("where", lambda self, condition, other: _pointwise.where(condition, self, other), choose)
    for name in ("real", "imag"):
        read = partial(_pointwise.real_view, part=name)
        setattr(Tensor, name, property(read, partial(_casting.write_part, part=name)))
    for name, operator in _operators().items():
        if name not in HANDED_OVER and operator.__name__[:2] != "__" and not hasattr(operator, "ufunc"):
            operator.__name__ = {"__pow__": "pow", "__rtruediv__": "__rdiv__"}.get(name, name)
        _set_method(name, operator)
    for name, other in HANDED_OVER.items():
        if vars(Tensor)[name] is not vars(Tensor)[other]:
            vars(Tensor)[name].handed_over_as = other
    Tensor.__hash__ = object.__hash__  # setting __eq__ would have cleared it
