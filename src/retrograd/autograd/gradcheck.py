"""torch.autograd.gradcheck: compare gradients with finite differences.

Note [Jacobians of complex functions]
Outputs are always real here: gradcheck takes complex ones apart. With respect to a complex input x + iy the
gradient of a real s is ds/dx + i ds/dy, which is torch's convention. A Jacobian has a row for each element of
the input, a column for each of the output.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import _dtypes
from .._progress import steps
from .._tracebacks import guarded
from .._warnings import warn
from ..tensor import _base
from ..tensor._base import wrap
from ..tensor._functions.creation import empty, zeros, zeros_like
from ..tensor._functions.generators import Generator
from ..tensor._functions.joining import stack
from ..tensor._functions.random_tensors import rand, randn_like
from ..tensor._tensor import Tensor
from . import _gradcheck_texts as texts
from . import forward_ad, grad
from .function import OLD_VMAP, Function

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class _Tolerances(NamedTuple):
    """What the checks have in common."""

    eps: float
    rtol: float
    atol: float
    nondet_tol: float
    check_dtypes: bool


@guarded
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of a function against small finite differences in double precision.

    Fast mode compares the Jacobian along one random direction only. `masked` is for sparse tensors, unused.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x.sin().sum(), (x,))
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    tolerances = _Tolerances(eps, rtol, atol, nondet_tol, check_grad_dtypes)
    given = as_tuple(inputs)
    try:
        _check_inputs(given)
        outputs = [out for out in as_tuple(func(*given)) if out.requires_grad]
        check = _check_fast if fast_mode else _check_slow
        if check_backward_ad:
            _check_backward(check, func, given, tolerances)
        if check_forward_ad:
            _check_forward(check, func, given, tolerances, check_undefined_grad)
        if check_batched_forward_grad:
            _check_batched_forward(func, given)
        if check_backward_ad:
            if check_batched_grad:
                for i, out in enumerate(outputs):
                    _check_batched(given, out, i)
            _check_zero_seed(outputs, given)
            if check_undefined_grad:
                _check_undefined_backward(func, outputs, given)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@guarded
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check second derivatives: gradcheck of the gradient as a function of inputs and `grad_outputs`.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin().sum(), (x,))
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [out for out in as_tuple(func(*given)) if out.requires_grad]
        seeds = tuple(_random_seed(out, gen_non_contig_grad_outputs) for out in outputs)
    else:
        seeds = as_tuple(grad_outputs)
    followed = {i for i, _ in checked_inputs(given)}
    followed_seeds = {i for i, _ in checked_inputs(seeds)}

    def gradient(*args: Any) -> Any:
        # forward mode hands in tensors that are no leaves of the graph
        values = [_requiring(one, i in followed) for i, one in enumerate(args[: len(args) - len(seeds)])]
        vectors = [_requiring(one, i in followed_seeds) for i, one in enumerate(args[len(args) - len(seeds) :])]
        results = [out for out in as_tuple(func(*values)) if isinstance(out, Tensor) and out.requires_grad]
        targets = [one for i, one in enumerate(values) if i in followed]
        grads = grad(results, targets, vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        given + seeds,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _requiring(value: Any, wanted: bool) -> Any:
    return value.requires_grad_() if wanted and not value.requires_grad else value


def _random_seed(output: Any, strided: bool) -> Any:
    """Draw a gradient for an output, uniform in [-1, 1); `strided` leaves gaps in its memory."""
    shape = tuple(output.shape)
    if strided and shape and output.numel() > 1:
        shape = (*shape[:-1], 2 * shape[-1])
    dtype = output._array.dtype if is_differentiable(output) else np.dtype(np.float64)
    is_complex = dtype.kind == "c"
    real = empty((*shape, 2) if is_complex else shape, dtype=_real_dtype(dtype)).uniform_(-1, 1)
    drawn = wrap(real._array[..., 0] + 1j * real._array[..., 1]) if is_complex else real
    if strided and drawn.shape != output.shape:
        drawn = drawn[..., 1::2]
    return drawn.detach().to(output.device).requires_grad_()


def _real_dtype(dtype: Any) -> Any:
    return _dtypes.from_numpy(np.zeros(0, dtype).real.dtype if dtype.kind == "c" else dtype)


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    found = checked_inputs(inputs)
    for i, tensor in found:
        if tensor._array.dtype not in (np.float64, np.complex128):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This "
                "check will "
                "likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        tensor.retain_grad()
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


# ---- real and imaginary parts ----
def _check_backward(check: Any, func: Any, inputs: tuple[Any, ...], tolerances: _Tolerances) -> None:
    """Check backward; complex outputs in two parts, the imaginary one first."""
    outputs = as_tuple(func(*inputs))
    if not any(out.is_complex() for out in outputs):
        check(_Comparison(func, inputs, tolerances, False, None, ()))
        return
    halved = [i for i, out in enumerate(o for o in outputs if o.requires_grad) if out.is_complex()]
    for part in ("imaginary", "real"):
        name = "imag" if part == "imaginary" else "real"

        def taken(*args: Any, name: str = name) -> Any:
            return tuple(getattr(out, name) if out.is_complex() else out for out in as_tuple(func(*args)))

        check(_Comparison(taken, inputs, tolerances, False, part, halved))


def _check_forward(check: Any, func: Any, inputs: tuple[Any, ...], tolerances: _Tolerances, undefined: bool) -> None:
    """Check forward mode; complex inputs in two parts, the imaginary one first."""
    halved = [i for i, one in enumerate(inputs) if isinstance(one, Tensor) and one.is_complex()]
    if not halved:
        check(_Comparison(func, inputs, tolerances, True, None, ()))
        if undefined:
            _check_undefined_forward(func, inputs)
        return
    for part in ("imaginary", "real"):
        imaginary = part == "imaginary"

        def joined(*args: Any, imaginary: bool = imaginary) -> Any:
            whole = list(args)
            for i in halved:
                fixed = inputs[i].detach()
                whole[i] = fixed.real + args[i] * 1j if imaginary else args[i] + fixed.imag * 1j
            return func(*whole)

        # memory of their own: the other part, which stays, is read from the inputs
        parts = [
            _own(one.detach().imag if imaginary else one.detach().real, one.requires_grad) if i in halved else one
            for i, one in enumerate(inputs)
        ]
        check(_Comparison(joined, parts, tolerances, True, part, halved))
        if undefined:
            _check_undefined_forward(joined, parts)


def _own(tensor: Any, requires_grad: bool) -> Any:
    return tensor.clone().requires_grad_(requires_grad)


def _compared(inputs: Sequence[Any], outputs: tuple[Any, ...], forward: bool) -> list[int]:
    """Return the numbers of the outputs whose Jacobians are compared."""
    if forward:
        return [i for i, out in enumerate(outputs) if is_differentiable(out)]
    return [i for i, out in enumerate(outputs) if out.requires_grad]


class _Comparison:
    """One comparison of a function's Jacobians: in one mode, and of complex numbers one part."""

    def __init__(
        self,
        func: Any,
        inputs: Sequence[Any],
        tolerances: _Tolerances,
        forward: bool,
        part: str | None,
        halved: Iterable[int],
    ) -> None:
        self.func, self.inputs, self.tolerances, self.forward = func, inputs, tolerances, forward
        self.part, self.halved = part, halved
        self.outputs = as_tuple(func(*inputs))
        self.chosen = _compared(inputs, self.outputs, forward)
        self.checked = checked_inputs(inputs)

    def refuse(self, analytical: Any, numerical: Any, i: int, j: int, more: str = "") -> None:
        """Raise the error of output `i` and input `j`, counting those that are compared."""
        halved = (self.checked[j][0] if self.forward else i) in self.halved
        named = self.part if halved else None
        raise GradcheckError(texts.mismatch(analytical, numerical, i, j, named, self.forward) + more)

    def refuse_if_not_zero(self, slopes: Iterable[Any]) -> None:
        """Raise if outputs that claim to have no gradient have one."""
        if any(bool(np.any(slope.numpy(force=True) != 0)) for slope in slopes):
            raise GradcheckError("Numerical gradient for function expected to be zero")


