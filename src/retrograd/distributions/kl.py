"""Kullback-Leibler divergences, by the classes of two distributions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._warnings import warn
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .independent import Independent
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of two distributions for two classes and their subclasses."""
    if not isinstance(type_p, type) and issubclass(type_p, Distribution):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type) and issubclass(type_q, Distribution):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()  # a nearer pair may have come
        return function

    return declare


def _unknown(p: Any, q: Any) -> Any:
    return NotImplemented


def _nearest(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """Find the function of the nearest classes: by the first distribution, and then by the second."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return _unknown
    p_first, q_first = (list(one.__mro__) for one in (type_p, type_q))
    left = min(pairs, key=lambda pair: (p_first.index(pair[0]), q_first.index(pair[1])))
    right = min(pairs, key=lambda pair: (q_first.index(pair[1]), p_first.index(pair[0])))
    chosen = _KL_REGISTRY[left]
    if chosen is not _KL_REGISTRY[right]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})",
            RuntimeWarning,
        )
    return chosen


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the divergence KL(p || q)."""
    kinds = type(p), type(q)
    function = _KL_MEMOIZE.get(kinds)
    if function is None:
        import_module("._kl_pairs", __package__)  # which registers what is known
        function = _KL_MEMOIZE[kinds] = _nearest(*kinds)
    result = function(p, q)
    if result is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return result


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_families(p: Any, q: Any) -> Any:
    """Return the Bregman divergence of the log normaliser."""
    if not type(p) == type(q):  # noqa: E721 - subclasses are other families
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             "
            "be computed using Bregman divergences"
        )
    natural_p, normalizer, slopes = p._slopes()
    natural_q = q._natural_params
    result = q._log_normalizer(*natural_q) - normalizer
    for of_p, of_q, slope in zip(natural_p, natural_q, slopes, strict=True):
        result = result - _sum_rightmost((of_q - of_p) * slope, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
