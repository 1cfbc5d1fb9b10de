"""What distributions, sets and maps print and refuse, in torch's words."""

from __future__ import annotations

import pytest

import retrograd
import retrograd.distributions
from tests.oracle import answer

PROGRAMS = """D.Normal(0., -1.)
D.Normal(0., 1.).log_prob(3)
D.Normal(torch.zeros(2), 1.).log_prob(torch.zeros(3))
D.Normal('a', 1.)
D.Normal(0., 1.).enumerate_support()
D.Normal(0., 1.).expand((2,))
D.Normal(0., 1.).expand((2,)).mean
D.Normal(torch.tensor([0., float('nan')]), 1.)
D.Normal(torch.zeros(2, 3), torch.ones(3)).batch_shape
D.Normal(0, 1).loc
D.Normal(torch.zeros(1, dtype=torch.float64), 1).scale
D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2))
D.Dirichlet(torch.ones(3)).log_prob(torch.ones(3))
D.Dirichlet(torch.tensor(1.))
D.Categorical()
D.Categorical(torch.ones(2), torch.ones(2))
D.Categorical(torch.tensor(1.))
D.Categorical(torch.ones(2)).cdf(1)
D.Categorical(torch.ones(3)).log_prob(torch.tensor(3))
D.Categorical(torch.tensor([[1., 2.]])).param_shape
D.Categorical(torch.tensor([-1., 2.]))
D.Bernoulli(2.)
D.Bernoulli(0.3).log_prob(torch.tensor(0.5))
D.Beta(1., 2.)
D.Beta(1., 2.).concentration1
D.Beta(-1., 2.)
D.Gamma(1., 2.).log_prob(torch.tensor(-1.))
D.Uniform(2., 1.)
D.Uniform(0., 1.).log_prob(torch.tensor(2.))
D.MultivariateNormal(torch.zeros(2), torch.eye(2))
D.MultivariateNormal(torch.zeros(2))
D.MultivariateNormal(torch.zeros(2), -torch.eye(2))
D.MultivariateNormal(torch.zeros(2), scale_tril=torch.ones(2))
D.MultivariateNormal(torch.zeros(2), torch.ones(2))
D.MultivariateNormal(torch.tensor(0.), torch.eye(2))
D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2))
D.Independent(D.Normal(torch.zeros(2), 1.), 1)
D.Independent(D.Normal(0., 1.), 1)
D.LogNormal(0., 1.)
D.Distribution.set_default_validate_args(3)
D.Distribution()
D.Distribution(validate_args=False).mode
D.Distribution(validate_args=False).sample()
D.Binomial(torch.tensor([1., 2.]), 0.3).enumerate_support()
D.Binomial(2, 0.3).enumerate_support()
D.Binomial(-1, 0.3)
D.Multinomial(torch.tensor(2), torch.ones(3))
D.Geometric(0.)
D.TransformedDistribution(D.Normal(0., 1.), 3)
D.TransformedDistribution(D.Normal(0., 1.), [3])
D.TransformedDistribution(D.Normal(0., 1.), [D.SoftmaxTransform()])
D.MixtureSameFamily(1, 2)
D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(3), 1.))
D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), 1.))
D.Cauchy(0., 1.).mean
D.LKJCholesky(1)
D.VonMises(0., 1.).expand((2,))
D.ContinuousBernoulli(0.3)
D.Wishart(torch.tensor(3.), torch.eye(2))
D.Wishart(torch.tensor(.3), torch.eye(2))
D.NegativeBinomial(3, 1.5)
D.StudentT(2.)
D.kl_divergence(D.Normal(0., 1.), D.Poisson(1.))
D.kl_divergence(1, 2)
c.greater_than(2)
c.unit_interval
c.independent(c.real, 1)
c.independent(c.real, 1).event_dim
c.independent(c.dependent, 1).event_dim
c.dependent.check(1)
c.dependent(is_discrete=True).is_discrete
c.multinomial(5)
c.cat([c.real, c.positive], -1, [1, 2]).check(torch.tensor([1., -1., 2.]))
c.stack([c.real, c.positive], 0).check(torch.tensor([[1., 2.], [-1., 2.]]))
c.real.check(torch.tensor([1., float('nan')]))
c.one_hot.check(torch.eye(2))
c.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]]))
c.positive_definite.check(torch.stack([torch.eye(2), -torch.eye(2)]))
c.positive_semidefinite.check(torch.zeros(2, 2))
c.corr_cholesky.check(torch.eye(3))
c.lower_cholesky.check(torch.ones(2, 2))
c.square.check(torch.ones(2, 3))
c.symmetric.check(torch.tensor([[1., 2.], [2., 3.]]))
c.integer_interval(0, 3).check(torch.tensor([0., 1.5, 4.]))
c.nonnegative_integer.check(torch.tensor([0., 1.5, -4.]))
D.ExpTransform().inv
D.ExpTransform().inv.inv
D.ComposeTransform([D.ExpTransform(), D.SigmoidTransform()])
D.PowerTransform(torch.tensor(2.))
D.IndependentTransform(D.ExpTransform(), 1)
D.ReshapeTransform((2, 3), (5,))
D.AffineTransform(1., 2.) == D.AffineTransform(1., 2.)
D.AffineTransform(1., 2.) == D.AffineTransform(1., 3.)
D.AffineTransform(1., 2., cache_size=2)
D.AbsTransform().sign
D.SoftmaxTransform().log_abs_det_jacobian(torch.ones(2), torch.ones(2))
D.StickBreakingTransform().forward_shape((3,))
D.StickBreakingTransform().forward_shape(())
D.StickBreakingTransform().event_dim
D.CorrCholeskyTransform().forward_shape((4,))
D.CorrCholeskyTransform().forward_shape((6,))
D.CorrCholeskyTransform().event_dim
D.LowerCholeskyTransform().codomain
D.biject_to(c.dependent)
D.transform_to(c.boolean)
D.transform_to(c.simplex)
D.biject_to(c.simplex)
D.biject_to(c.interval(0., 3.))
D.biject_to(c.less_than(3.))
D.biject_to(c.independent(c.positive, 1))
D.biject_to(c.unit_interval)
D.biject_to(c.real)
D.biject_to.register(3, lambda x: x)
D.transform_to(c.greater_than(torch.tensor(2.)))(torch.tensor([-1., 0.]))
torch.binomial(torch.tensor([10, 5]), torch.tensor([.5, .2]))
torch.binomial(torch.tensor([10.], dtype=torch.float64), torch.tensor([.5]))
torch._standard_gamma(torch.tensor([1, 2]))
torch._sample_dirichlet(torch.tensor([1, 2]))
torch._standard_gamma(torch.ones(2, requires_grad=True)).requires_grad""".splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_words(program: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (
        answer(library, program, D=library.distributions, c=library.distributions.constraints)
        for library in (retrograd, torch)
    )
    assert str(ours).replace("'retrograd.", "'torch.") == str(theirs)
