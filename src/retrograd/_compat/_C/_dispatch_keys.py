"""torch's dispatch keys as values: names of the layers that a call of torch passes through, sets of them, and their exclusion."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from retrograd._modes import using

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
_KEYS = """Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd CompositeImplicitAutogradNestedTensor
CompositeImplicitAutograd AutogradNestedTensor AutogradOther Autograd Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView
PythonTLSSnapshot Python FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode FuncTorchBatchedDecomposition FuncTorchBatched
FuncTorchVmapMode FuncTorchGradWrapper PythonDispatcher PreDispatch Functionalize AutocastCPU AutocastMPS AutocastXPU AutocastHPU
AutocastIPU AutocastCUDA AutocastPrivateUse1 Dense Quantized Sparse SparseCsr NestedTensor AutogradFunctionality"""
_LAYERS = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd")
_ALL = [*_KEYS.split(), *(f"{layer}{backend}" for layer in _LAYERS for backend in _BACKENDS.split())]

_enumeration: Any = IntEnum
DispatchKey: Any = _enumeration("DispatchKey", _ALL, start=0, module="torch._C")


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, key: Any) -> None:
        self.keys: frozenset[Any] = frozenset({key} if isinstance(key, IntEnum) else key)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys & other.keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys - other.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(self.keys)

    def add(self, key: Any) -> DispatchKeySet:
        """Return the set with a key more."""
        return DispatchKeySet(self.keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """Return the set without a key."""
        return DispatchKeySet(self.keys - {key})

    def has(self, key: Any) -> bool:
        """Tell whether a key is in the set."""
        return key in self.keys

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(one.name for one in _ordered(self.keys))})"


def _ordered(keys: Iterable[Any]) -> list[Any]:
    """Put backends first, as torch shows them, and layers after them."""
    return sorted(keys, key=lambda key: (key.name not in _BACKENDS.split(), key))


class _ExcludeDispatchKeyGuard(using):
    """A block in which layers are left out: without those of autocast nothing is cast; others are no layers here."""

    def __init__(self, keys: DispatchKeySet) -> None:
        if any(one.name.startswith("Autocast") for one in keys.keys):
            super().__init__(autocast=None)
        else:
            super().__init__()
