"""gradcheck and gradgradcheck: what they pass, what they catch, and torch's reports."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest

import retrograd
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.autograd.gradcheck import GradcheckError
from tests.oracle import outcome_and_warnings, whole

MODES = pytest.mark.parametrize("fast_mode", [False, True])
REAL, COMPLEX = [0.5, 1.0, 2.0], [0.5 + 1j, 1.0 - 2j]


def real(t=retrograd):
    return t.tensor(REAL, dtype=t.float64, requires_grad=True)


def cplx(t=retrograd):
    return t.tensor(COMPLEX, dtype=t.complex128, requires_grad=True)


def custom(t, value, pulled, pushed=None):
    """Make a Function of one input that saves it."""

    class Custom(t.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            ctx.save_for_forward(a)
            return value(a)

        @staticmethod
        def backward(ctx, g):
            return pulled(g, ctx.saved_tensors[0])

        if pushed is not None:

            @staticmethod
            def jvp(ctx, tangent):
                return pushed(tangent, ctx.saved_tensors[0])

    return Custom.apply


def square(a):
    return a * a


def twice(g, a):
    return 2 * g * a


def thrice(g, a):
    return 3 * g * a


class Unsteady:
    """A backward whose result changes a little with every call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, g, a):
        self.calls += 1
        return 2 * g * a * (1 + 1e-9 * self.calls)


# ---- what passes ----
@MODES
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"check_forward_ad": True},
        {"check_forward_ad": True, "check_backward_ad": False},
        {"check_batched_grad": True},
        {"check_forward_ad": True, "check_batched_forward_grad": True},
        {"check_grad_dtypes": True, "check_undefined_grad": False, "masked": True},
    ],
)
@pytest.mark.parametrize(
    ("func", "inputs"),
    [
        (retrograd.sin, (real,)),
        (lambda a: a.exp() * a, (cplx,)),
        (retrograd.abs, (cplx,)),
        (lambda a, b: (a.sum() * b, a.exp()), (real, cplx)),
        (lambda a, b: a.sin(), (real, real)),
    ],
    ids=["real", "complex", "complex_to_real", "two", "unused"],
)
def test_right_gradients_pass(func, inputs, options, fast_mode):
    assert gradcheck(func, tuple(make() for make in inputs), fast_mode=fast_mode, **options)


@MODES
@pytest.mark.parametrize(
    "options",
    [{}, {"check_fwd_over_rev": True}, {"check_batched_grad": True}, {"gen_non_contig_grad_outputs": True}],
)
@pytest.mark.parametrize("make", [real, cplx])
def test_right_second_derivatives_pass(make, options, fast_mode):
    assert gradgradcheck(lambda a: a.exp() * a, (make(),), fast_mode=fast_mode, **options)


def test_grad_outputs_can_be_given():
    assert gradgradcheck(retrograd.sin, (real(),), retrograd.ones(3, dtype=retrograd.float64))


def test_a_single_tensor_and_other_arguments():
    assert gradcheck(retrograd.sin, real())
    assert gradcheck(lambda a, n: [a * n, a.cos()], (real(), 3))


def test_inputs_that_are_no_leaves():
    assert gradcheck(retrograd.sin, (real() * 2,))


def test_inputs_are_as_before():
    x = real()
    gradcheck(lambda a: a.exp(), (x,))
    gradcheck(lambda a: a.exp(), (x,), fast_mode=True)
    assert (x.detach().numpy() == REAL).all()
    assert x._version == 0


def test_the_users_random_numbers_are_untouched_by_fast_mode():
    retrograd.manual_seed(1)
    gradcheck(retrograd.sin, (real(),), fast_mode=True)
    after = retrograd.rand(2)
    retrograd.manual_seed(1)
    assert (after.numpy() == retrograd.rand(2).numpy()).all()


def test_empty_inputs():
    assert gradcheck(retrograd.sin, (retrograd.ones(0, dtype=retrograd.float64, requires_grad=True),))


