"""Questions about tensors, answered in Python values."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ...overrides import arguments, called, declared, refuses_itself
from .._functions.casting import truth
from .._recording.descriptions import MADE
from .._recording.record import promoted
from .._tensor import Tensor


@declared(seen=False)
@refuses_itself  # as Python does
def is_tensor(obj: Any) -> bool:
    """Tell whether an object is a tensor.

    Args:
        obj: any object

    Example:
        >>> torch.is_tensor(torch.ones(1)), torch.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def _question(name: str) -> Any:
    def ask(input: Any) -> Any:
        return getattr(input, name)()

    return called(ask, name, MADE.get(name, f"Ask a tensor: `{name}()`."))


is_floating_point = _question("is_floating_point")
is_complex = _question("is_complex")
is_signed = _question("is_signed")
is_conj = _question("is_conj")
is_neg = _question("is_neg")
is_inference = _question("is_inference")
numel = _question("numel")


def is_nonzero(input: Tensor) -> bool:
    """Tell whether the one element of a tensor is not zero."""
    return truth(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


def result_type(
    tensor: Any = None, other: Any = None, *, scalar: Any = None, scalar1: Any = None, scalar2: Any = None
) -> _dtypes.dtype:
    """Return the dtype that an operation of two values has.

    Args:
        tensor1: a tensor, or a number
        tensor2: a tensor, or a number

    Example:
        >>> torch.result_type(torch.tensor([1, 2]), 1.5)
        torch.float32
    """
    operands = [one for one in (tensor, other, scalar, scalar1, scalar2) if one is not None]
    if len(operands) != 2:
        arguments().check(result_type, tuple(operands), {})
    arrays = [one._array if isinstance(one, Tensor) else one for one in operands]
    return _dtypes.from_numpy(promoted(arrays)[1])


@declared(forms="function")
def real(input: Tensor) -> Any:
    """Return the real part."""
    return input.real


@declared(forms="function")
def imag(input: Tensor) -> Any:
    """Return the imaginary part."""
    return input.imag
