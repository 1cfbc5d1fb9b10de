"""Pruning: parts of a parameter are set to zero by a mask, and stay zero.

A pruned parameter `weight` is kept as `weight_orig`, its mask as the buffer `weight_mask`; before every forward a hook makes
`weight` of the two.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ..._tracebacks import guarded
from ...tensor._functions.creation import ones_like, zeros_like
from ...tensor._functions.norms import norm
from ...tensor._functions.random_tensors import rand, rand_like
from ...tensor._functions.selecting import kthvalue, topk
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned; it is the hook that does it, too. Subclasses define `compute_mask`."""

    PRUNING_TYPE: str
    _tensor_name: Any

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask for a tensor that is already pruned by `default_mask`."""

    def apply_mask(self, module: Any) -> Any:
        """Return the pruned tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter, further if it is pruned already."""
        method = cls._added_to_others(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            mask = ones_like(original)
        else:
            mask = getattr(module, f"{name}_mask").detach().clone()
        try:
            module.register_buffer(f"{name}_mask", method.compute_mask(importance_scores, default_mask=mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(f"{name}_orig"))
            raise
        return method

    @staticmethod
    def _added_to_others(module: Any, name: str, method: Any) -> Any:
        """Return the method, or a container of those that a parameter is pruned by and it; their hook is taken away."""
        method._tensor_name = name
        found = _hooks_of(module, name)
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        for number, before in found:
            del module._forward_pre_hooks[number]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a tensor pruned by this method, which is not on a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor an ordinary parameter."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _hooks_of(module: Any, name: str) -> list[tuple[int, Any]]:
    return [
        (number, hook)
        for number, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]


class PruningContainer(BasePruningMethod):
    """Several methods one after another; what one has pruned the next does not look at."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Let the last method prune what the others have left."""
        method = self._pruning_methods[-1]
        left = _left_by_others(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _left_by_others(method: Any, t: Any, mask: Any) -> Any:
    """Return the index of what a method may look at: elements, channels or everything, by its type."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    everything = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "global":
        return tuple(everything)
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    return _channels(t, dim, mask.sum(dim=[k for k in range(t.dim()) if k != dim]) != 0)


def _channels(t: Any, dim: int, chosen: Any) -> tuple[Any, ...]:
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = chosen
    return tuple(index)


# ---- the methods ----
class Identity(BasePruningMethod):
    """Prunes nothing; the parameter gets a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Prunes a number of elements or channels, or a part of them."""

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, numbers.Integral):
            count: int = round(self.amount * size)
            return count
        if int(self.amount) > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class RandomUnstructured(_ByAmount):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = self._count(t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[topk(rand_like(t).view(-1), k=count).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the elements nearest to zero."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = self._count(t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[topk(t.abs().view(-1), k=count, largest=False).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _OfChannels(_ByAmount):
    """Prunes whole channels along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _channel_count(self, t: Any) -> int:
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with "
                f"{t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return self._count(t.shape[self.dim])

    def _keeping(self, t: Any, chosen: Any, default_mask: Any) -> Any:
        mask = zeros_like(t)
        mask[_channels(t, self.dim, chosen)] = 1
        return mask.mul_(default_mask.to(dtype=mask.dtype))


class RandomStructured(_OfChannels):
    """Prunes channels at random."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = self._channel_count(t)
        if not count:
            return default_mask
        drawn = rand(t.shape[self.dim])
        return self._keeping(t, drawn > kthvalue(drawn, k=count).values, default_mask)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_OfChannels):
    """Prunes the channels of smallest norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = self._channel_count(t)
        dim = range(t.dim())[self.dim]
        norms = norm(t, p=self.n, dim=[k for k in range(t.dim()) if k != dim])
        kept = topk(norms, k=t.shape[dim] - count, largest=True).indices
        return self._keeping(t, kept, default_mask) if count else default_mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


# ---- the functions ----
@guarded
def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


@guarded
def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


@guarded
def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements nearest to zero."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


@guarded
def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@guarded
def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the channels of smallest norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@guarded
def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters as if they were one vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    given = list(parameters)
    values = parameters_to_vector([scores.get((m, name), getattr(m, name)) for m, name in given])
    masks = [getattr(m, f"{name}_mask", ones_like(getattr(m, name))) for m, name in given]
    container = PruningContainer()
    method = pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(values, parameters_to_vector(masks))
    start = 0
    for module, name in given:
        one = getattr(module, name)
        custom_from_mask(module, name, mask=mask[start : start + one.numel()].view_as(one))
        start += one.numel()


@guarded
def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune by a given mask."""
    CustomFromMask.apply(module, name, mask)
    return module


@guarded
def remove(module: Any, name: str) -> Any:
    """Make pruning permanent: the pruned values become an ordinary parameter."""
    for number, hook in _hooks_of(module, name)[:1]:
        hook.remove(module)
        del module._forward_pre_hooks[number]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Tell whether anything below a module is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for one in module.modules() for hook in one._forward_pre_hooks.values()
    )