# ---- slow mode: whole Jacobians ----
def _check_slow(one: _Comparison) -> None:
    func, inputs, tolerances, chosen = one.func, one.inputs, one.tolerances, one.chosen
    if not chosen or (one.forward and not any(out.requires_grad for out in one.outputs)):
        every = range(len(one.outputs))
        for _, tensor in one.checked:
            one.refuse_if_not_zero(numerical_jacobian(func, inputs, tensor, every, tolerances.eps))
        return
    numerical = [numerical_jacobian(func, inputs, tensor, chosen, tolerances.eps) for _, tensor in one.checked]
    if one.forward:
        found = [forward_jacobian(func, inputs, at, len(chosen), tolerances.check_dtypes) for at, _ in one.checked]
        analytical = [list(row) for row in zip(*found, strict=True)]
    else:
        analytical = []
    for i, k in enumerate(chosen):
        if not one.forward:
            output = one.outputs[k]
            analytical.append(analytical_jacobian(inputs, output, tolerances.nondet_tol, tolerances.check_dtypes))
        for j, (a, n) in enumerate(zip(analytical[i], (row[i] for row in numerical), strict=True)):
            if not close(a, n, tolerances.rtol, tolerances.atol):
                one.refuse(a, n, i, j)


# ---- fast mode: one random direction ----
def _check_fast(one: _Comparison) -> None:
    func, inputs, tolerances, chosen = one.func, one.inputs, one.tolerances, one.chosen
    directions = Directions()
    us = [directions.of_input(tensor) for _, tensor in one.checked]
    vs = None if one.forward else [directions.of_output(one.outputs[k]) for k in chosen]
    if not chosen:
        every = range(len(one.outputs))
        for (_, tensor), u in zip(one.checked, us, strict=True):
            pairs = numerical_directional(func, inputs, tensor, u, every, tolerances.eps)
            one.refuse_if_not_zero(s for pair in pairs for s in pair if s is not None)
        return
    pulled = None
    if vs is not None:
        pulled = [
            analytical_products(inputs, one.outputs[k], v, tolerances.nondet_tol, tolerances.check_dtypes)
            for k, v in zip(chosen, vs, strict=True)
        ]
    for j, ((at, tensor), u) in enumerate(zip(one.checked, us, strict=True)):
        slopes = numerical_directional(func, inputs, tensor, u, chosen, tolerances.eps)
        columns = forward_column(func, inputs, at, u, tolerances.check_dtypes) if one.forward else []
        for i in range(len(chosen)):
            atol = tolerances.atol * sum_of(u)
            if vs is None or pulled is None:
                numerical, analytical = slopes[i][0], columns[i]
            else:
                numerical, analytical = _products(slopes[i], vs[i]), _along(pulled[i][j], u)
                atol *= sum_of(vs[i])
            if not close(analytical, numerical, tolerances.rtol, atol):
                one.refuse(analytical, numerical, i, j, _slow_report(one, i, j))