# ---- what is caught ----
@MODES
def test_a_wrong_gradient(fast_mode):
    wrong = custom(retrograd, square, thrice)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(wrong, (real(),), fast_mode=fast_mode)
    assert not gradcheck(wrong, (real(),), fast_mode=fast_mode, raise_exception=False)
    assert gradcheck(wrong, (real(),), fast_mode=fast_mode, atol=20.0, rtol=1.0)


def test_nondeterminism_within_tolerance():
    unsteady = custom(retrograd, square, Unsteady())
    assert not gradcheck(unsteady, (real(),), raise_exception=False)
    assert gradcheck(unsteady, (real(),), nondet_tol=1e-5)


def test_a_batch_computed_otherwise():
    from retrograd._core.arrays import levels_of

    class Odd(retrograd.autograd.Function):
        @staticmethod
        def forward(a):
            return a * a

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return (3 if levels_of(g._array) else 2) * g * ctx.saved_tensors[0]

    assert gradcheck(Odd.apply, (real(),))
    with pytest.raises(GradcheckError, match=r"(?s)For output 0 and input 0:.*Got:.*Expected:"):
        gradcheck(Odd.apply, (real(),), check_batched_grad=True)


def missing(t, answer):
    """Make a Function of two outputs that does something of its own when one has no gradient."""

    class Missing(t.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g, h):
            if g is None and h is None:
                return None
            return answer(t) if g is None or h is None else 2 * g + 3 * h

    return Missing.apply


def refuse(t):
    raise RuntimeError("both are needed")


def ones(t):
    return t.ones(3, dtype=t.float64)


@pytest.mark.parametrize(
    ("answer", "text"),
    [(refuse, "Expected backward function to handle"), (ones, "Expected all input grads to be")],
)
def test_a_missing_gradient_that_is_not_zero(answer, text):
    from retrograd.autograd.gradcheck import _check_undefined_backward

    x, func = real(), missing(retrograd, answer)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support"),
        pytest.raises(GradcheckError, match=text),
    ):
        _check_undefined_backward(func, list(func(x)), (x,))


@pytest.mark.oracle
@pytest.mark.parametrize("answer", [refuse, ones])
def test_missing_gradients_like_torch(answer):
    torch = pytest.importorskip("torch")
    reports = []
    for t, name in ((retrograd, "_check_undefined_backward"), (torch, "_test_undefined_backward_mode")):
        check = getattr(sys.modules[f"{t.__name__}.autograd.gradcheck"], name)
        x, func = real(t), missing(t, answer)
        reports.append(seeded(t, lambda c=check, f=func, x=x: c(f, list(f(x)), (x,))))
    assert reports[0] == reports[1]


