"""torch.ops: operations under the names that torch's dispatcher gives them, as policies of selective checkpointing ask for them.

`torch.ops.aten.mm.default` is one object for the whole process; calling it calls the operation.
"""

from __future__ import annotations

import importlib
import os
import re
import types
from functools import cache
from typing import Any

# Which overload torch records under a node's name, where it is not "default".
_OVERLOADS = dict.fromkeys("Add Sub Mul Div Index Remainder Fmod BitwiseAnd BitwiseOr BitwiseXor".split(), "Tensor")  # noqa: SIM905
_OVERLOADS |= {"Where": "self", "Var": "correction", "Std": "correction", "MaskedFill": "Scalar", "Select": "int"}
_OVERLOADS |= {"VarMean": "correction", "StdMean": "correction"}
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
    "LerpBackward0": "Scalar",
    "LerpBackward1": "Tensor",
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


class OpOverload:
    """One form of an operation."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket = self.overloadpacket = packet
        self._overloadname = overload
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{overload}"

    def name(self) -> str:
        """Return the dispatcher's name, "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{suffix}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        namespace, name = self._overloadpacket._qualified_op_name.split("::")
        return f"<OpOverload(op='{namespace}.{name}', overload='{self._overloadname}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket(*args, **kwargs)


class OpOverloadPacket:
    """An operation with all its forms."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._namespace != "aten":
            return importlib.import_module(".library", __package__).find(self._qualified_op_name)(*args, **kwargs)
        try:
            function = _function(self.__name__)
        except AttributeError:  # libraries name many operations that they never call, as keys of tables
            raise NotImplementedError(
                f"torch has the operation '{self._qualified_op_name}'; retrograd does not yet"
            ) from None
        return function(*args, **kwargs)


def _function(name: str) -> Any:
    """Find the public function of an operation."""
    package = importlib.import_module(__package__)
    alone = importlib.import_module("._aten", __package__)
    if name in alone.__all__:
        return getattr(alone, name)
    name = name.lstrip("_")
    for place in (package, package.Tensor):
        if hasattr(place, name):
            return getattr(place, name)
    family, _, rest = name.partition("_")
    if rest and family in ("linalg", "fft", "special"):
        return getattr(getattr(package, family), rest)
    if hasattr(package.nn.functional, name):
        return getattr(package.nn.functional, name)
    if name == "max_pool2d_with_indices_backward":
        return importlib.import_module(".nn.functional._native_pooling", __package__).max_pool2d_with_indices_backward
    raise AttributeError(f"retrograd has no operation {name!r}")


@cache
def _torch_operations() -> frozenset[str]:
    """Return the operations that torch 2.13.0 itself has."""
    with open(os.path.join(os.path.dirname(__file__), "_compat", "aten_names.txt"), encoding="ascii") as lines:
        return frozenset(lines.read().split())


class _Namespace(types.ModuleType):
    """`torch.ops.aten` and others."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            _function(name)
        except AttributeError:
            if name not in _torch_operations():
                raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'") from None
        made = OpOverloadPacket(self.__name__, name)
        setattr(self, name, made)
        return made


class _OfPrograms(types.ModuleType):
    """A namespace of operations that programs define by `torch.library`."""

    def __getattr__(self, name: str) -> Any:
        library = importlib.import_module(".library", __package__)
        if name.startswith("__") or f"{self.__name__}::{name}" not in library._defined:
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        made = OpOverloadPacket(self.__name__, name)
        setattr(self, name, made)
        return made


def __getattr__(name: str) -> Any:
    """Return a namespace: as in torch every name is one, and has what programs defined there."""
    if name.startswith("__"):
        raise AttributeError(name)
    made = globals()[name] = _OfPrograms(name)
    return made


aten = _Namespace("aten")


def load_library(path: Any) -> None:
    """Refuse a library of compiled operations, which are written for torch's own C++."""
    raise OSError(
        f"Could not load this library: {path}\nHint: compiled operations need torch itself; retrograd is written in Python."
    )


@cache
def of_node(node_name: str) -> OpOverload:
    """Return the operation that torch records under a node's name: MmBackward0 is aten.mm.default."""
    base, _, _number = node_name.partition("Backward")
    spelled = re.sub(r"(?<=[123])D", "d", base)  # MaxPool2D
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", spelled).lower()
    name = _NAMES.get(words, f"_{words}" if words.startswith("scaled_dot_product") else words)
    overload = _NUMBERED_OVERLOADS.get(node_name) or _OVERLOADS.get(base, "default")
    found: OpOverload = getattr(_packet(name), overload)
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


__all__ = ["OpOverload", "OpOverloadPacket", "aten"]
