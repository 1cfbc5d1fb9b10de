"""Operations in place on 0-d values inside transforms: a value that was a NumPy scalar gets memory when it is written into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import func
from retrograd.autograd import forward_ad
from tests.func.test_writes_after import results
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, arrays_of, is_float
from tests.oracle import Raised, no_words, outcome

Function = Callable[..., Any]


def by_jvp(f: Function, given: list[Any]) -> Any:
    return func.jvp(f, tuple(given), tuple(retrograd.ones_like(one) for one in given))


def by_dual_level(f: Function, given: list[Any]) -> Any:
    with forward_ad.dual_level():
        outs = f(*[forward_ad.make_dual(one, retrograd.ones_like(one)) for one in given])
        parts = [forward_ad.unpack_dual(one) for one in outs]
        return tuple(p for p, _ in parts), tuple(retrograd.zeros_like(p) if t is None else t for p, t in parts)


def by_vmap(f: Function, given: list[Any]) -> Any:
    return func.vmap(f)(*[retrograd.stack([one, one * 0.9]) for one in given])


def by_jacobians(f: Function, given: list[Any]) -> Any:
    return func.jacfwd(f)(*given), func.jacrev(f)(*given)


WAYS = {"jvp": by_jvp, "dual_level": by_dual_level, "vmap": by_vmap, "jacobians": by_jacobians}


def same(got: Any, wanted: Any, what: str) -> None:
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted), what
        for one, other in zip(got, wanted, strict=True):
            same(one, other, what)
    else:
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12, err_msg=what)


def written(one: Any) -> Any:
    """Write into a result and return it."""
    one *= 2
    one.add_(1)
    one[...] = one * one
    return one


def of_zero_dims(op: Op) -> list[Any]:
    if op.name in ("xp_alias", "xp_real"):
        return []  # views, which no name of torch makes
    return [
        s
        for s in op.samples
        if all(not one.ndim for one, used in zip(arrays_of(op, s), is_float(s), strict=True) if used)
    ][:1]


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if of_zero_dims(op)], ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore")
def test_results_of_0d_inputs_are_written_into(op: Op) -> None:
    (sample,) = of_zero_dims(op)
    arrays, floats = arrays_of(op, sample), is_float(sample)
    given = [retrograd.tensor(one) for one, used in zip(arrays, floats, strict=True) if used]

    def run(*chosen: Any) -> list[Any]:
        left = iter(chosen)
        tensors = [next(left) if used else retrograd.tensor(one) for one, used in zip(arrays, floats, strict=True)]
        found = results(op.function(retrograd, sample, tensors))
        return [one.clone() if one._is_view() or any(one is given for given in chosen) else one for one in found]

    def in_place(*chosen: Any) -> Any:
        return tuple([written(one) for one in run(*chosen)])

    def out_of_place(*chosen: Any) -> Any:
        return tuple([(one * 2 + 1) * (one * 2 + 1) for one in run(*chosen)])

    for way in ("jvp", "vmap") if op.batching else ("jvp",):
        same(WAYS[way](in_place, given), WAYS[way](out_of_place, given), f"{op.name}{sample} by {way}")


# ---- every method in place ----
CALLS = {
    "": "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma "
    "log log10 log1p log2 neg rad2deg reciprocal relu round rsqrt sigmoid sgn sign sin sinc sinh sqrt square tan tanh trunc i0",
    "b": "add sub mul div atan2 copysign float_power fmod hypot pow remainder xlogy clamp_min clamp_max nextafter",
    "2": "add sub mul div pow float_power fmod remainder mvlgamma",
    "b, b": "addcmul addcdiv lerp clamp",
    "b, 0.3": "lerp",
    "b > 0, b": "masked_fill",
    "0, torch.tensor(0), b": "index_copy index_add scatter scatter_add index_fill",
    "torch.tensor(0), b": "put",
    "0": "cumsum cumprod",
}  # fmt: skip
METHODS = [(name, args) for args, names in CALLS.items() for name in names.split()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore")
def test_every_method_in_place(way: str) -> None:
    for name, args in METHODS:

        def operands(a: Any, args: str = args) -> tuple[Any, Any]:
            s, b = a.sigmoid().sum() * 0.4, a.prod() * 0.3
            return s, eval(f"({args},)" if args else "()", {"b": b, "torch": retrograd})

        def in_place(a: Any, name: str = name) -> Any:
            s, values = operands(a)
            assert getattr(s, f"{name}_")(*values) is s
            return (s * a.prod(),)

        def out_of_place(a: Any, name: str = name) -> Any:
            s, values = operands(a)
            return (getattr(s, name)(*values) * a.prod(),)

        given = [retrograd.tensor([0.5, 1.5], dtype=retrograd.float64)]
        same(WAYS[way](in_place, given), WAYS[way](out_of_place, given), f"{name}_({args}) by {way}")


WRITES: dict[str, tuple[Function, Function]] = {
    "zero_": (lambda s, b: s.zero_(), lambda s, b: s * 0),
    "fill_": (lambda s, b: s.fill_(3.0), lambda s, b: s * 0 + 3),
    "fill_ with a tensor": (lambda s, b: s.fill_(b), lambda s, b: b * 1),
    "copy_": (lambda s, b: s.copy_(b), lambda s, b: b * 1),
    "a sum": (lambda s, b: s.__iadd__(b), lambda s, b: s + b),
    "a view": (lambda s, b: s.view(1).mul_(b), lambda s, b: s * b),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, way: str) -> None:
    write, plain = WRITES[name]

    def in_place(a: Any) -> Any:
        s = a.exp().sum()
        write(s, a.prod())
        return (s * a.prod(),)

    given = [retrograd.tensor([0.5, 1.5], dtype=retrograd.float64)]
    wanted = WAYS[way](lambda a: (plain(a.exp().sum(), a.prod()) * a.prod(),), given)
    same(WAYS[way](in_place, given), wanted, name)


def test_gaussian_nll_loss_of_numbers_in_forward_mode() -> None:
    x, target, var = (retrograd.tensor(one, dtype=retrograd.float64) for one in (0.5, 1.5, 2.0))
    ones = (retrograd.ones((), dtype=retrograd.float64),) * 3
    loss, slope = func.jvp(retrograd.nn.functional.gaussian_nll_loss, (x, target, var), ones)
    np.testing.assert_allclose(loss.item(), 0.5 * (np.log(2.0) + 1 / 2.0), rtol=1e-12)
    np.testing.assert_allclose(slope.item(), 0.5 * (1 / 2.0 - 1 / 4.0), rtol=1e-12)


def test_hessian_of_a_sum_that_is_written_into() -> None:
    def f(a: Any) -> Any:
        s = a.sum()
        s += 1
        return s * s

    assert func.hessian(f)(retrograd.ones(2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert func.hessian(f)(retrograd.tensor(1.0)).item() == 2


# ---- every index ----
INDICES = [
    "None", "...", "()", "True", "False", "torch.tensor(True)", "torch.tensor(False)", "s > 0", "s < 0", "(None, ...)", "(..., None)",
    "(True, None)", "(s > 0, ...)", "(None, s > 0)", "(s > 0, s > 0)", "(True, False)", "0", "1", "slice(None)", "[0]", "torch.tensor(0)",
]  # fmt: skip
VALUES = ["0.07", "torch.tensor(0.07)", "a[0] * 2", "torch.tensor([0.07])", "(a[0] * 2)[None]"]


def reverse(library: Any, f: Function, a: Any) -> Any:
    x = a.clone().requires_grad_()
    y = f(x)
    return y.detach(), library.autograd.grad(y, x, allow_unused=True)[0] if y.requires_grad else None


MODES: dict[str, Callable[[Any, Function, Any], Any]] = {
    "plain": lambda library, f, a: f(a),
    "reverse": reverse,
    "jvp": lambda library, f, a: library.func.jvp(f, (a,), (library.ones(2),)),
    "jacfwd": lambda library, f, a: library.func.jacfwd(f)(a),
    "hessian": lambda library, f, a: library.func.hessian(f)(a),
    "vmap": lambda library, f, a: library.func.vmap(f)(library.stack([a, a * 2])),
}


def assigned(library: Any, mode: str, index: str, value: str) -> Any:
    """Return the shapes and numbers after a write by an index in a mode, or the beginning of the error."""

    def f(a: Any) -> Any:
        s = a.exp().sum()
        s[eval(index, {"s": s, "torch": library})] = eval(value, {"a": a, "torch": library})
        return s * 1

    words = no_words if mode == "vmap" else lambda error: str(error).split(". ")[0]
    kinds = (IndexError, RuntimeError)
    found = outcome(lambda: MODES[mode](library, f, library.tensor([0.5, 1.5])), words=words, kinds=kinds)
    if isinstance(found, Raised):
        return found
    parts = found if isinstance(found, tuple) else (found,)
    return [None if one is None else (list(one.shape), np.round(one.tolist(), 4).tolist()) for one in parts]


@pytest.mark.oracle
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore")
def test_assignment_by_every_index(mode: str) -> None:
    torch = pytest.importorskip("torch")
    different = [
        (index, value)
        for index in INDICES
        for value in VALUES
        if assigned(retrograd, mode, index, value) != assigned(torch, mode, index, value)
    ]
    assert not different


def test_a_dual_of_scalars_becomes_memory_once() -> None:
    """A dual of NumPy scalars becomes memory where its tensor is first written into or shared."""
    from retrograd._core.arrays import Dual
    from retrograd._core.levels import Level
    from retrograd.tensor import _base

    level = Level("jvp")
    tensor = _base.wrap(Dual(level, np.float32(1), np.float32(2)))
    array = _base.materialise(tensor)
    assert type(array.primal) is type(array.tangent) is np.ndarray
    assert _base.materialise(tensor) is array