def test_importing_the_module_leaves_the_function_callable():
    program = (
        "import retrograd\n"
        "from retrograd.autograd.gradcheck import GradcheckError, gradgradcheck\n"
        "x = retrograd.ones(2, dtype=retrograd.float64, requires_grad=True)\n"
        "assert retrograd.autograd.gradcheck(retrograd.sin, (x,))\n"
        "assert retrograd.autograd.gradgradcheck(retrograd.sin, (x,))\n"
        "assert retrograd.autograd.gradcheck(retrograd.sin, (x,))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_import_of_the_package_does_not_load_it():
    program = "import retrograd, sys; assert not [m for m in sys.modules if 'gradcheck' in m or 'functional' in m]"
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- torch's reports ----
def programs(t):
    """Return named calls on a library whose reports are compared."""
    wrong = custom(t, square, thrice)
    d = t.float64
    expanded = t.ones((), dtype=d).expand(3).requires_grad_()

    def check(func, *inputs, **options):
        return t.autograd.gradcheck(func, inputs, **options)

    def check2(func, *inputs, **options):
        return t.autograd.gradgradcheck(func, inputs, **options)

    calls = {}
    for fast in (False, True):
        o = {"fast_mode": fast}
        cases = {
            "wrong": lambda o=o: check(wrong, real(t), **o),
            "wrong_second_input": lambda o=o: check(lambda a, b: (a.sin(), a * wrong(b)), real(t), real(t), **o),
            "wrong_complex": lambda o=o: check(custom(t, square, twice), cplx(t), **o),
            "wrong_to_complex": lambda o=o: check(
                custom(t, lambda a: a * (1 + 2j), lambda g, a: g.real * 3), real(t), **o
            ),
            "wrong_from_complex": lambda o=o: check(custom(t, lambda a: (a * a.conj()).real, thrice), cplx(t), **o),
            "wrong_forward": lambda o=o: check(custom(t, square, twice, thrice), real(t), check_forward_ad=True, **o),
            "wrong_forward_complex": lambda o=o: check(
                custom(t, square, lambda g, a: 2 * g * a.conj(), thrice), cplx(t), check_forward_ad=True, **o
            ),
            "not_reentrant": lambda o=o: check(custom(t, square, Unsteady()), real(t), **o),
            "nothing_requires_grad": lambda o=o: check(t.sin, real(t).detach(), **o),
            "constant": lambda o=o: check(lambda a: t.ones(3, dtype=d), real(t), **o),
            "hidden_dependence": lambda o=o: check(lambda a: a.detach() * 2, real(t), **o),
            "none": lambda o=o: check(custom(t, square, lambda g, a: None), real(t), **o),
            "not_linear": lambda o=o: check(
                custom(t, square, lambda g, a: 2 * g * a if g.any() else 2 * g * a + 1), real(t), **o
            ),
            "stride_0": lambda o=o: check(t.sin, expanded, **o),
            "changing_shape": lambda o=o: check(lambda a: a[a > 1].sin(), real(t), **o),
            "changing_dtype": lambda o=o: check(
                lambda a: a.sin() if a[1].item() >= 1 else a.sin().float(), real(t), **o
            ),
            "no_tensor": lambda o=o: check(lambda a: 3, real(t), **o),
            "wrong_second": lambda o=o: check2(
                custom(t, lambda a: a * a * a, lambda g, a: 3 * g * (a * a.detach())), real(t), **o
            ),
        }
        calls |= {f"{name}-{'fast' if fast else 'slow'}": call for name, call in cases.items()}
    calls |= {
        "nothing_to_check": lambda: check(t.sin, real(t), check_backward_ad=False),
        "batched_without_backward": lambda: check(
            t.sin, real(t), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True
        ),
        "batched_without_forward": lambda: check(t.sin, real(t), check_batched_forward_grad=True),
        "second_nothing": lambda: check2(t.sin, real(t), check_rev_over_rev=False),
        "second_undefined": lambda: check2(t.sin, real(t), check_rev_over_rev=False, check_fwd_over_rev=True),
        "second_batched": lambda: check2(
            t.sin,
            real(t),
            check_rev_over_rev=False,
            check_fwd_over_rev=True,
            check_undefined_grad=False,
            check_batched_grad=True,
        ),
        "single_precision": lambda: check(t.exp, t.ones(2, requires_grad=True), atol=1, rtol=1),
    }
    return calls


def seeded(t, call):
    """Return a call's outcome and its warnings about gradients."""
    t.manual_seed(0)
    found, heard = outcome_and_warnings(call, words=whole)
    return found, [words for _, words in heard if "gradient" in words]


NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def same_report(ours, theirs):
    """Compare texts; numbers by value, because finite differences magnify the last bit of a sine."""
    theirs = re.sub(r",\s+grad_fn=<\w+>", "", theirs)  # how torch fills its matrix is not for us to repeat
    assert NUMBER.sub("#", ours).split() == NUMBER.sub("#", theirs).split()
    a, b = ([float(n) for n in NUMBER.findall(text)] for text in (ours, theirs))
    assert np.allclose(a, b, rtol=1e-6, atol=1e-4)


@pytest.mark.oracle
@pytest.mark.parametrize("name", programs(retrograd))
def test_like_torch(name):
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.autograd")
    ours, our_warnings = seeded(retrograd, programs(retrograd)[name])
    theirs, their_warnings = seeded(torch, programs(torch)[name])
    assert our_warnings == their_warnings
    if isinstance(theirs, bool):
        assert ours is theirs
        return
    assert ours.kind == theirs.kind, ours
    same_report(ours.words, theirs.words)