def _products(slopes: tuple[Any, Any], v: Any) -> Any:
    """Multiply slopes with a vector; the slopes of the imaginary part count as imaginary."""
    real, imaginary = slopes
    product = (real * v.to(real.dtype)).sum()
    return product if imaginary is None else product + (imaginary * v.to(imaginary.dtype)).sum() * 1j


def _along(gradient: Any, u: Any) -> Any:
    """Multiply a gradient with a direction, real and imaginary parts each with their own."""
    if isinstance(u, tuple):
        return (gradient.real * u[0]).sum() + (gradient.imag * u[1]).sum() * 1j
    return (gradient * u).sum()


def _slow_report(one: _Comparison, i: int, j: int) -> str:
    """Compare the whole Jacobians of output `i` and input `j`, and say how they differ."""
    func, inputs, tolerances, at = one.func, one.inputs, one.tolerances, one.checked[j][0]
    numerical = numerical_jacobian(func, inputs, inputs[at], one.chosen, tolerances.eps)[i]
    if one.forward:
        analytical = forward_jacobian(func, inputs, at, len(one.chosen), False)[i]
    else:
        analytical = analytical_jacobian(inputs, as_tuple(func(*inputs))[one.chosen[i]], float("inf"), False)[j]
    difference = (analytical - numerical).abs().max()
    passed = close(analytical, numerical, tolerances.rtol, tolerances.atol)
    return texts.slow_report(analytical, numerical, difference, passed)


