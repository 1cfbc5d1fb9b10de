"""torch.autograd.functional: products and matrices, plain and against torch."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import retrograd
from retrograd.autograd import functional
from tests.oracle import Raised, outcome

F64 = retrograd.float64


def tensor(values, **options):
    return retrograd.tensor(values, dtype=F64, **options)


def numbers(value):
    """Return nested results as nested arrays."""
    if isinstance(value, (tuple, list)):
        return tuple(numbers(one) for one in value)
    return value.detach().numpy()


def agree(a, b):
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b, strict=True))
    return a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-12, atol=1e-14)


X, Y = [0.5, 1.0, 2.0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


# ---- values ----
def test_vjp_is_the_gradient_weighted_by_v():
    x = tensor(X)
    out, product = functional.vjp(lambda a: a**2, x, tensor([1.0, 2.0, 3.0]))
    assert np.allclose(out.numpy(), np.square(X))
    assert np.allclose(product.numpy(), 2 * np.array(X) * [1, 2, 3])


def test_jvp_is_the_change_along_v():
    _, product = functional.jvp(lambda a: (a**2).sum(), tensor(X), tensor([1.0, 2.0, 3.0]))
    assert np.isclose(product.item(), (2 * np.array(X) * [1, 2, 3]).sum())


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_of_several_outputs_and_inputs(vectorize):
    def func(a, b):
        return b @ a, a.exp()

    x, y = tensor(X), tensor(Y)
    (ja, jb), (jc, jd) = functional.jacobian(func, (x, y), vectorize=vectorize)
    assert np.allclose(ja.numpy(), Y)
    assert jb.shape == (2, 2, 3)
    assert np.allclose(jc.numpy(), np.diag(np.exp(X)))
    assert np.allclose(jd.numpy(), np.zeros((3, 2, 3)))


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}]
)
def test_hessian(options):
    found = functional.hessian(lambda a: (a**3).sum() * a[0], tensor(X), **options)
    a = np.array(X)
    expected = np.diag(6 * a * a[0])
    expected[0] += 3 * a**2
    expected[:, 0] += 3 * a**2
    assert np.allclose(found.detach().numpy(), expected)


def test_hvp_and_vhp_are_products_with_the_hessian():
    def func(a):
        return (a**3).sum() * a[0]

    x, v = tensor(X), tensor([1.0, -1.0, 0.5])
    matrix = functional.hessian(func, x).numpy()
    assert np.allclose(functional.hvp(func, x, v)[1].numpy(), matrix @ v.numpy())
    assert np.allclose(functional.vhp(func, x, v)[1].numpy(), v.numpy() @ matrix)


def test_create_graph_makes_results_differentiable():
    x = tensor(X, requires_grad=True)
    (functional.jacobian(lambda a: a**3, x, create_graph=True)).sum().backward()
    assert np.allclose(x.grad.numpy(), 6 * np.array(X))


def test_results_are_outside_the_graph_by_default():
    x = tensor(X, requires_grad=True)
    out, product = functional.vjp(lambda a: (a**2).sum(), x)
    assert not out.requires_grad
    assert not product.requires_grad
    assert x.grad is None


def test_works_under_no_grad():
    with retrograd.no_grad():
        found = functional.jacobian(lambda a: a**2, tensor(X))
    assert np.allclose(found.numpy(), np.diag(2 * np.array(X)))


def test_independent_inputs_get_zeros():
    _, (_, zero) = functional.vjp(lambda a, b: a.sum(), (tensor(X), tensor(Y)))
    assert np.array_equal(zero.numpy(), np.zeros((2, 3)))


def test_the_module_is_reached_from_autograd():
    assert retrograd.autograd.functional is functional


# ---- torch's values and words ----
def programs(t):
    """Return named calls on a library; the values and errors of both are compared."""
    fun = importlib.import_module(f"{t.__name__}.autograd.functional")
    d = t.float64
    x, y, s = t.tensor(X, dtype=d), t.tensor(Y, dtype=d), t.tensor(2.0, dtype=d)
    z = t.tensor([1 + 2j, 0.5j], dtype=t.complex128)
    functions = {
        "cubic": lambda a: (a**3).sum(),
        "square": lambda a: (a * a).sum(),
        "linear": lambda a: 3 * a,
        "linear_sum": lambda a: (3 * a).sum(),
        "constant": lambda a: t.ones((), dtype=d),
        "foreign": lambda a: t.ones((), dtype=d, requires_grad=True).exp(),
        "pair": lambda a: (a.exp(), a.reshape(-1, 1) * a),
        "number": lambda a: 3,
        "list": lambda a: [a.sum()],
    }
    calls = {}
    for product in ("vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"):
        call = getattr(fun, product)
        takes_v = product in ("vjp", "jvp", "vhp", "hvp")
        for name, func in functions.items():
            for graph in (False, True):
                for strict in (False, True):
                    options = {"create_graph": graph, "strict": strict}
                    v = ()
                    if takes_v:
                        v = (None,) if product == "vjp" and name not in ("linear",) else (t.ones_like(x),)
                    calls[f"{product}-{name}-{graph:d}{strict:d}"] = lambda c=call, f=func, v=v, o=options: c(
                        f, x, *v, **o
                    )
        calls[f"{product}-no_tensor"] = lambda c=call: c(functions["cubic"], 3)
        calls[f"{product}-no_tensor_in_tuple"] = lambda c=call: c(functions["cubic"], (x, 3))
        for strict in (False, True):
            v = ((s,) if product == "vjp" else ((x, y),)) if takes_v else ()
            calls[f"{product}-unused-{strict:d}"] = lambda c=call, v=v, o=strict: c(
                lambda a, b: (a**3).sum(), (x, y), *v, strict=o
            )
        if takes_v:
            for i, v in enumerate((None, x[:2], (x, x), 3, (x, 2))):
                calls[f"{product}-v{i}"] = lambda c=call, v=v: c(functions["linear"], x, v)
                calls[f"{product}-v{i}-pair"] = lambda c=call, v=v: c(lambda a, b: (a.sum() * b).sum(), (x, y), v)
        calls[f"{product}-scalar"] = lambda c=call: c(lambda a: a.exp(), s)
    for options in (
        {"vectorize": True},
        {"vectorize": True, "create_graph": True},
        {"vectorize": True, "strict": True},
        {"strategy": "forward-mode"},
        {"strategy": "forward-mode", "vectorize": True},
        {"strategy": "forward-mode", "strict": True},
        {"strategy": "forward-mode", "create_graph": True},
        {"strategy": "sideways"},
    ):
        key = ",".join(f"{k}={v}" for k, v in options.items())
        outer = {("outer_jacobian_strategy" if k == "strategy" else k): v for k, v in options.items()}
        for name in ("cubic", "constant", "linear", "pair"):
            calls[f"jacobian-{name}-{key}"] = lambda f=functions[name], o=options: fun.jacobian(f, x, **o)
        for name in ("cubic", "constant", "linear_sum"):
            calls[f"hessian-{name}-{key}"] = lambda f=functions[name], o=outer: fun.hessian(f, x, **o)
        calls[f"jacobian-two-{key}"] = lambda o=options: fun.jacobian(lambda a, b: (a.sum() * b, a.exp()), (x, y), **o)
        calls[f"hessian-two-{key}"] = lambda o=outer: fun.hessian(lambda a, b: (a**2).sum() * b.sum(), (x, y), **o)
    calls["jacobian-complex"] = lambda: fun.jacobian(lambda a: a * a, z)
    calls["vjp-complex"] = lambda: fun.vjp(lambda a: a * a, z, z)
    calls["jvp-complex"] = lambda: fun.jvp(lambda a: a * a, z, z)
    return calls


def kinds(value):
    """Return the nesting of results, with what requires grad."""
    if isinstance(value, (tuple, list)):
        return type(value), tuple(kinds(one) for one in value)
    return value.requires_grad


@pytest.mark.oracle
@pytest.mark.parametrize("name", programs(retrograd))
def test_like_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(programs(retrograd)[name]), outcome(programs(torch)[name])
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        assert ours == theirs
        return
    assert kinds(ours) == kinds(theirs)
    assert agree(numbers(ours), numbers(theirs))
