"""torch.autograd.functional: products with Jacobians and Hessians, and those matrices themselves.

Note [How these are computed]
vjp is one backward. jvp and hvp are "double backward": the vjp is linear in the vector it is given, so its
own derivative with respect to that vector, a second backward, is the jvp. A None among gradients means
"independent of this input": it becomes zeros, or an error in strict mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.levels import DUAL, Level, running
from .._modes import current_mode, using
from .._progress import steps
from .._tracebacks import guarded
from ..tensor._base import wrap
from ..tensor._functions.creation import zeros, zeros_like
from ..tensor._functions.joining import stack
from ..tensor._object.leaves import set_requires_grad
from ..tensor._tensor import Tensor
from .forward_ad import dual_of

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_FUNCTION_OUTPUTS = "outputs of the user-provided function"
_NOT_STRICT = "This is not allowed in strict mode"

# What strict mode says of a gradient that is None, by what is being computed.
_MISSING = {
    "vjp": f"The output of the user-provided function is independent of input {{}}. {_NOT_STRICT}.",
    "jvp": (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
        f"the double backward trick to compute forward mode gradients. {_NOT_STRICT}."
    ),
    "vhp": f"The jacobian of the user-provided function is independent of input {{}}. {_NOT_STRICT}.",
    "hvp": (
        "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
        f"{_NOT_STRICT} as it prevents from using the double backward trick to replace forward mode AD."
    ),
}

# What strict mode says of a value that does not require grad, by the value.
_CONSTANT = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be computed in "
        "a differentiable manner from the input when running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
        f"{_NOT_STRICT}."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to "
        "input {} is "
        f"independent of the input. {_NOT_STRICT}. You should ensure that your function is twice "
        "differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
        "function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {} is independent of the input. "
        f"{_NOT_STRICT}. You should ensure that your function is thrice differentiable and that the hessian "
        "depends on the inputs."
    ),
}


# ---- checks, and going between tensors and tuples ----
def _as_tuple(value: Any, argument: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """Return whether a value is a tuple, and its tensors as one."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for i, one in enumerate(values):
        if not isinstance(one, Tensor):
            wrong = f"the value at index {i}" if is_tuple else f"the given {argument}"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"{wrong} has type {type(one)}."
            )
    return is_tuple, values


def _leaf(tensor: Any, requires_grad: bool) -> Any:
    """Let a tensor require grad; other than by its method, inside a vmap of ours too."""
    if type(tensor) is not Tensor:
        return tensor.requires_grad_(requires_grad)  # its class may want to see it
    set_requires_grad(tensor, requires_grad)
    return tensor


