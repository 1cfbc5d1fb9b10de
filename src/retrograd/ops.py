"""torch.ops: operations under the names that torch's dispatcher gives them, as policies of selective checkpointing ask for them.

`torch.ops.aten.mm.default` is one object for the whole process; calling it calls the operation.
"""

from __future__ import annotations

import importlib
import re
import types
from enum import Enum
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import Any

from ._tracebacks import guard_methods

# Which overload torch records under a node's name, where it is not "default".
_OVERLOADS = {
    "Where": "self",
    "MaskedFill": "Scalar",
    **dict.fromkeys(("Var", "Std", "VarMean", "StdMean"), "correction"),
}
_NUMBERED_OVERLOADS = {
    "SumBackward1": "dim_IntList",
    "MeanBackward1": "dim",
    "ProdBackward1": "dim_int",
    "PowBackward0": "Tensor_Scalar",
    "PowBackward1": "Tensor_Tensor",
    "PowBackward2": "Scalar",
    "MaxBackward0": "dim",
    "MinBackward0": "dim",
    "RsubBackward0": "Tensor",
    "RsubBackward1": "Scalar",
    "DivBackward1": "Tensor_mode",
    "MaskedFillBackward1": "Tensor",
    "NormalBackward1": "Tensor_float",
    "NormalBackward2": "float_Tensor",
    "NormalBackward3": "Tensor_Tensor",
    "LerpBackward0": "Scalar",
    "LerpBackward1": "Tensor",
    "SqueezeBackward1": "dim",
}
_COMPARISONS = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
# Nodes whose operation has another name.
_NAMES = {
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "nll_loss": "nll_loss_forward",
    "nll_loss2d": "nll_loss2d_forward",
    "unsafe_view": "_unsafe_view",
}


class Tag(Enum):
    """What can be said of an operation: `torch.Tag`."""

    core, cudagraph_unsafe, data_dependent_output, dynamic_output_shape, flexible_layout = range(5)
    generated, inplace, inplace_view, maybe_aliasing_or_mutating, needs_contiguous_strides = range(5, 10)
    needs_exact_strides, needs_fixed_stride_order, nondeterministic_bitwise = range(10, 13)
    nondeterministic_seeded, out, out_variant, pointwise = range(13, 17)
    pt2_compliant_tag, reduction, view_copy = range(17, 20)


_value = attrgetter("value")


class OperatorBase:
    """What `torch._ops` calls an operation of any kind."""


