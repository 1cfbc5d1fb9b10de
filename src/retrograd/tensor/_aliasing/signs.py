"""Views that show the conjugates, or the negatives, of what is stored: torch's conj and neg bits.

Note [Signs]
Rule 1. The slot `_array` of such a view holds the memory that it shares with its base; reading the attribute gives the values, computed
        anew each time. So every operation that knows nothing of signs reads the right values, whoever wrote the memory.
Rule 2. A write goes through `write_array`, which stores values with their signs turned back.
Rule 3. A view of such a view has its signs. The steps by which it is made from the base (Note [Views and in-place]) have the turns
        among them, for gradients; memory is found by the others (`stored_steps`).
Rule 4. A tensor becomes one by assignment to `__class__`, which takes it off the hot path at no cost to other tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtypes import holds_complex
from ..._modes import current_mode
from ..._ops import elementwise as e
from .. import _base
from .._base import array_slot, signed_types, stored
from .._recording.record import record
from .._tensor import Tensor
from .views import register_view


class SignedView(Tensor):
    """A view whose values are not what is stored."""

    __slots__ = ()
    __module__ = "torch"
    __torch_function__ = _base.disabled_torch_function  # type: ignore[assignment]
    conjugated = negated = False

    @property
    def _array(self) -> Any:
        array = turned(array_slot.__get__(self), type(self))
        return np.array(array) if isinstance(array, np.generic) else array

    @_array.setter
    def _array(self, array: Any) -> None:
        self.__class__ = Tensor  # type: ignore[assignment]
        array_slot.__set__(self, array)

    def is_conj(self) -> bool:
        return self.conjugated

    def is_neg(self) -> bool:
        return self.negated

    @property
    def data(self) -> Any:
        stored = as_stored(self).data
        return carry(self, stored, stored._array)

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().clone().numpy(force=True)
        bit, name = ("conjugate", "conj") if self.conjugated else ("negative", "neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy() instead."
        )

    def __dlpack__(self, **options: Any) -> Any:
        if self.conjugated:
            raise BufferError("Can't export tensors with the conjugate bit set")
        return self.clone().__dlpack__(**options)


def _of_memory(name: str) -> Any:
    """Make a method that asks for the memory, not for the values."""
    method = getattr(Tensor, name)

    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(as_stored(self), *args, **kwargs)

    ask.__name__ = ask.__qualname__ = name
    return ask


for _name in ("stride", "storage_offset", "is_contiguous", "data_ptr", "untyped_storage", "storage"):
    setattr(SignedView, _name, _of_memory(_name))


class ConjugateView(SignedView):
    __slots__ = ()
    conjugated = True


class NegativeView(SignedView):
    __slots__ = ()
    negated = True


class NegativeConjugateView(SignedView):
    __slots__ = ()
    conjugated = negated = True


_KINDS: dict[tuple[bool, bool], Any] = {
    (True, False): ConjugateView,
    (False, True): NegativeView,
    (True, True): NegativeConjugateView,
}
for _kind in (SignedView, *_KINDS.values()):
    _kind.__name__ = _kind.__qualname__ = "Tensor"
signed_types.update(_KINDS.values())


def signs_of(tensor: Any) -> tuple[bool, bool]:
    """Tell whether a tensor shows conjugates, and whether it shows negatives."""
    kind: Any = type(tensor)
    return (kind.conjugated, kind.negated) if kind in signed_types else (False, False)


def turned(array: Any, kind: Any) -> Any:
    """Turn stored values into shown ones, or the other way."""
    if kind.conjugated and holds_complex(array.dtype):
        array = e.conj(array)
    return e.negative(array) if kind.negated else array


def as_stored(tensor: Any) -> Any:
    """Return a tensor of the memory of a signed one."""
    result = _base.wrap(stored(tensor), _base._edge_slot.__get__(tensor), tensor._storage)
    result._extra = tensor._extra
    return result


def show(result: Any, array: Any, signs: tuple[bool, bool]) -> Any:
    """Let a tensor show what is stored in an array, with signs."""
    array_slot.__set__(result, array)
    if any(signs):
        result.__class__ = _KINDS[signs]
    return result


def carry(tensor: Any, result: Any, array: Any) -> Any:
    """Let what was made of a signed view show its part of the memory, with the same signs."""
    return show(result, array, signs_of(tensor))


def _sign_view(tensor: Any, primitive: Any, name: str, flip: tuple[bool, bool]) -> Any:
    """View a tensor with a sign turned."""
    if type(tensor) not in signed_types:
        _base.materialise(tensor)
    memory = stored(tensor)
    result = record(primitive, (tensor,), {}, name)
    register_view(tensor, result, ((primitive, {}),), current_mode())
    conjugated, negated = signs_of(tensor)
    array = memory[...] if isinstance(memory, np.ndarray) else memory
    return show(result, array, (conjugated != flip[0], negated != flip[1]))


def conjugate_view(tensor: Any) -> Any:
    """View a complex tensor as its conjugate."""
    return _sign_view(tensor, e.conj, "ConjBackward0", (True, False))


def negative_view(tensor: Any) -> Any:
    """View a tensor as its negative."""
    return _sign_view(tensor, e.negative, "NegViewBackward0", (False, True))


def of_memory(tensor: Any, view: Any) -> Any:
    """Make a view of the memory of a signed one, by a function of a plain view of it, and give it the same signs."""
    conjugated, negated = signs_of(tensor)
    for turn in (conjugate_view,) * conjugated + (negative_view,) * negated:
        tensor = turn(tensor)
    result = view(tensor)
    for turn in (negative_view,) * negated + (conjugate_view,) * conjugated:
        result = turn(result)
    return result


def write_stored(tensor: Any, value: Any, write: Any) -> None:
    """Write values into the memory of a signed view."""
    kind = type(tensor)
    target = as_stored(tensor)
    write(target, turned(np.asarray(value) if isinstance(value, (complex, float, int)) else value, kind))
    array_slot.__set__(tensor, target._array)