def _inside(tensors: tuple[Any, ...], create_graph: bool, requires_grad: bool) -> tuple[Any, ...]:
    """Make the function's own variables: leaves, or in the graph of tensors to be differentiated further."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else _leaf(t.detach(), requires_grad) for t in tensors
    )


def _outside(value: Any, create_graph: bool) -> Any:
    """Cut results loose unless they are to be differentiated."""
    if create_graph:
        return value
    return tuple(_outside(one, False) for one in value) if isinstance(value, tuple) else value.detach()


def _unwrapped(values: tuple[Any, ...], is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _check_vector(v: tuple[Any, ...], others: tuple[Any, ...], is_tuple: bool) -> None:
    if len(v) != len(others):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (one, other) in enumerate(zip(v, others, strict=True)):
        if one.size() != other.size():
            which = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(f"{which}v has invalid size: should be {other.size()} but got {one.size()}.")


def _vector(
    v: Any, others: tuple[Any, ...], is_tuple: bool, create_graph: bool, function: str, may_be_none_if: str
) -> Any:
    """Check the vector of a product; None stands for 1 where that has a meaning."""
    if v is None:
        if len(others) != 1 or others[0].nelement() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {may_be_none_if} a single Tensor with a single element."
            )
        return None
    _, v = _as_tuple(v, "v", function)
    v = _inside(v, create_graph, False)
    _check_vector(v, others, is_tuple)
    return v


_SINGLE_INPUT = "input to the user-provided function is"


def _check_differentiable(values: Sequence[Any], what: str, strict: bool) -> None:
    if not strict:
        return
    for i, one in enumerate(values):
        if one is None:  # a gradient that does not exist
            raise RuntimeError(_MISSING["vjp"].format(i))
        if not one.requires_grad:
            raise RuntimeError(_CONSTANT[what].format(i))


def _check_scalar(is_tuple: bool, outputs: tuple[Any, ...], function: str) -> None:
    if is_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


# ---- gradients ----
def _grad(
    outputs: Sequence[Any],
    inputs: tuple[Any, ...],
    vectors: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> tuple[Any, ...]:
    """Compute gradients of those outputs that have any; None where nothing arrives."""
    from . import grad  # at each call: a trace puts its own in its place

    given = [None] * len(outputs) if vectors is None else vectors
    chosen = [(out, v) for out, v in zip(outputs, given, strict=True) if out is not None and out.requires_grad]
    if not chosen:
        return (None,) * len(inputs)
    return grad(
        [out for out, _ in chosen],
        inputs,
        [v for _, v in chosen],
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=True,
        is_grads_batched=batched,
    )


def _complete(
    grads: Sequence[Any], like: Sequence[Any], strict: bool, create_graph: bool, product: str
) -> tuple[Any, ...]:
    """Put zeros where there is no gradient; in strict mode complain instead."""
    done = []
    for i, (one, other) in enumerate(zip(grads, like, strict=True)):
        if one is None:
            if strict:
                raise RuntimeError(_MISSING[product].format(i))
            one = zeros_like(other)
        elif strict and create_graph and not one.requires_grad:
            matrix = "jacobian" if product in ("vjp", "jvp") else "hessian"
            raise RuntimeError(
                f"The {matrix} of the user-provided function is independent of input {i}. {_NOT_STRICT} when "
                "create_graph=True."
            )
        done.append(one)
    return tuple(done)


# ---- products ----
def _product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """Compute the outputs and one of the four products. See Note [How these are computed]."""
    differentiable = create_graph or current_mode().grad
    with using(grad=True):
        is_tuple, inputs = _as_tuple(inputs, "inputs", name)
        inputs = _inside(inputs, create_graph, True)
        if name != "vjp":
            v = _vector(v, inputs, is_tuple, create_graph, name, _SINGLE_INPUT)
        many, outputs = _as_tuple(func(*inputs), _FUNCTION_OUTPUTS, name)
        _check_differentiable(outputs, "outputs", strict)
        if name == "vjp":
            v = _vector(v, outputs, many, create_graph, name, "user-provided function returns")
        pulled, targets = outputs, inputs  # the vector is pulled back from these to those
        if name in ("vhp", "hvp"):
            _check_scalar(many, outputs, name)
            pulled = _grad(outputs, inputs, create_graph=True)
            _check_differentiable(pulled, "jacobian", strict)
        like, of_outputs = (outputs, many) if name == "jvp" else (inputs, is_tuple)
        if name in ("jvp", "hvp"):
            slopes, targets = pulled, tuple(zeros_like(t, requires_grad=True) for t in like)
            pulled = _grad(slopes, inputs, targets, create_graph=True)
            if name == "jvp":
                _check_differentiable(pulled, "grad_inputs", strict)
            else:
                _check_differentiable(slopes, "hessian", strict)
    with using(grad=differentiable):
        product = _complete(_grad(pulled, targets, v, create_graph), like, strict, create_graph, name)
    return _unwrapped(_outside(outputs, create_graph), many), _unwrapped(_outside(product, create_graph), of_outputs)


@guarded
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the function's outputs, and the product of a vector with its Jacobian."""
    return _product("vjp", func, inputs, v, create_graph, strict)


@guarded
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the function's outputs, and the product of its Jacobian with a vector."""
    return _product("jvp", func, inputs, v, create_graph, strict)


@guarded
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a scalar function's output, and the product of a vector with its Hessian."""
    return _product("vhp", func, inputs, v, create_graph, strict)


@guarded
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return a scalar function's output, and the product of its Hessian with a vector."""
    return _product("hvp", func, inputs, v, create_graph, strict)


# ---- matrices ----
@guarded
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the Jacobian: one row at a time, or with `vectorize` all at once by vmap.

    Args:
        func: a function of tensors
        inputs: a tensor, or a tuple of them
        create_graph: whether the result can be differentiated
        strict: raise an error where an output does not depend on an input
        vectorize: compute all rows at once
        strategy: "reverse-mode", or "forward-mode" (with `vectorize`)

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has '
            'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            '"reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are '
                "not supported together (yet). Please either set `create_graph=False` or "
                '`strategy="reverse-mode"`.'
            )
        return _forward_jacobian(func, inputs, strict, vectorize)
    with using(grad=True):
        is_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _inside(inputs, create_graph, True)
        many, outputs = _as_tuple(func(*inputs), _FUNCTION_OUTPUTS, "jacobian")
        _check_differentiable(outputs, "outputs", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                    "supported together. Please either set `strict=False` or `vectorize=False`."
                )
            rows = _batched_rows(outputs, inputs, create_graph)
        else:
            rows = tuple(_rows(i, out, inputs, create_graph, strict) for i, out in enumerate(outputs))
        rows = _outside(rows, create_graph)
    return _unwrapped(tuple(_unwrapped(row, is_tuple) for row in rows), many)


