"""Maps and their Jacobians, sets and the maps onto them, and transforms of functions: against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.distributions
from tests.distributions.comparing import made, same

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

MAPS = {
    "D.ExpTransform()": (2, 3),
    "D.AffineTransform(1.5, -2.0)": (2, 3),
    "D.AffineTransform(c, c + 1, event_dim=1)": (2, 3),
    "D.SigmoidTransform()": (2, 3),
    "D.TanhTransform()": (2, 3),
    "D.SoftplusTransform()": (2, 3),
    "D.ComposeTransform([D.ExpTransform(), D.PowerTransform(c)])": (2, 3),
    "D.AbsTransform()": (2, 3),
    "D.IndependentTransform(D.ExpTransform(), 1)": (2, 3),
    "D.ReshapeTransform((3,), (3, 1))": (2, 3),
    "D.SoftmaxTransform()": (2, 3),
    "D.StickBreakingTransform()": (2, 3),
    "D.LowerCholeskyTransform()": (2, 3, 3),
    "D.PositiveDefiniteTransform()": (2, 3, 3),
    "D.CorrCholeskyTransform()": (2, 3),
    "D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], -1, [1, 2])": (2, 3),
    "D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], 0)": (2, 3),
    "D.CumulativeDistributionTransform(D.Normal(c, 1.0))": (2, 3),
    "D.ComposeTransform([D.StickBreakingTransform(), D.ExpTransform()])": (2, 3),
    "D.ComposeTransform([])": (2, 3),
}


@pytest.mark.parametrize("program", MAPS)
def test_maps(program: str) -> None:
    x0 = np.random.default_rng(0).normal(size=MAPS[program])
    found: list[list[Any]] = []
    for library in (retrograd, torch):
        c = library.tensor([0.5, 1.0, 1.5], dtype=library.float64, requires_grad=True)
        transform = eval(program, {"D": library.distributions, "c": c})
        x = library.tensor(x0, requires_grad=True)
        y = transform(x)
        result: list[Any] = [
            y,
            transform.inv(y),
            str(transform.domain),
            str(transform.codomain),
            str(transform.bijective),
        ]
        result += [str(tuple(transform.forward_shape(x.shape))), str(tuple(transform.inverse_shape(y.shape)))]
        result += library.autograd.grad((y * y).sum(), [x, c], allow_unused=True)
        try:
            jacobian = transform.log_abs_det_jacobian(x, transform(x))
            result += [jacobian]
            if jacobian.requires_grad:
                result += library.autograd.grad(jacobian.sum(), [x, c], allow_unused=True)
        except NotImplementedError:
            result.append("none")
        found.append(result)
    for mine, its in zip(*found, strict=True):
        same(mine, its)


@pytest.mark.parametrize("program", MAPS)
def test_maps_with_a_cache(program: str) -> None:
    x0 = np.random.default_rng(0).normal(size=MAPS[program])
    found: list[list[Any]] = []
    for library in (retrograd, torch):
        c = library.tensor([0.5, 1.0, 1.5], dtype=library.float64)
        transform = eval(program, {"D": library.distributions, "c": c})
        cached = transform.with_cache()
        x = library.tensor(x0)
        facts = [type(cached).__name__, cached == transform, cached is transform, cached.with_cache() is cached]
        remembers = cached(x) is cached(x)
        found.append([str(facts), str(remembers), cached(x), str(transform.with_cache(0) is transform)])
    for mine, its in zip(*found, strict=True):
        same(mine, its)


def test_a_cache_returns_the_very_tensor() -> None:
    transform = retrograd.distributions.ExpTransform(cache_size=1)
    x = retrograd.randn(3)
    y = transform(x)
    assert transform(x) is y
    assert transform.inv(y) is x


SETS = ["real", "positive", "unit_interval", "simplex", "lower_cholesky", "positive_definite", "corr_cholesky"]


@pytest.mark.parametrize("name", SETS)
def test_maps_lead_into_their_sets(name: str) -> None:
    constraint = getattr(retrograd.distributions.constraints, name)
    x = retrograd.randn((2, 3, 3) if constraint.event_dim == 2 and name != "corr_cholesky" else (2, 3))
    for table in (retrograd.distributions.biject_to, retrograd.distributions.transform_to):
        assert constraint.check(table(constraint)(x)).all()


# ---- divergences ----
FAMILIES = {
    "Bernoulli": "D.Bernoulli({u})",
    "Beta": "D.Beta({a}, {b})",
    "Binomial": "D.Binomial(4, {u})",
    "Categorical": "D.Categorical({w})",
    "Cauchy": "D.Cauchy({m}, {a})",
    "ContinuousBernoulli": "D.ContinuousBernoulli({u})",
    "Dirichlet": "D.Dirichlet({w})",
    "Exponential": "D.Exponential({a})",
    "Gamma": "D.Gamma({a}, {b})",
    "Geometric": "D.Geometric({u})",
    "Gumbel": "D.Gumbel({m}, {a})",
    "HalfNormal": "D.HalfNormal({a})",
    "Independent": "D.Independent(D.Normal({w}, {w}), 1)",
    "Laplace": "D.Laplace({m}, {a})",
    "LogNormal": "D.LogNormal({m}, {a})",
    "LowRank": "D.LowRankMultivariateNormal({w}, lower[..., :2], {w})",
    "Multivariate": "D.MultivariateNormal({w}, scale_tril=lower * {s})",
    "Normal": "D.Normal({m}, {a})",
    "OneHotCategorical": "D.OneHotCategorical({w})",
    "Pareto": "D.Pareto({a}, {b} + 2)",
    "Poisson": "D.Poisson({a})",
    "Uniform": "D.Uniform({u}, {u} + {u} / 8)",
    "Chi2": "D.Chi2({a})",
    "Weibull": "D.Weibull({a}, {b})",
    "VonMises": "D.VonMises({m}, {a})",
    "Wishart": "D.Wishart({a} + 3, scale_tril=lower * {s})",
}
OTHER = {"a": "(a * 1.3)", "b": "(b * 0.8)", "u": "(u * 0.9)", "m": "(m + 0.3)", "w": "(w.flip(-1))", "s": "1.2"}
SAME = {name: name for name in OTHER} | {"s": "1.0"}


def divergence(library: Any, p: str, q: str) -> list[Any]:
    both = f"({FAMILIES[p].format(**SAME)}, {FAMILIES[q].format(**OTHER)})"
    pair, scope = made(library, both)
    try:
        kl = library.distributions.kl_divergence(*pair)
    except NotImplementedError as error:
        return [str(error)]
    if not kl.requires_grad:
        return [kl]
    return [kl, *library.autograd.grad(kl[kl.isfinite()].sum(), list(scope.values()), allow_unused=True)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("p", FAMILIES)
def test_divergences(p: str) -> None:
    for q in FAMILIES:
        for mine, its in zip(divergence(retrograd, p, q), divergence(torch, p, q), strict=True):
            try:
                same(mine, its, rtol=1e-6, atol=1e-8)
            except AssertionError as error:
                raise AssertionError(f"{p} to {q}") from error


def test_a_registered_divergence_is_the_nearest() -> None:
    distributions = retrograd.distributions

    class Mine(distributions.Normal):
        pass

    distributions.register_kl(Mine, distributions.Normal)(lambda p, q: "mine")
    p, q = Mine(0.0, 1.0), distributions.Normal(0.0, 1.0)
    assert distributions.kl_divergence(p, q) == "mine"
    assert distributions.kl_divergence(q, q).item() == 0


# ---- functions of functions ----
DENSITIES = {
    "Normal": ("D.Normal(m, m.exp())", 0.3),
    "Categorical": ("D.Categorical(logits=m.repeat(3) * k)", 1),
    "Bernoulli": ("D.Bernoulli(logits=m)", 1.0),
    "Uniform": ("D.Uniform(-m.exp(), m.exp())", 0.1),
    "Beta": ("D.Beta(m.exp(), 2.0)", 0.3),
    "Gamma": ("D.Gamma(m.exp(), m.exp())", 0.3),
    "Exponential": ("D.Exponential(m.exp())", 0.3),
    "Laplace": ("D.Laplace(m, m.exp())", 0.3),
    "StudentT": ("D.StudentT(m.exp(), m)", 0.3),
    "LogNormal": ("D.LogNormal(m, m.exp())", 0.3),
    "MultivariateNormal": ("D.MultivariateNormal(m.repeat(3), scale_tril=m.exp() * E)", [0.1, 0.2, 0.3]),
    "Dirichlet": ("D.Dirichlet(m.exp() * k)", [0.1, 0.2, 0.7]),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_in_vmap_and_grad(name: str) -> None:
    program, value = DENSITIES[name]
    found = []
    for library in (retrograd, torch):
        k = library.tensor([1.0, 2.0, 3.0], dtype=library.float64)
        lower = library.eye(3, dtype=library.float64)
        point = library.tensor(value, dtype=None if isinstance(value, int) else library.float64)

        def density(m: Any, scope: Any = None) -> Any:
            return eval(program, {**scope, "m": m}).log_prob(scope["point"])

        scope = {"D": library.distributions, "k": k, "E": lower, "point": point}
        at = library.tensor([-0.3, 0.2, 0.5], dtype=library.float64)
        of_one = lambda m, scope=scope: density(m, scope)  # noqa: E731
        func = library.func
        found.append(
            [library.vmap(of_one)(at), library.vmap(func.grad(of_one))(at), func.grad(func.grad(of_one))(at[0])]
        )
    for mine, its in zip(*found, strict=True):
        same(mine, its)


@pytest.mark.parametrize(
    "program",
    ["D.Normal(m, m.exp())", "D.Gamma(m.exp(), 2.0)", "D.Dirichlet(m.exp().repeat(3))", "D.Beta(m.exp(), 1.5)"],
)
def test_samples_in_vmap_and_both_modes(program: str) -> None:
    """Forward and reverse mode agree about a sample, and so does the first of a batch, which is drawn first."""
    func = retrograd.func

    def drawn(m: Any) -> Any:
        retrograd.manual_seed(4)
        return eval(program, {"D": retrograd.distributions, "m": m}).rsample()

    m = retrograd.tensor(0.4, dtype=retrograd.float64)
    forward, reverse = func.jacfwd(drawn, randomness="same")(m), func.jacrev(drawn)(m)
    np.testing.assert_allclose(forward.numpy(), reverse.numpy(), 1e-9)
    batch = retrograd.tensor([0.4, 0.4], dtype=retrograd.float64)
    slopes = retrograd.vmap(func.jacrev(drawn), randomness="different")(batch)
    np.testing.assert_allclose(slopes[0].numpy(), reverse.numpy(), 1e-9)