# ---- batches ----
def _check_batched(inputs: tuple[Any, ...], output: Any, number: int) -> None:
    """Check that gradients of a batch of vectors are those of its members."""
    tensors = [t for _, t in checked_inputs(inputs)]

    def pull(v: Any) -> tuple[Any, ...]:
        grads = grad(output, tensors, v, retain_graph=True, allow_unused=True)
        return tuple(_or_zeros(g, t) for g, t in zip(grads, tensors, strict=True))

    _compare_batched(pull, output, number, None)


def _check_batched_forward(func: Any, inputs: tuple[Any, ...]) -> None:
    """Check that tangents of a batch of directions are those of its members."""
    for j, (at, tensor) in enumerate(checked_inputs(inputs)):

        def push(tangent: Any, at: int = at) -> tuple[Any, ...]:
            found = tangents_of(func, inputs, {at: tangent})
            return tuple(_or_zeros(t, value) for value, t in found)

        _compare_batched(push, tensor, None, j)


def _or_zeros(value: Any, like: Any) -> Any:
    return zeros_like(like.detach()) if value is None else value


def _compare_batched(one: Any, like: Any, output: int | None, input: int | None) -> None:
    """Compare a batch of two with its members. Forward mode knows the input's number only."""
    from ..func._vmap import vmap

    samples = [randn_like(like.detach()) for _ in range(2)]
    expected = [stack(list(parts), 0) for parts in zip(*[one(v) for v in samples], strict=True)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        try:
            found = vmap(one, _kind=OLD_VMAP)(stack(samples, 0))
        except RuntimeError as error:
            why = texts.FAILED_BATCHED if input is None else texts.FAILED_BATCHED_FORWARD
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{why}") from error
    for j, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if not close(got, wanted, 1e-5, 1e-8):
            numbers = (output, j) if input is None else (input, input)
            raise GradcheckError(texts.batched_mismatch(*numbers, got, wanted, input is not None))  # type: ignore[arg-type]


# ---- zero and missing gradients ----
def _check_zero_seed(outputs: list[Any], inputs: tuple[Any, ...]) -> None:
    """Check that backward is linear in what it is given: zeros give zeros, of the inputs' kind."""
    if not outputs:
        return
    tensors = [t for _, t in checked_inputs(inputs)]
    grads = grad(outputs, tensors, [zeros_like(out.detach()) for out in outputs], retain_graph=True, allow_unused=True)
    for gradient, tensor in zip(grads, tensors, strict=True):
        if gradient is None:
            continue
        if bool(np.any(gradient.detach().numpy(force=True) != 0)):
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient.dtype != tensor.dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient.device != tensor.device:
            raise GradcheckError("grad is incorrect device")
        if gradient.size() != tensor.size():
            raise GradcheckError("grad is incorrect size")


class UndefinedGrad(Function):
    """The identity whose gradient is missing."""

    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> None:
        return None


def _check_undefined_backward(func: Any, outputs: list[Any], inputs: tuple[Any, ...]) -> None:
    """Check that backward copes with outputs that get no gradient: all of them, and each alone."""
    tensors = [t for _, t in checked_inputs(inputs)]

    def try_without(missing: Callable[[int], bool]) -> None:
        fresh = [out for out in as_tuple(func(*inputs)) if out.requires_grad]
        ends = [UndefinedGrad.apply(out) if missing(i) else out for i, out in enumerate(fresh)]
        if not ends:
            return
        try:
            grads = grad(ends, tensors, [zeros_like(out.detach()) for out in ends], allow_unused=True)
        except RuntimeError as error:
            warn(texts.UNDEFINED_WARNING)
            raise GradcheckError(texts.UNDEFINED_RAISED) from error
        for gradient in grads:
            if gradient is not None and bool(np.any(gradient.detach().numpy(force=True) != 0)):
                warn(texts.UNDEFINED_WARNING)
                raise GradcheckError(texts.UNDEFINED_NOT_ZERO)

    try_without(lambda i: True)
    if len(outputs) > 1:
        for chosen in range(len(outputs)):
            try_without(lambda i, chosen=chosen: i == chosen)  # type: ignore[misc]


def _check_undefined_forward(func: Any, inputs: Sequence[Any]) -> None:
    """Check that an input without tangent counts as one with tangent zero."""
    directions = Directions()
    tangents = {i: directions.of_input(one).reshape(one.shape) for i, one in checked_inputs(inputs)}
    for at, tensor in checked_inputs(inputs):
        zero = tangents_of(func, inputs, {**tangents, at: zeros_like(tensor.detach())})
        plain = [one.detach() if i == at else one for i, one in enumerate(inputs)]
        missing = tangents_of(func, plain, {i: t for i, t in tangents.items() if i != at})
        for number, ((_, one), (_, two)) in enumerate(zip(zero, missing, strict=True)):
            if one is not None and two is not None and not close(one, two, 1e-5, 1e-8):
                raise GradcheckError(
                    "Mismatch in tangent values for output with index: ", number, " when input: ", tensor,
                    " has an undefined tangent value. ", " Got: ", one, " but expected: ", two,
                )  # fmt: skip


# ---- Jacobians: by finite differences, by backward and by forward mode; whole or in a direction ----
class GradcheckError(RuntimeError):
    """A gradient is not what it should be."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return outputs or inputs as a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def is_differentiable(value: Any) -> bool:
    """Tell whether a value is a tensor of floating point or complex numbers."""
    return isinstance(value, Tensor) and value._array.dtype.kind in "fcV"


def checked_inputs(inputs: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the inputs that require grad, with their positions."""
    return [(i, one) for i, one in enumerate(inputs) if isinstance(one, Tensor) and one.requires_grad]


# ---- finite differences ----
def _difference(
    func: Callable[..., Any], inputs: Sequence[Any], memory: Any, at: Any, step: Any, eps: float, where: str
) -> list[Any]:
    """Move a part of an input's memory by -step and +step; return the slope of every output, flat."""
    before = memory[at].copy()
    try:
        memory[at] = before - step
        low = [one.clone() for one in as_tuple(func(*inputs))]
        memory[at] = before + step
        high = [one.clone() for one in as_tuple(func(*inputs))]
    finally:
        memory[at] = before
    slopes = []
    for a, b in zip(low, high, strict=True):
        for what, x, y in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if x != y:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                    f"{where}by {eps}, but got: {what}s {x} and {y}."
                )
        slopes.append(((b - a) / (2 * eps)).detach().reshape(-1))
    return slopes


