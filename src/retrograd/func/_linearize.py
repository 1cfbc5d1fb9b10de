"""Derivatives at a point, to be applied many times: linearize and hvp; and what torch.func has for looking inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.arrays import Batched, Dual
from .._core.primitive import check_alive
from .._tracebacks import guarded, hide
from ..tensor._aliasing.entering import entered
from ..tensor._base import wrap
from ..tensor._functions.creation import zeros, zeros_like
from ..tensor._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from ._transforms import Argnums, grad, jvp, vjp


@guarded
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `func(*primals)` and a function that multiplies the Jacobian at that point with tangents.

    `func` runs once. Its pull-back is linear in the cotangent, and the pull-back of a linear map is its transpose: pulling the
    tangents back through the pull-back multiplies them with the Jacobian, without a look at `func` again.

    Args:
        func: a function of tensors
        *primals: the point

    Example:
        >>> out, times = torch.func.linearize(lambda x: x**2, torch.tensor([1.0, 2.0]))
        >>> times(torch.tensor([1.0, 0.0])), times(torch.tensor([0.0, 1.0]))
        (tensor([2., 0.]), tensor([0., 4.]))
    """
    given, spec = tree_flatten(primals)
    for primal in given:
        if not isinstance(primal, Tensor):
            raise TypeError(f"linearize(): expected the primals to be tensors, but got {type(primal).__name__}")
    leaves: list[Any] = []
    out_spec: Any = None

    def of_tensors(*values: Any) -> Any:
        nonlocal leaves, out_spec
        leaves, out_spec = tree_flatten(func(*tree_unflatten(values, spec)))
        return tuple(leaf for leaf in leaves if _has_derivative(leaf)) or (zeros(()),)

    outputs, pull_back = vjp(of_tensors, *given)
    _, push_forward = vjp(pull_back, tuple(zeros_like(output) for output in outputs))
    left = iter(outputs)
    # copies: a write into what is returned must not reach what the pull-back has saved
    leaves = [next(left).clone() if _has_derivative(leaf) else leaf for leaf in leaves]

    @guarded
    def jvp_fn(*tangents: Any) -> Any:
        flat, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(f"Expected the tangents {tangent_spec} to have the same argspec as the primals {spec}")
        for k, (tangent, primal) in enumerate(zip(flat, given, strict=True)):
            for what in ("shape", "device", "dtype"):
                ours, theirs = getattr(tangent, what), getattr(primal, what)
                if ours != theirs:
                    raise RuntimeError(
                        f"tangent:{k} with {what} {ours} in flattened pytree doesn't match the {what} {theirs} of the "
                        "corresponding primal."
                    )
        pushed = iter(push_forward(tuple(flat))[0])
        results = []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                leaf = next(pushed) if _has_derivative(leaf) else zeros_like(leaf)
            results.append(leaf)
        return tree_unflatten(results, out_spec)

    return tree_unflatten(leaves, out_spec), jvp_fn


def _has_derivative(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf._array.dtype.kind in "fcV"


@guarded
def hvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], argnums: Argnums = 0) -> Any:
    """Return the gradient of a scalar function and its Hessian times the tangents, forward over reverse."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums

    def gradient(*chosen: Any) -> Any:
        full = list(primals)
        for n, value in zip(numbers, chosen, strict=True):
            full[n] = value
        return grad(func, argnums)(*full)

    return jvp(gradient, tuple(primals[n] for n in numbers), tangents)


REMOVE = """functionalize(f, remove='mutations'): received invalid argument for remove={}. Valid options are:
     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their \
out-of-place equivalents.
     remove='mutations_and_views': In addition to the above, all aliasing operators {{view}} will be replaced with their \
non-aliasing counterparts, {{view}}_copy.
"""


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that acts as `func` does.

    In torch this matters to tracers, which see no mutation inside. Here operations are recorded as functions in any case: a write is
    the functional operation and a store.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(REMOVE.format(remove))

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            hide(error)
            raise

    return wrapper


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """Return what a tensor inside transforms holds: all samples of a batch, the plain part of a dual. For looking only."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): expected a Tensor, but got {type(tensor).__name__}")
    link = entered(tensor)
    if link is not None and link.level is not None and link.level.alive:
        return debug_unwrap(link.outer) if recurse else link.outer
    array = tensor._array
    if not isinstance(array, (Batched, Dual)):
        return tensor
    array = check_alive(array)
    while isinstance(array, (Batched, Dual)):
        array = array.array if isinstance(array, Batched) else array.primal
        if not recurse:
            break
    return wrap(array)
