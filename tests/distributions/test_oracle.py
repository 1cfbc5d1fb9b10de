"""Every distribution against torch: samples under one seed, densities, entropies, moments, and all their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.distributions
from tests.distributions.cases import CASES
from tests.distributions.comparing import made, same
from tests.oracle import Raised, outcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

# torch's slopes of gamma and Dirichlet samples are approximations of three to four digits; ours have nine.
OF_GAMMA = {
    "Beta",
    "Gamma",
    "Dirichlet",
    "StudentT",
    "Chi2",
    "InverseGamma",
    "FisherSnedecor",
    "Wishart",
    "WishartCovariance",
}


def same_if_known(ours: list[Any], theirs: list[Any], **limits: float) -> None:
    """Compare answers and slopes, as far as torch has slopes."""
    if theirs and isinstance(theirs[-1], tuple) and len(theirs) > 1 and "inplace" in theirs[-1][1]:
        ours, theirs = ours[:1], theirs[:1]  # torch overwrites what its backward reads
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its, **limits)


def slopes(library: Any, value: Any, scope: dict[str, Any]) -> list[Any]:
    """Return the gradients of a weighted sum by every parameter."""
    if not value.requires_grad:
        return []
    weights = library.tensor(np.cos(np.arange(value.numel())).reshape(value.shape))
    inputs = [one for one in scope.values() if one.requires_grad]
    found = outcome(
        lambda: library.autograd.grad((value * weights).sum(), inputs, allow_unused=True, retain_graph=True)
    )
    return [found] if isinstance(found, Raised) else list(found)


# torch takes samples of a Wishart distribution for singular if they are not, and draws them again.
DRAWN_AGAIN = {"Wishart", "WishartCovariance"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in DRAWN_AGAIN])
def test_samples(name: str, dtype: str) -> None:
    found = []
    for library in (retrograd, torch):
        distribution, scope = made(library, CASES[name], dtype)
        library.manual_seed(5)
        drawn = [distribution.sample(), distribution.sample((3, 2))]
        followed = distribution.rsample((4,)) if distribution.has_rsample else None
        slope = [] if followed is None or dtype == "float32" else slopes(library, followed, scope)
        found.append((drawn, followed, slope, distribution.has_rsample, distribution.has_enumerate_support))
    ours, theirs = found
    tight = 1e-4 if dtype == "float32" else 1e-9
    for mine, its in zip([*ours[0], ours[1]], [*theirs[0], theirs[1]], strict=True):
        same(mine, its, tight, tight)
    for mine, its in zip(ours[2], theirs[2], strict=True):
        same(mine, its, *((2e-3, 2e-3) if name in OF_GAMMA else (1e-7, 1e-8)))
    assert ours[3:] == theirs[3:]


@pytest.mark.parametrize("name", list(CASES))
def test_densities_and_their_slopes(name: str) -> None:
    reference, _ = made(retrograd, CASES[name])
    retrograd.manual_seed(1)
    value = reference.sample((3,)).numpy()
    found = []
    for library in (retrograd, torch):
        distribution, scope = made(library, CASES[name])
        point = library.tensor(value, requires_grad=value.dtype.kind == "f")
        result = [distribution.log_prob(point)]
        result += slopes(library, result[0], scope | {"point": point})
        for other in ("cdf", "icdf"):
            share = library.tensor([[0.2, 0.7]], dtype=distribution.log_prob(point).dtype)
            answer = outcome(lambda d=distribution, o=other, p=point, s=share: getattr(d, o)(p if o == "cdf" else s))
            result.append(answer)
            result += slopes(library, answer, scope) if hasattr(answer, "detach") else []
        found.append(result)
    same_if_known(*found, **({"rtol": 1e-6} if name == "VonMises" else {}))  # of which torch has approximations


@pytest.mark.parametrize(
    "what", ["mean", "mode", "variance", "stddev", "entropy", "perplexity", "support", "enumerate_support"]
)
@pytest.mark.parametrize("name", list(CASES))
def test_what_is_known(name: str, what: str) -> None:
    found = []
    for library in (retrograd, torch):
        distribution, scope = made(library, CASES[name])

        def ask(d: Any = distribution) -> Any:
            answer = getattr(d, what)
            return answer() if callable(answer) and what != "support" else answer

        answer = outcome(ask)
        found.append([answer, *(slopes(library, answer, scope) if hasattr(answer, "detach") else [])])
    same_if_known(*found)


@pytest.mark.parametrize("name", list(CASES))
def test_shapes_and_expansion(name: str) -> None:
    found = []
    for library in (retrograd, torch):
        distribution, _ = made(library, CASES[name])
        wide = distribution.expand((3, 2))
        library.manual_seed(2)
        drawn = outcome(wide.sample)
        texts = [repr(distribution), repr(wide), distribution.batch_shape, wide.batch_shape, wide.event_shape]
        found.append([*map(str, texts), *([] if name in DRAWN_AGAIN else [drawn, wide.log_prob(drawn)])])
    for mine, its in zip(*found, strict=True):
        same(mine, its, 1e-6)


@pytest.mark.parametrize("name", list(CASES))
def test_a_subclass_with_its_own_constructor_must_expand_itself(name: str) -> None:
    found = []
    for library in (retrograd, torch):
        distribution, _ = made(library, CASES[name])
        mine = type("Mine", (type(distribution),), {"__init__": lambda self: None})()
        mine.__dict__.update(distribution.__dict__)
        found.append(outcome(lambda mine=mine: mine.expand((3, 2))))
    assert found[0] == found[1]
    assert isinstance(found[0], Raised)