def numerical_jacobian(
    func: Callable[..., Any], inputs: Sequence[Any], tensor: Any, chosen: Sequence[int], eps: float
) -> list[Any]:
    """Return the Jacobians of chosen outputs with respect to one of the inputs, element by element."""
    memory = _base.materialise(tensor)
    rows: list[list[Any]] = [[] for _ in chosen]
    for index in steps(np.ndindex(*memory.shape), "gradcheck: differences", memory.size):
        where = f"on index {index} "
        slopes = _difference(func, inputs, memory, index, memory.dtype.type(eps), eps, where)
        if memory.dtype.kind == "c":
            turned = _difference(func, inputs, memory, index, memory.dtype.type(eps * 1j), eps, where)
            slopes = [dx + dy * 1j for dx, dy in zip(slopes, turned, strict=True)]
        for row, k in zip(rows, chosen, strict=True):
            row.append(slopes[k])
    return [_matrix(row, tensor) for row in rows]


def _matrix(rows: list[Any], tensor: Any) -> Any:
    return stack(rows, 0) if rows else zeros((0, 0), dtype=tensor.dtype)


def numerical_directional(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    tensor: Any,
    direction: Any,
    chosen: Sequence[int],
    eps: float,
) -> list[tuple[Any, Any]]:
    """Return slopes of chosen outputs along a direction in one input: of its real and its imaginary part."""
    memory = _base.materialise(tensor)
    real, imaginary = direction if isinstance(direction, tuple) else (direction, None)
    step = _shaped(real, memory) * eps
    slopes: list[Any] = _difference(func, inputs, memory, ..., step.astype(memory.dtype), eps, "")
    turned: list[Any] = [None] * len(slopes)
    if imaginary is not None:
        step = _shaped(imaginary, memory) * (eps * 1j)
        turned = _difference(func, inputs, memory, ..., step.astype(memory.dtype), eps, "")
    return [(slopes[k], turned[k]) for k in chosen]


