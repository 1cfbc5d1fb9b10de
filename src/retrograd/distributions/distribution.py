"""The class of all distributions."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._core.arrays import LevelArray
from .._modes import using
from .._size import Size
from .._tracebacks import guard_own
from .._warnings import warn
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]

SINGLE = Size()  # the shape of one number


class Distribution:
    """A distribution of events of `event_shape`, in a batch of `batch_shape`.

    A subclass names in `_expands` the tensors that `expand` broadcasts, each with the batch's dimensions first; what else there is to
    expand is left to `_expand_more`.

    Args:
        batch_shape: the shape of the batch
        event_shape: the shape of an event
        validate_args: whether parameters and values are checked

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> isinstance(d, torch.distributions.Distribution), d.batch_shape, d.sample((2,)).shape
        (True, torch.Size([3]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args: bool = __debug__
    _expands: tuple[str, ...] | None = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their parameters and values by default."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard_own(cls)

    def __init__(self, batch_shape: Any = SINGLE, event_shape: Any = SINGLE, validate_args: bool | None = None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            limits = {}
            warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation."
            )
        for name, constraint in limits.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # made of another parameter, which is checked
            value = getattr(self, name)
            if not constraints.all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{_shown(value)}"
                )

    # ---- shapes ----
    @property
    def batch_shape(self) -> Any:
        """Return the shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """Return the shape of one event."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        if type(sample_shape) is not Size:
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return a distribution of the same events with its parameters expanded to a batch shape."""
        if self._expands is None:
            raise NotImplementedError
        owner = next(each for each in type(self).__mro__ if "_expands" in each.__dict__)
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        rank = len(self._batch_shape)
        for name in self._expands:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[rank:]))
        self._expand_more(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        """Bring to an expanded distribution what is not named in `_expands`."""

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    # ---- what a subclass has ----
    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Return the sets to which parameters belong."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Return the set to which events belong."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """Return the mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """Return the most probable event."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """Return the variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """Return the standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw samples, without a graph."""
        with using(grad=False):
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw samples that follow the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Draw n samples."""
        warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.")
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability, or of its density, of events."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Return the probability of what is not greater."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Return the event below which a probability lies."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all events of a discrete distribution."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Return the exponential of the entropy."""
        return rg.exp(self.entropy())

    # ---- checks ----
    def _check_event(self, value: Any) -> None:
        """Refuse a value that cannot be an event, if arguments are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, rg.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        own, shape = self._event_shape, value.shape
        if shape[len(shape) - len(own) :] != own:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + own
        for n, m in zip(reversed(shape), reversed(expected), strict=False):
            if n != m and n != 1 and m != 1:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        if not constraints.all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{_shown(value)}"
            )

    def __repr__(self) -> str:
        named = [name for name in self.arg_constraints if name in self.__dict__]
        values = [(name, self.__dict__[name]) for name in named]
        shown = ", ".join(f"{name}: {_shown(one) if one.numel() == 1 else one.size()}" for name, one in values)
        return f"{self.__class__.__name__}({shown})"


def _shown(value: Any) -> str:
    """Return a tensor's text: a single number's, unless it is one of many inside a transform."""
    return str(value) if isinstance(value._array, LevelArray) else f"{value}"