def _rows(i: int, out: Any, inputs: tuple[Any, ...], create_graph: bool, strict: bool) -> tuple[Any, ...]:
    """Compute the Jacobian of one output with respect to all inputs, one element at a time."""
    columns: list[list[Any]] = [[] for _ in inputs]
    for j in steps(range(out.nelement()), "jacobian: rows"):
        grads = _grad((out.reshape(-1)[j],), inputs, create_graph=create_graph, retain_graph=True)
        for k, (one, other, column) in enumerate(zip(grads, inputs, columns, strict=True)):
            if one is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {k}. {_NOT_STRICT}."
                    )
                one = zeros_like(other)
            elif strict and create_graph and not one.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. {_NOT_STRICT} "
                    "when create_graph=True."
                )
            column.append(one)
    return tuple(
        stack(column, 0).view(out.size() + other.size()) for column, other in zip(columns, inputs, strict=True)
    )


def _batched_rows(outputs: tuple[Any, ...], inputs: tuple[Any, ...], create_graph: bool) -> tuple[tuple[Any, ...], ...]:
    """Compute all rows by one backward over a batch: the standard basis of all outputs together."""
    flat = tuple(out.reshape(-1) for out in outputs)
    grads = _grad(flat, inputs, _basis(flat), create_graph, True, batched=True)
    total = sum(out.nelement() for out in outputs)
    blocks = []
    for one, other in zip(grads, inputs, strict=True):
        matrix = _zeros((total, *other.size()), other) if one is None else one
        parts = matrix.split([out.nelement() for out in outputs], 0)
        blocks.append(tuple(p.view(out.size() + other.size()) for p, out in zip(parts, outputs, strict=True)))
    return tuple(zip(*blocks, strict=True))


def _basis(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return, for each flat tensor, its columns of the standard basis of all of them together."""
    total = sum(t.nelement() for t in tensors)
    basis, start = [], 0
    for tensor in tensors:
        count = tensor.nelement()
        part = np.zeros((total, count), tensor._array.dtype)
        part[np.arange(start, start + count), np.arange(count)] = 1
        basis.append(wrap(part).to(tensor.device))
        start += count
    return tuple(basis)


def _zeros(shape: tuple[int, ...], like: Any) -> Any:
    return zeros(shape, dtype=like.dtype, device=like.device)


def _forward_jacobian(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    """Compute the Jacobian in forward mode, all columns at once."""
    from ..func import vmap
    from ..tensor._aliasing.leaving import tangent_of

    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not '
            'supported together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    is_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    info: dict[str, Any] = {}

    def checked(*values: Any) -> tuple[Any, ...]:
        info["many"], outputs = _as_tuple(func(*values), _FUNCTION_OUTPUTS, "jacobian")
        info["sizes"] = [out.size() for out in outputs]
        return outputs

    def column(*flat: Any) -> Any:
        level = Level(DUAL)
        with running("jvp", level):
            duals = [dual_of(one, t.view(one.size()), level) for one, t in zip(inputs, flat, strict=True)]
            return tuple(tangent_of(output, level) for output in checked(*duals))

    columns = vmap(column, out_dims=-1)(*_basis([t.reshape(-1) for t in inputs]))
    counts = [t.nelement() for t in inputs]
    matrix = []
    for one, size in zip(columns, info["sizes"], strict=True):
        parts = one.split(counts, -1)
        blocks = [p.reshape(size + other.size()) for p, other in zip(parts, inputs, strict=True)]
        matrix.append(blocks if is_tuple else blocks[0])
    if not info["many"]:
        return matrix[0]
    return matrix if is_tuple else tuple(matrix)  # lists in lists for several inputs, as torch has them here


@guarded
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the Hessian of a scalar function: the Jacobian of its gradient.

    Args:
        func: a function of tensors to a number
        inputs: a tensor, or a tuple of them
        create_graph: whether the result can be differentiated
        strict: raise an error where an output does not depend on an input
        vectorize: compute all rows at once
        outer_jacobian_strategy: "reverse-mode", or "forward-mode" (with `vectorize`)

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    is_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*values: Any) -> Any:
        many, outputs = _as_tuple(func(*values), _FUNCTION_OUTPUTS, "hessian")
        _check_differentiable(outputs, "outputs", strict)
        _check_scalar(many, outputs, "hessian")
        return outputs[0].squeeze()

    def slopes(*values: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            values = tuple(_leaf(t, True) for t in values)
        found = jacobian(scalar, values, create_graph=True)
        _check_differentiable(found, "jacobian", strict)
        return found

    matrix = jacobian(
        slopes,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return matrix if is_tuple else matrix[0][0]