def _shaped(vector: Any, memory: Any) -> Any:
    return vector._array.reshape(memory.shape)


# ---- backward ----
def _pulled(output: Any, inputs: list[Any], v: Any) -> list[Any]:
    return list(grad(output, inputs, v, retain_graph=True, allow_unused=True))


class Columns(NamedTuple):
    """Jacobians found by backward, and what a second run said of them."""

    matrices: list[Any]
    equal: bool
    sizes_fit: bool
    dtypes_fit: bool

    def accepted(self, nondet_tol: float, check_dtypes: bool) -> list[Any]:
        """Return the matrices, or raise if they are not to be trusted."""
        if check_dtypes and not self.dtypes_fit:
            raise GradcheckError("Gradient has dtype mismatch")
        if not self.sizes_fit:
            raise GradcheckError("Analytical gradient has incorrect size")
        if not self.equal:
            raise GradcheckError(texts.NOT_REENTRANT.format(nondet_tol))
        return self.matrices


def columns_of(inputs: Sequence[Any], output: Any, nondet_tol: float) -> Columns:
    """Return the Jacobians of one output by backward, element by element, two times."""
    tensors = [t for _, t in checked_inputs(inputs)]
    basis = np.zeros(int(np.prod(output.shape, dtype=int)), output._array.dtype)

    def columns() -> list[list[Any]]:
        found = []
        for j in steps(range(basis.size), "gradcheck: backward"):
            basis[j] = 1
            found.append(_pulled(output, tensors, wrap(basis.reshape(output.shape).copy()).to(output.device)))
            basis[j] = 0
        return [[column[i] for column in found] for i in range(len(tensors))]

    return _twice(columns, tensors, nondet_tol)


def analytical_jacobian(inputs: Sequence[Any], output: Any, nondet_tol: float, check_dtypes: bool) -> list[Any]:
    """Return the Jacobians of one output by backward; a second run must agree."""
    return columns_of(inputs, output, nondet_tol).accepted(nondet_tol, check_dtypes)


def analytical_products(inputs: Sequence[Any], output: Any, v: Any, nondet_tol: float, check_dtypes: bool) -> list[Any]:
    """Return the products of a vector with the Jacobians of one output, checking that a second run agrees."""
    tensors = [t for _, t in checked_inputs(inputs)]
    seed = v.reshape(output.shape).to(output.dtype)
    found = _twice(lambda: [[one] for one in _pulled(output, tensors, seed)], tensors, nondet_tol)
    return [one.reshape(-1) for one in found.accepted(nondet_tol, check_dtypes)]


def _twice(compute: Callable[[], list[list[Any]]], tensors: list[Any], nondet_tol: float) -> Columns:
    """Compute columns of gradients two times; see whether dtypes and sizes fit and both are equal."""
    first, second = compute(), compute()
    dtypes_fit = sizes_fit = equal = True
    matrices = []
    for tensor, columns, again in zip(tensors, first, second, strict=True):
        array = np.zeros((int(np.prod(tensor.shape, dtype=int)), len(columns)), tensor._array.dtype)
        other = array.copy()
        for j, (one, two) in enumerate(zip(columns, again, strict=True)):
            for target, gradient in ((array, one), (other, two)):
                if gradient is None:
                    continue
                dtypes_fit = dtypes_fit and gradient.dtype == tensor.dtype
                if gradient.shape != tensor.shape:
                    sizes_fit = False
                else:
                    target[:, j] = gradient.detach().numpy(force=True).reshape(-1)
        if array.size and np.abs(array - other).max() > nondet_tol:
            equal = False
        matrices.append(wrap(array).to(tensor.device))
    return Columns(matrices, equal, sizes_fit, dtypes_fit)


