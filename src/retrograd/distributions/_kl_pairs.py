"""Divergences of pairs of distributions, by their formulas."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant, where


# ---- discrete ----
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = rg.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zeros))
    return ones + zeros


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    term = p.probs * (p.logits - q.logits)
    term = where((q.probs == 0).expand_as(term), math.inf, term)
    return where((p.probs == 0).expand_as(term), 0.0, term).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - rg.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# ---- of the same family ----
@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    constants = (
        q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    )  # fmt: skip
    return (
        constants
        + (p.concentration1 - q.concentration1) * rg.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * rg.digamma(p.concentration0)
        + (total_q - total_p) * rg.digamma(total_p)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    constants = total_p.lgamma() - total_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slopes = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return constants + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + rg.lgamma(q.concentration)
        - rg.lgamma(p.concentration)
        + (p.concentration - q.concentration) * rg.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * rg.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    above = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return above.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    of_p, of_q = p.loc / q.scale, q.loc / q.scale
    return (
        -ratio.log() - of_q + of_p + ratio * euler_constant
        + rg.exp(of_q + (1 + ratio).lgamma() - of_p) - (1 + euler_constant)
    )  # fmt: skip


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.support.lower_bound < q.support.lower_bound, math.inf, kl)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, kl)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    return (
        p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() + rg.log1p(-p.probs)
        - q._cont_bern_log_norm() - rg.log1p(-q.probs)
    )  # fmt: skip


# ---- normal vectors ----
def _trace(lower: Any, factor: Any) -> Any:
    """Return the trace of (L L^T)^-1 W W^T."""
    return rg.linalg.solve_triangular(lower, factor, upper=False).pow(2).flatten(-2).sum(-1)


def _need_one_event(p: Any, q: Any, words: str) -> None:
    if p.event_shape != q.event_shape:
        gap = " " * 26  # torch's own
        raise ValueError(f"KL-divergence between two {words} with{gap}different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    _need_one_event(p, q, "Multivariate Normals")
    lower = q._unbroadcasted_scale_tril
    trace = _trace(lower, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(lower, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - p.event_shape[0])


def _parts(p: Any) -> list[Any]:
    """Return matrices W whose products W W^T add up to the covariance."""
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _low_rank_trace(p_parts: list[Any], q: Any) -> Any:
    """Return the trace of q's precision times the sum of products W W^T."""
    inverse_root = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    a = rg.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    return sum((part * inverse_root).pow(2).sum([-2, -1]) - (a @ part).pow(2).sum([-2, -1]) for part in p_parts)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_ranks(p: Any, q: Any) -> Any:
    _need_one_event(p, q, "Low Rank Multivariate Normals")
    trace = _low_rank_trace(_parts(p), q)
    return 0.5 * (q._log_det() - p._log_det() + trace + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_to_low_rank(p: Any, q: Any) -> Any:
    _need_one_event(p, q, "(Low Rank) Multivariate Normals")
    trace = _low_rank_trace([p._unbroadcasted_scale_tril], q)
    log_dets = q._log_det() - 2 * p._half_log_det()
    return 0.5 * (log_dets + trace + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_to_full(p: Any, q: Any) -> Any:
    _need_one_event(p, q, "(Low Rank) Multivariate Normals")
    lower = q._unbroadcasted_scale_tril
    trace = sum(_trace(lower, part) for part in _parts(p))
    log_dets = 2 * q._half_log_det() - p._log_det()
    distance = _batch_mahalanobis(lower, q.loc - p.loc)
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


# ---- of different families ----
def _normal_cross_entropy(mean: Any, variance: Any, q: Any) -> Any:
    """Return -E[log q] of a distribution with a mean and a variance."""
    spread = q.scale.pow(2)
    return 0.5 * (2 * math.pi * spread).log() + 0.5 * (variance + (mean - q.loc).pow(2)) / spread


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _normal_cross_entropy(p.mean, p.variance, q)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _from_unit_to_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    return where((q.low > 0) | (q.high < 1), math.inf, kl)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - rg.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * (p.concentration1 / (p.concentration1 + p.concentration0))


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    constants = q.concentration.lgamma() - q.concentration * q.rate.log()
    slopes = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + constants - (q.concentration - 1) * slopes + q.rate * p.mean


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - rg.log(q.rate) + q.rate * p.mean


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return (
        -q.concentration * rg.log(ratio) + ratio + q.concentration.lgamma()
        + q.concentration * euler_constant - (1 + euler_constant)
    )  # fmt: skip


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    ratio = p.rate * q.scale
    shift = q.loc / q.scale
    return ratio.log() - 1 + ratio.reciprocal() - shift + rg.exp(shift) * (ratio / (ratio + 1))


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    mean = p.rate.reciprocal()
    return p.rate.log() - 1 + _normal_cross_entropy(mean, mean.pow(2), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    scaled = p.rate * q.scale
    shift = q.loc / q.scale
    return (
        (p.concentration - 1) * p.concentration.digamma()
        - p.concentration.lgamma()
        - p.concentration
        + scaled.log()
        + p.concentration / scaled
        - shift
        + shift.exp() * (1 + scaled.reciprocal()).pow(-p.concentration)
    )


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + shift + rg.exp(-shift + 0.5 * ratio.pow(2))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    distance = p.loc - q.loc
    ratio = distance / p.scale
    folded = p.scale * math.sqrt(2 / math.pi) * rg.exp(-0.5 * ratio.pow(2)) + distance * rg.erf(math.sqrt(0.5) * ratio)
    return -p.entropy() + (2 * q.scale).log() + folded / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return where(p.alpha <= 1, math.inf, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    kl = (
        p.alpha.log() - p.scale.log() - p.alpha.reciprocal() - 1
        + q.concentration.lgamma() - q.concentration * q.rate.log()
        + (1 - q.concentration) * mean_log + q.rate * p.alpha * p.scale / (p.alpha - 1)
    )  # fmt: skip
    return where(p.alpha <= 1, math.inf, kl)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    mean = p.alpha * p.scale / (p.alpha - 1)
    variance = p.scale.pow(2) * p.alpha / ((p.alpha - 1).pow(2) * (p.alpha - 2))
    kl = -p.entropy() + _normal_cross_entropy(mean, variance, q)
    return where(p.alpha <= 2, math.inf, kl)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    total = q.concentration1 + q.concentration0
    of_high = rg.xlogy(p.high, p.high) - rg.xlogy(p.low, p.low) - width
    of_low = rg.xlogy(1 - p.high, 1 - p.high) - rg.xlogy(1 - p.low, 1 - p.low) + width
    kl = (
        -width.log()
        - (q.concentration1 - 1) * of_high / width
        + (q.concentration0 - 1) * of_low / width
        + q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    )  # fmt: skip
    return where((p.high > 1) | (p.low < 0), math.inf, kl)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    kl = -p.entropy() - p.mean * q.logits - rg.log1p(-q.probs) - q._cont_bern_log_norm()
    return where((p.high > 1) | (p.low < 0), math.inf, kl)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return where(p.low < 0, math.inf, kl)


def _mean_log(p: Any) -> Any:
    """Return the mean of the logarithm of a uniform number."""
    return (rg.xlogy(p.high, p.high) - rg.xlogy(p.low, p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    kl = (
        -(p.high - p.low).log() + q.concentration.lgamma() - q.concentration * q.rate.log()
        + (1 - q.concentration) * _mean_log(p) + q.rate * (p.high + p.low) / 2
    )  # fmt: skip
    return where(p.low < 0, math.inf, kl)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    ratio = q.scale / (p.high - p.low)
    high, low = (q.loc - p.high) / q.scale, (q.loc - p.low) / q.scale
    return ratio.log() + 0.5 * -(high + low) - ratio * (high.exp() - low.exp())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    kl = -(q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log() + (q.alpha + 1) * _mean_log(p)
    return where(p.low < q.support.lower_bound, math.inf, kl)


# ---- pairs of which one does not live where the other does ----
def _infinite(p: Any, q: Any) -> Any:
    shape = rg.broadcast_shapes(p.batch_shape, q.batch_shape)
    beside = getattr(p, next(iter(p.arg_constraints)))
    return rg.full(shape, math.inf, dtype=beside.dtype, device=beside.device)


_NEVER: list[tuple[type, list[type]]] = [
    (Beta, [Pareto]),
    (ContinuousBernoulli, [Pareto]),
    (Exponential, [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gamma, [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gumbel, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Laplace, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Normal, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Pareto, [Beta, ContinuousBernoulli, Uniform]),
    (Poisson, [Bernoulli, Binomial]),
]
for _p, _others in _NEVER:
    for _q in _others:
        register_kl(_p, _q)(_infinite)
