"""torch._functorch.make_functional: a module as a function of its parameters and buffers, in the way before `functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from retrograd import nn
from retrograd.func import functional_call
from retrograd.tensor._functions.joining import stack


class FunctionalModuleWithBuffers(nn.Module):
    """A module without state: `f(params, buffers, *args)`."""

    def __init__(self, stateless_model: nn.Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)
        self.buffer_names = tuple(buffer_names)

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(nn.Module):
    """A module without state: `f(params, *args)`."""

    def __init__(self, stateless_model: nn.Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


def _taken_apart(model: nn.Module, without_tracking: bool) -> tuple[nn.Module, dict[str, Any], dict[str, Any]]:
    """Copy a module; return the copy, its parameters and its buffers, shared ones under their first names."""
    model = copy.deepcopy(model)
    params = dict(model.named_parameters())
    if without_tracking:
        params = {name: param.detach() for name, param in params.items()}
    return model, params, dict(model.named_buffers())


def make_functional(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a function of a module's parameters, and copies of these."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    model, params, _ = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModule(model, tuple(params)), tuple(params.values())


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function of a module's parameters and buffers, and copies of these."""
    model, params, buffers = _taken_apart(model, disable_autograd_tracking)
    function = FunctionalModuleWithBuffers(model, tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function of one module's state, and the states of several modules of a kind as batches."""
    name = "combine_state_for_ensemble: Expected"
    if len(models) == 0:
        raise RuntimeError(f"{name} at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(f"{name} all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError(f"{name} all models to be of the same class.")
    made: list[Any] = [make_functional_with_buffers(model) for model in models]
    params, buffers = (_stacked([one[k] for one in made]) for k in (1, 2))
    return made[0][0], params, buffers


def _stacked(states: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple([stack(parts).detach() for parts in zip(*states, strict=True)])