class OpOverload(OperatorBase):
    """One form of an operation."""

    @property
    def tags(self) -> list[Tag]:
        """What torch says of the operation: that it is pointwise, draws random numbers, changes a view."""
        name = self._overloadpacket.__name__
        if self.namespace == "aten":
            full = name if self._overloadname == "default" else f"{name}.{self._overloadname}"
            return sorted([Tag.pt2_compliant_tag, *(Tag[one] for one in _schemas().tags().get(full, ()))], key=_value)
        if self.namespace == "retrograd":  # no operation of torch's
            return [Tag.pt2_compliant_tag]
        given = importlib.import_module("._dispatch.programs", __package__).find(self.name()).tags
        return [Tag.pt2_compliant_tag, *given]

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket = self.overloadpacket = packet
        self._overloadname = overload
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self._name = self.name()
        self.__module__ = f"torch._ops.{packet._namespace}"

    @property
    def _schema(self) -> Any:
        return self._overloadpacket._forms()[self._overloadname]

    @property
    def op(self) -> Any:
        return self

    _op = op

    def name(self) -> str:
        """Return the dispatcher's name, "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{suffix}"

    @property
    def is_view(self) -> bool:
        """Tell whether the result shares memory with an argument that is not written."""
        returns = self._schema.returns
        return bool(returns) and returns[0].alias_info is not None and not self._schema.is_mutable

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Tell whether something computes the operation for a key: torch's autograd sees through composite ones."""
        composite = self.namespace == "aten" and _schemas().is_composite(
            self._overloadpacket.__name__, self._overloadname
        )
        return composite == (str(key).rpartition(".")[2] == "CompositeImplicitAutograd")

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Run an operation that torch makes of others as those; NotImplemented for any other."""
        name = self._overloadpacket.__name__
        if self.namespace != "aten" or not _schemas().is_composite(name, self._overloadname):
            return NotImplemented
        return importlib.import_module("._dispatch.calls", __package__).call(self._overloadpacket, args, kwargs)

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _overload, (self.namespace, self._overloadpacket.__name__, self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        namespace, name = self._overloadpacket._qualified_op_name.split("::")
        return f"<OpOverload(op='{namespace}.{name}', overload='{self._overloadname}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dispatch = _dispatch()
        if self.namespace not in ("aten", "retrograd"):
            return importlib.import_module(".library", __package__).find(self.name())(*args, **kwargs)
        if dispatch.is_wanted(args, kwargs):
            if (made := _made_of_others(self, args, kwargs)) is not NotImplemented:
                return made
            if self.namespace == "aten" and (values := _schemas().bind(self._schema, args, kwargs)) is not None:
                args, kwargs = _schemas().given(self._schema, values)  # defaults are not handed on
            return importlib.import_module("._dispatch.recording", __package__).run(self, args, kwargs)
        with dispatch.hidden():
            out = dispatch.kernel_of(self)(*args, **kwargs)
        dispatch.note_samples(self._overloadpacket.__name__, args, kwargs, out)
        return out


def _made_of_others(op: OpOverload, args: Any, kwargs: Any) -> Any:
    composites = importlib.import_module("._dispatch.calls", __package__).composites
    made = composites.FOUND.get(op._overloadpacket.__name__)
    if made is None or not op.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
        return NotImplemented
    return importlib.import_module("._dispatch.functions", __package__).decomposed(made, op, args, kwargs)


def _overload(namespace: str, name: str, overload: str) -> Any:
    return getattr(getattr(getattr(importlib.import_module(__name__), namespace), name), overload)


def _dispatch() -> Any:
    return importlib.import_module("._dispatch", __package__)


@cache
def _schemas() -> Any:
    return importlib.import_module("._dispatch.schemas", __package__)


class OpOverloadPacket(OperatorBase):
    """An operation with all its forms."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self.__module__ = f"torch.ops.{namespace}"

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__") or overload in ("_overload_names", "_schemas"):
            raise AttributeError(overload)
        if (forms := self._forms()) and overload not in forms:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def _forms(self) -> dict[str, Any]:
        if self._namespace == "aten":
            forms: dict[str, Any] = _schemas().forms_of(self.__name__)
            return forms
        library = importlib.import_module(".library", __package__)
        found: dict[str, Any] = library.forms_of(self._qualified_op_name)
        return found

    def overloads(self) -> list[str]:
        """Return the names of the forms."""
        return [*self._forms()]

    def _public(self) -> Any:
        """Return the public function of an operation of torch's."""
        try:
            return _function(self.__name__)
        except AttributeError:  # libraries name many operations that they never call, as keys of tables
            raise NotImplementedError(
                f"torch has the operation '{self._qualified_op_name}'; retrograd does not yet"
            ) from None

    def _computes(self, op: OpOverload) -> Any:
        """Return what computes an operation of a program."""
        return importlib.import_module(".library", __package__).find(op.name()).below_autograd

    def _chosen(self, args: Any, kwargs: Any) -> Any:
        """Return the operation of a program whose form takes some arguments."""
        find = importlib.import_module(".library", __package__).find
        forms = self._forms()
        for overload, schema in forms.items():
            if len(forms) == 1 or _schemas().bind(schema, args, kwargs) is not None:
                return find(self._qualified_op_name + ("" if overload == "default" else f".{overload}"))
        return find(self._qualified_op_name)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._namespace != "aten":
            return self._chosen(args, kwargs)(*args, **kwargs)
        dispatch = _dispatch()
        if dispatch.is_wanted(args, kwargs):
            return dispatch.call(self, args, kwargs)
        kernels = importlib.import_module("._dispatch.kernels", __package__)
        if self.__name__ in kernels.KERNELS:
            return kernels.KERNELS[self.__name__](*args, **kwargs)
        if not has_function(self.__name__) and "default" in self._forms():  # the backward of another operation
            return kernels.find(self.default)(*args, **kwargs)
        return self._public()(*args, **kwargs)


