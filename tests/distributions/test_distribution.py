"""What all distributions have in common: copies, subclasses, validation, laziness."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import pytest

import retrograd
import retrograd.distributions as distributions
from retrograd.distributions.utils import lazy_property, tril_matrix_to_vec, vec_to_tril_matrix
from tests.distributions.cases import CASES, parameters


@pytest.mark.parametrize("name", list(CASES))
def test_copies_have_the_same_density(name: str) -> None:
    scope = {key: retrograd.tensor(value) for key, value in parameters().items()}
    distribution = eval(CASES[name], {"D": distributions, **scope})
    value = distribution.sample()
    for other in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert retrograd.equal(other.log_prob(value), distribution.log_prob(value))


def test_validation_can_be_turned_off() -> None:
    assert distributions.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    distributions.Distribution.set_default_validate_args(False)
    try:
        assert distributions.Normal(0.0, -1.0).scale.item() == -1
    finally:
        distributions.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        distributions.Normal(0.0, -1.0)


def test_a_bad_sample_inside_vmap_is_refused() -> None:
    def density(m: Any) -> Any:
        return distributions.Exponential(m).log_prob(m - 1)

    with pytest.raises(ValueError, match="to be within the support"):
        retrograd.vmap(density)(retrograd.tensor([1.5, 0.5]))


def test_a_subclass_with_its_own_constructor_must_expand_itself() -> None:
    class Mine(distributions.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="Subclass Mine of Normal that defines a custom __init__ method must"):
        Mine().expand((2,))


def test_a_subclass_without_one_expands() -> None:
    class Mine(distributions.Normal):
        pass

    assert type(Mine(0.0, 1.0).expand((2,))) is Mine


def test_a_distribution_of_ones_own() -> None:
    class Point(distributions.Distribution):
        arg_constraints: ClassVar[Any] = {}

        def rsample(self, sample_shape: Any = ()) -> Any:
            return retrograd.zeros(self._extended_shape(sample_shape))

    point = Point(retrograd.Size((2,)))
    assert point.sample((3,)).shape == (3, 2)
    with pytest.warns(UserWarning, match="sample_n"):
        assert point.sample_n(3).shape == (3, 2)
    with pytest.raises(NotImplementedError):
        point.expand((3,))
    with pytest.warns(UserWarning, match="does not define `support`"):
        point._validate_sample(retrograd.zeros(2))


def test_a_lazy_parameter_is_made_once_and_with_gradients() -> None:
    logits = retrograd.zeros(3, requires_grad=True)
    with retrograd.no_grad():
        distribution = distributions.Bernoulli(logits=logits)
        assert distribution.probs is distribution.probs
    assert distribution.probs.requires_grad
    assert isinstance(distributions.Bernoulli.probs, lazy_property)


@pytest.mark.parametrize("diag", [-1, 0])
def test_triangles_and_vectors(diag: int) -> None:
    matrix = retrograd.randn(2, 4, 4).tril(diag)
    assert retrograd.equal(vec_to_tril_matrix(tril_matrix_to_vec(matrix, diag), diag), matrix)
    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        vec_to_tril_matrix(retrograd.ones(4), diag)