# ---- forward mode ----
def tangents_of(func: Callable[..., Any], inputs: Sequence[Any], tangents: dict[int, Any]) -> list[tuple[Any, Any]]:
    """Run a function on dual inputs; return value and tangent (or None) of its differentiable outputs."""
    with forward_ad.dual_level():
        plain = [one.detach() if isinstance(one, Tensor) else one for one in inputs]
        duals = [forward_ad.make_dual(one, tangents[i]) if i in tangents else one for i, one in enumerate(plain)]
        outputs = [out for out in as_tuple(func(*duals)) if is_differentiable(out)]
        unpacked = [forward_ad.unpack_dual(out) for out in outputs]
        return [(u.primal, u.tangent) for u in unpacked]


def forward_column(
    func: Callable[..., Any], inputs: Sequence[Any], at: int, direction: Any, check_dtypes: bool
) -> list[Any]:
    """Return the tangents of all differentiable outputs, flat, for a direction in one input."""
    tangents = {i: zeros_like(one).detach() for i, one in checked_inputs(inputs)}
    tangents[at] = direction.reshape(inputs[at].shape)
    columns = []
    for value, tangent in tangents_of(func, inputs, tangents):
        if tangent is None:
            tangent = zeros_like(value)
        elif check_dtypes and tangent.dtype != value.dtype:
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        columns.append(tangent.detach().reshape(-1))
    return columns


def forward_jacobian(
    func: Callable[..., Any], inputs: Sequence[Any], at: int, count: int, check_dtypes: bool
) -> list[Any]:
    """Return the Jacobians of the differentiable outputs with respect to one input, by forward mode."""
    tensor = inputs[at]
    size = int(np.prod(tensor.shape, dtype=int))
    rows: list[list[Any]] = [[] for _ in range(count)]
    for i in range(size):
        basis = np.zeros(size, tensor._array.dtype)
        basis[i] = 1
        for row, one in zip(
            rows, forward_column(func, inputs, at, wrap(basis).to(tensor.device), check_dtypes), strict=True
        ):
            row.append(one)
    return [_matrix(row, tensor) for row in rows]


# ---- comparing ----
def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    """Compare two tensors up to tolerances, whatever their dtypes."""
    x, y = a.detach().numpy(force=True), b.detach().numpy(force=True)
    return x.size == 0 or bool(np.allclose(x, y, rtol, atol))


# ---- random directions of fast mode ----
class Directions:
    """The vectors that fast mode multiplies with, from a stream of its own."""

    def __init__(self) -> None:
        self._generator = Generator()

    def _vector(self, tensor: Any) -> Any:
        drawn = rand(int(np.prod(tensor.shape, dtype=int)), generator=self._generator)._array
        dtype = np.zeros(0, tensor._array.dtype).real.dtype
        vector = drawn.astype(dtype)
        return wrap(vector / np.sqrt(np.square(vector).sum())).to(tensor.device)

    def of_input(self, tensor: Any) -> Any:
        """Return a unit vector; for complex inputs one for each of the two parts."""
        vector = self._vector(tensor)
        return (vector, self._vector(tensor)) if tensor.is_complex() else vector

    of_output = _vector


def sum_of(vector: Any) -> float:
    """Return the sum of a direction's elements."""
    parts = vector if isinstance(vector, tuple) else (vector,)
    return float(sum(part._array.sum() for part in parts))


# ---- Jacobians that torch once made public, and that old tests still call ----
def _warn(name: str) -> None:
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch.",
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


# ---- the module is the function, too ----
class _Callable(ModuleType):
    """Lets `autograd.gradcheck(...)` work even after this module, of the function's name, was imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
