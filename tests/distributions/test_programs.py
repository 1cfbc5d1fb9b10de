"""Short programs over distributions give what they give in torch, under one seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.distributions
from tests.oracle import Raised, outcome, whole

PROGRAMS = """D.Normal(0,1).sample()
D.Normal(t(0.),t(1.),validate_args=False).sample((3,))
D.Normal(0.,1.).sample(t([2,3]).shape)
D.Normal(0.,1.).sample([2])
D.Bernoulli(.3).sample((5,))
D.Bernoulli(.3).enumerate_support()
D.Categorical(torch.ones(3)).sample((2,2))
D.Categorical(torch.ones(2,3)).enumerate_support().shape
D.Categorical(torch.ones(2,3)).enumerate_support(expand=False).shape
D.Poisson(3.).sample((4,))
D.Poisson(30.).sample((4,))
D.Multinomial(10,torch.ones(3)).sample()
D.Multinomial(10,torch.ones(3)).entropy()
D.Gamma(2,3).sample()
D.Beta(.5,.5).sample((3,))
D.Uniform(0,2).sample((3,))
D.Exponential(2).sample()
D.Geometric(.3).sample((4,))
D.Gumbel(0.,1.).sample((4,))
D.Gumbel(0.,1.).rsample((4,))
D.HalfCauchy(1.).sample((4,))
D.Pareto(1.,2.).sample((4,))
D.Weibull(1.,2.).sample((4,))
D.Laplace(0.,1.).sample((20,))
D.StudentT(3.).sample((20,))
D.Dirichlet(torch.ones(3)).mode
D.Dirichlet(torch.tensor([.5,.6,.2])).mode
D.Beta(.5,.6).mode
D.LogisticNormal(0.,1.).sample()
D.RelaxedBernoulli(t(.5),.5).sample((3,))
D.RelaxedBernoulli(t(.5),t(.5)).log_prob(t(.3))
D.LKJCholesky(3).sample((2,))
D.LKJCholesky(4,t([1.,2.])).sample((2,))
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).sample((3,))
D.MultivariateNormal(torch.zeros(3,2),torch.eye(2)).log_prob(torch.ones(4,3,2))
D.MultivariateNormal(torch.zeros(3,1,2),torch.eye(2).expand(4,2,2)).log_prob(torch.ones(2))
D.MultivariateNormal(torch.zeros(3,1,2),torch.eye(2).expand(4,2,2)).entropy()
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).expand((3,)).rsample()
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).precision_matrix
D.MultivariateNormal(torch.zeros(2),precision_matrix=torch.eye(2)*2).covariance_matrix
D.MultivariateNormal(torch.zeros(2),scale_tril=torch.eye(2)*2).variance
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),torch.ones(2)).precision_matrix
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),torch.ones(2)).scale_tril
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),torch.ones(2)).covariance_matrix
D.NegativeBinomial(3,.4).sample((5,))
D.VonMises(0.,1.).sample((50,))
D.VonMises(t(0.),t(1e-7)).sample((5,))
D.ContinuousBernoulli(.5).sample((3,))
D.ContinuousBernoulli(t([.2,.5,.9])).variance
D.Wishart(3,torch.eye(2)).mean
D.Wishart(3,torch.eye(2)).entropy()
D.FisherSnedecor(2.,3.).sample((4,))
D.Binomial(t([3.,20.,50.]),t([.1,.6,.5])).sample((4,))
D.Binomial(5,t([.1,.5])).entropy()
D.InverseGamma(2.,3.).sample((3,))
D.Kumaraswamy(2.,3.).sample((3,))
D.Chi2(3).sample()
D.Chi2(t(3.)).df
D.kl_divergence(D.Categorical(t([0.,1.])),D.Categorical(t([.5,.5])))
D.kl_divergence(D.Categorical(t([.5,.5])),D.Categorical(t([0.,1.])))
D.kl_divergence(D.Bernoulli(0.),D.Bernoulli(.5))
D.kl_divergence(D.Binomial(3,.5),D.Binomial(4,.5))
D.kl_divergence(D.MultivariateNormal(torch.zeros(2),torch.eye(2)),D.MultivariateNormal(torch.zeros(3),torch.eye(3)))
D.Independent(D.Bernoulli(torch.ones(2)*.3),1).enumerate_support()
D.Independent(D.Normal(torch.zeros(2,3),1.),2).event_shape
D.Independent(D.Normal(torch.zeros(2,3),1.),1).expand((4,2)).sample().shape
D.TransformedDistribution(D.Normal(0.,1.),[D.AffineTransform(torch.zeros(3),1.)]).sample()
D.TransformedDistribution(D.Normal(torch.zeros(2),1.),[D.StickBreakingTransform()]).event_shape
D.TransformedDistribution(D.Uniform(0.,1.),[D.AffineTransform(0.,-1.)]).cdf(t(-.3))
D.TransformedDistribution(D.Uniform(0.,1.),[D.AffineTransform(0.,-1.)]).icdf(t(.3))
D.PowerTransform(2).exponent
D.Normal(t([0.,1.]),1.).icdf(t(.3))
D.Uniform(0.,1.).cdf(t(.3))
D.HalfNormal(2.).icdf(t(.3))
D.OneHotCategorical(torch.ones(3)).enumerate_support()
D.OneHotCategorical(torch.ones(3)).log_prob(t([0.,1.,0.]))
D.Normal(torch.zeros(2,dtype=torch.float64),1.).rsample().dtype
D.Normal(torch.zeros(2,dtype=torch.float16),1.).rsample().dtype
D.Normal(torch.zeros(2,dtype=torch.bfloat16),1.).log_prob(torch.zeros(2,dtype=torch.bfloat16)).dtype
D.Normal(t([0,1]),t([1.,2.])).log_prob(t([1.,1.]))
D.Normal.arg_constraints
D.Uniform.support
D.Categorical.support
D.Gamma(t([1.]),t([1.])).rsample().shape
D.constraints.is_dependent(D.Categorical.support)
D.Categorical.support.is_discrete
D.Beta.has_rsample
D.Normal(0.,1.).log_prob(t(float('nan')))
D.Normal(0.,1.).perplexity()
D.Categorical(logits=t([[0.,float('-inf')],[1.,2.]])).entropy()
D.Categorical(logits=t([0.,float('-inf')])).logits
D.Dirichlet(t([[1.,2.],[3.,4.]])).sample((2,))
D.ExponentialFamily.entropy(D.Gamma(2.,3.))
D.ExponentialFamily.entropy(D.Normal(2.,3.))
D.ExponentialFamily.entropy(D.Exponential(2.))
D.ExponentialFamily.entropy(D.Bernoulli(.3))
D.ExponentialFamily.entropy(D.Poisson(.3))""".splitlines()


def result(library: Any, program: str) -> Any:
    """Return what a program gives: numbers, else a text."""
    library.manual_seed(0)
    value = outcome(
        lambda: eval(program, {"torch": library, "D": library.distributions, "t": library.tensor}), words=whole
    )
    if isinstance(value, Raised):
        return value
    return value.detach().numpy() if hasattr(value, "detach") else str(value).replace("retrograd", "torch")


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    ours, theirs = (result(library, program) for library in (retrograd, pytest.importorskip("torch")))
    if not isinstance(theirs, np.ndarray):
        assert ours == theirs
        return
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)
