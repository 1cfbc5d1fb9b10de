"""One way to make every distribution: programs over `D`, which is torch.distributions, and the arrays of `parameters`."""

from __future__ import annotations

from typing import Any

import numpy as np

CASES = {
    "Normal": "D.Normal(m, a)",
    "Categorical": "D.Categorical(probs=w)",
    "CategoricalLogits": "D.Categorical(logits=w)",
    "Bernoulli": "D.Bernoulli(u)",
    "BernoulliLogits": "D.Bernoulli(logits=m)",
    "Uniform": "D.Uniform(m, m + a)",
    "MultivariateNormal": "D.MultivariateNormal(w, scale_tril=lower)",
    "MultivariateNormalCovariance": "D.MultivariateNormal(w, lower @ lower.mT)",
    "MultivariateNormalPrecision": "D.MultivariateNormal(w, precision_matrix=lower @ lower.mT)",
    "Beta": "D.Beta(a, b)",
    "Gamma": "D.Gamma(a, b)",
    "Dirichlet": "D.Dirichlet(w)",
    "Exponential": "D.Exponential(a)",
    "Laplace": "D.Laplace(m, a)",
    "OneHotCategorical": "D.OneHotCategorical(probs=w)",
    "OneHotCategoricalStraightThrough": "D.OneHotCategoricalStraightThrough(logits=w)",
    "Multinomial": "D.Multinomial(5, probs=w)",
    "Binomial": "D.Binomial(7, u)",
    "BinomialMany": "D.Binomial(70, logits=m)",
    "Poisson": "D.Poisson(a)",
    "LogNormal": "D.LogNormal(m, a)",
    "StudentT": "D.StudentT(a + 2, m, b)",
    "Cauchy": "D.Cauchy(m, a)",
    "HalfNormal": "D.HalfNormal(a)",
    "HalfCauchy": "D.HalfCauchy(a)",
    "Chi2": "D.Chi2(a)",
    "Geometric": "D.Geometric(u)",
    "GeometricLogits": "D.Geometric(logits=m)",
    "Gumbel": "D.Gumbel(m, a)",
    "RelaxedBernoulli": "D.RelaxedBernoulli(t, u)",
    "LogitRelaxedBernoulli": "D.relaxed_bernoulli.LogitRelaxedBernoulli(t, u)",
    "RelaxedOneHotCategorical": "D.RelaxedOneHotCategorical(t, probs=w)",
    "ExpRelaxedCategorical": "D.relaxed_categorical.ExpRelaxedCategorical(t, logits=w)",
    "MixtureSameFamily": "D.MixtureSameFamily(D.Categorical(w), D.Normal(w, w))",
    "MixtureOfVectors": "D.MixtureSameFamily(D.Categorical(w), D.Independent(D.Normal(lower, lower.exp()), 1))",
    "LowRankMultivariateNormal": "D.LowRankMultivariateNormal(w, lower[..., :2], w)",
    "Kumaraswamy": "D.Kumaraswamy(a, b)",
    "Pareto": "D.Pareto(a, b)",
    "Weibull": "D.Weibull(a, b)",
    "VonMises": "D.VonMises(m, a)",
    "NegativeBinomial": "D.NegativeBinomial(a, u)",
    "LogisticNormal": "D.LogisticNormal(w, w)",
    "InverseGamma": "D.InverseGamma(a, b)",
    "FisherSnedecor": "D.FisherSnedecor(a, b + 4)",
    "LKJCholesky": "D.LKJCholesky(3, a)",
    "Wishart": "D.Wishart(a + 3, scale_tril=lower[0])",
    "WishartCovariance": "D.Wishart(a + 3, lower @ lower.mT)",
    "ContinuousBernoulli": "D.ContinuousBernoulli(u)",
    "ContinuousBernoulliLogits": "D.ContinuousBernoulli(logits=m)",
    "GeneralizedPareto": "D.GeneralizedPareto(m, a, u)",
    "Independent": "D.Independent(D.Normal(w, w), 1)",
    "Transformed": "D.TransformedDistribution(D.Normal(m, a), [D.AffineTransform(b, a), D.SigmoidTransform()])",
    "StickBreaking": "D.TransformedDistribution(D.Normal(w, w), D.StickBreakingTransform())",
}


def parameters(dtype: str = "float64") -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of which programs make distributions."""
    rng = np.random.default_rng(0)
    lower = np.tril(rng.normal(size=(2, 3, 3)))
    lower[..., range(3), range(3)] = 0.5 + rng.random((2, 3))
    arrays = {
        "a": 0.4 + 2 * rng.random(2),
        "b": 0.5 + rng.random(2),
        "u": 0.1 + 0.8 * rng.random(2),
        "m": rng.normal(size=2),
        "t": 0.7 + rng.random(()),
        "w": 0.3 + rng.random((2, 3)),
        "lower": lower,
    }
    return {name: np.asarray(value, dtype) for name, value in arrays.items()}
