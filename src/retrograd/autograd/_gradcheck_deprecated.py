"""Jacobians that torch.autograd.gradcheck once made public, and that old tests still call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._warnings import warn
from ..tensor._tensor import Tensor
from ._gradcheck_jacobians import as_tuple, checked_inputs, columns_of, numerical_jacobian


def _warn(name: str) -> None:
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. If you have a specific use for this or feature request for this to be a "
        "stable API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
    )


def _refuse_other_seeds(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Any, ...]:
    """Return the Jacobians of a function's first output by finite differences. `fn` takes the inputs as a tuple."""
    _warn("get_numerical_jacobian")
    _refuse_other_seeds("get_numerical_jacobian", grad_out)
    if any(isinstance(out, Tensor) and out.is_complex() for out in as_tuple(fn(inputs))):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    targets = [one for _, one in checked_inputs(as_tuple(inputs if target is None else target))]
    return tuple(numerical_jacobian(lambda: fn(inputs), (), one, [0], eps)[0] for one in targets)


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """Return an output's Jacobians by backward; and whether a second run agrees, sizes and dtypes are right."""
    _warn("get_analytical_jacobian")
    _refuse_other_seeds("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    found = columns_of(as_tuple(inputs), output, nondet_tol)
    return tuple(found.matrices), found.equal, found.sizes_fit, found.dtypes_fit


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Any, ...]:
    """Return the Jacobians of all outputs with respect to one input, by finite differences."""
    tensor = inputs[input_idx] if input is None else input
    return tuple(numerical_jacobian(fn, inputs, tensor, range(len(outputs)), eps))