class HigherOrderOperator(OperatorBase):
    """An operation that takes functions; it runs as it comes, and no mode sees it as one."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.namespace = "higher_order"

    def name(self) -> str:
        """Return its name."""
        return self._name

    def py_impl(self, key: Any) -> Any:
        """Take what torch's other layers would call, which are not here."""
        return lambda function: function

    fallthrough = py_impl

    def __str__(self) -> str:
        return self._name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.ops.higher_order.{self._name}: its class has no __call__")


class Vjp(OpOverloadPacket):
    """What computes the gradients of an operation that has no formula. See Note [Below autograd] in `_dispatch/__init__.py`."""

    def __init__(self, of: OpOverload) -> None:
        super().__init__("retrograd", f"{of._overloadpacket.__name__}_vjp")
        self.of = of
        self.order: int = 1 + getattr(of._overloadpacket, "order", 0)  # each has arguments with names of its own

    def _forms(self) -> dict[str, Any]:
        return self._made_forms

    @cached_property
    def _made_forms(self) -> dict[str, Any]:
        schemas = _schemas()
        own = {"seeds": "Tensor[]", "which": "bool[]", "wanted": "bool[]", "drawing": "Generator?", "stale": "bool[]"}
        arguments = [
            schemas.Argument(f"{name}{self.order}", kind, None, False, None, True) for name, kind in own.items()
        ]
        arguments += [one._replace(kwarg_only=False, alias_info=None) for one in self.of._schema.arguments]
        text = f"{self._qualified_op_name}(...) -> Tensor[]"
        made = schemas.FunctionSchema(self._qualified_op_name, "", arguments, [], text)
        return dict.fromkeys((self.of._overloadname, "default"), made)

    def _computes(self, op: OpOverload) -> Any:
        return importlib.import_module("._dispatch.kernels", __package__).vjp(self.of)


@cache
def vjp_of(op: OpOverload) -> OpOverload:
    """Return the operation that computes the gradients of one without a formula."""
    return OpOverload(Vjp(op), op._overloadname)


def numbered_node(op: OpOverload) -> str:
    """Return torch's name for the node of an operation: aten.sum.dim_IntList is SumBackward1."""
    parts = op._overloadpacket.__name__.strip("_").split("_")
    base = "".join(part[:1].upper() + part[1:] for part in parts)
    base = {"Softmax": "Softmax", "NllLossForward": "NllLoss", "NllLoss2dForward": "NllLoss2D"}.get(base, base)
    if op.namespace == "aten" and op._overloadpacket.__name__.startswith("_scaled"):
        base = base.removeprefix("_")
    for name, overload in _NUMBERED_OVERLOADS.items():
        if overload == op._overloadname and name.partition("Backward")[0] == base:
            return name
    return f"{base}Backward0"


def _function(name: str) -> Any:
    """Find the public function of an operation."""
    package = importlib.import_module(__package__)
    in_place = name.endswith("_") and not name.endswith("__")
    if name.startswith("_") and hasattr(package, name):
        return getattr(package, name)
    name = name if name.endswith("__") else name.lstrip("_")
    for place in (package.Tensor, package) if in_place else (package, package.Tensor):
        if hasattr(place, name):
            return getattr(place, name)
    family, _, rest = name.partition("_")
    if rest and family in ("linalg", "fft", "special"):
        return getattr(getattr(package, family), rest)
    if hasattr(package.nn.functional, name):
        return getattr(package.nn.functional, name)
    if in_place and hasattr(package.nn.functional, name[:-1]):
        return partial(getattr(package.nn.functional, name[:-1]), inplace=True)
    if name == "max_pool2d_with_indices_backward":
        return importlib.import_module(".nn.functional._torch_pooling", __package__).max_pool2d_with_indices_backward
    raise AttributeError(f"retrograd has no operation {name!r}")


def has_function(name: str) -> bool:
    """Tell whether an operation is a public function."""
    try:
        _function(name)
    except AttributeError:
        return False
    return True


class _Namespace(types.ModuleType):
    """`torch.ops.aten`, or a namespace of operations that programs define by `torch.library`."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") or not self._has(name):
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        made = OpOverloadPacket(self.__name__, name)
        setattr(self, name, made)
        return made

    def _has(self, name: str) -> bool:
        if self.__name__ == "aten":
            return name in _schemas().lines()[0] or has_function(name)
        return bool(importlib.import_module(".library", __package__).forms_of(f"{self.__name__}::{name}"))


def __getattr__(name: str) -> _Namespace:
    """Return a namespace: as in torch every name is one, and has what programs defined there."""
    if name.startswith("__"):
        raise AttributeError(name)
    made = globals()[name] = _Namespace(name)
    return made


_HIGHER_ORDER = ("cond", "while_loop", "wrap_with_set_grad_enabled", "wrap_with_autocast")


class _HigherOrder(types.ModuleType):
    """`torch.ops.higher_order`."""

    def add(self, operator: HigherOrderOperator) -> HigherOrderOperator:
        """Let an operation be found by its name."""
        setattr(self, operator._name, operator)
        return operator

    def __getattr__(self, name: str) -> Any:
        if name in _HIGHER_ORDER:
            importlib.import_module("._control_flow", __package__)
            return vars(self)[name]
        raise AttributeError(f"'_OpNamespace' 'higher_order' object has no attribute '{name}'")


class _Own(types.ModuleType):
    """`torch.ops.retrograd`: public functions that are no operation of torch's. See `_dispatch/functions.py`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return importlib.import_module("._dispatch.functions", __package__).find(name)


aten = _Namespace("aten")
retrograd = _Own("retrograd")
higher_order = _HigherOrder("higher_order")


loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Define the operations of a compiled library by the Python that stands for them; see `_extensions`."""
    importlib.import_module("._extensions", __package__).load(str(path))
    loaded_libraries.add(str(path))


@cache
def of_node(node_name: str) -> OpOverload:
    """Return the operation that torch records under a node's name: MmBackward0 is aten.mm.default."""
    base, _, _number = node_name.partition("Backward")
    spelled = re.sub(r"(?<=[123])D", "d", base)  # MaxPool2D
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", spelled).lower()
    name = _NAMES.get(words, f"_{words}" if words.startswith("scaled_dot_product") else words)
    overload = _NUMBERED_OVERLOADS.get(node_name) or _OVERLOADS.get(base, "default")
    packet = _packet(name)
    if (forms := packet._forms()) and overload not in forms:  # of slice, transpose and others none is without a name
        overload = next((one for one in ("Tensor", "int", "self") if one in forms), next(iter(forms)))
    found: OpOverload = getattr(packet, overload)
    return found


def of_comparison(name: str, with_number: bool) -> OpOverload:
    """Return an operation without a node: comparisons are told apart by what they compare with."""
    name = _COMPARISONS.get(name, name)
    overload = ("Scalar" if with_number else "Tensor") if name in _COMPARISONS.values() else "default"
    found: OpOverload = getattr(_packet(name), overload)
    return found


def _packet(name: str) -> OpOverloadPacket:
    """Return an operation's packet, whether a public function has its name or not."""
    found = vars(aten).get(name)
    if found is None:
        found = OpOverloadPacket("aten", name)
        setattr(aten, name, found)
    return found


guard_methods(OpOverload, "__call__")
guard_methods(OpOverloadPacket, "__call__")

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase", "Tag", "aten", "higher_order"]
