"""One sample of one module, for both libraries."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import numpy as np
import torch

import retrograd
from tests.moduledb import entries
from tests.opdb import translate
from tests.opdb.calls import Call, fresh, seed
from tests.opdb.nearer import tensors_in, widened

CONSTRUCTING = 4321


def library(ours: bool) -> Any:
    return retrograd if ours else torch


class ModuleCall(Call):
    """A module and the arguments of its call.

    `parts` are the arguments, the parameters by name and the module: what differentiates and batches op_db's calls finds
    the parameters among the tensors of a call, and puts others in their place.
    """

    error_on: Any = None  # of a call that raises: whether the constructor does, or the call

    def __init__(self, info: Any, sample: Any, dtype: Any, training: bool, **options: Any) -> None:
        super().__init__(info, sample)
        self.dtype = dtype
        self.training = training
        self.options = options  # further arguments of the constructor

    def __str__(self) -> str:
        given = self.sample.constructor_input
        made = ", ".join(
            [*(_short(a) for a in given.args), *(f"{k}={_short(v)}" for k, v in (given.kwargs | self.options).items())]
        )
        mode = "train" if self.training else "eval"
        return f"{entries.name(self.op)}({made})({_short_input(self.sample)}) in {mode}"

    def widened(self) -> ModuleCall:
        """Return the call with float64 in the place of half precision."""
        given = copy.copy(self.sample)
        given.forward_input = copy.copy(given.forward_input)
        given.forward_input.args = widened(tuple(given.forward_input.args))
        given.forward_input.kwargs = widened(dict(given.forward_input.kwargs))
        wide = ModuleCall(self.op, given, torch.float64, self.training, **self.options)
        wide.__dict__["state"] = widened(self.state)
        return wide

    # ---- making modules ----
    def constructed(self, ours: bool, **more: Any) -> Any:
        """Construct the module as a user would after setting a seed."""
        given = self.sample.constructor_input
        args, kwargs = tuple(given.args), dict(given.kwargs) | self.options | more
        if ours:
            args, kwargs = translate.arguments(args), translate.arguments(kwargs)
        else:
            args, kwargs = fresh(args), fresh(kwargs)
        seed()
        library(ours).manual_seed(CONSTRUCTING)
        return getattr(library(ours).nn, self.op.module_cls.__name__)(*args, **kwargs)

    def takes(self, option: str) -> bool:
        return option in inspect.signature(self.op.module_cls.__init__).parameters

    def module(self, ours: bool) -> Any:
        """Return the module with values that tell parameters apart: those of torch's module, moved a little."""
        made = self.constructed(ours).to(translate.dtype(self.dtype) if ours else self.dtype)
        made.train(self.training)
        if self.op.is_lazy:
            args, kwargs = self.given(ours)
            with library(ours).no_grad():
                made(*args, **kwargs)
        if ours or "state" in self.__dict__:
            made.load_state_dict(translate.arguments(self.state) if ours else self.state)
            return made
        rng = np.random.default_rng(3)
        with torch.no_grad():
            for value in made.state_dict().values():
                if value.is_floating_point():
                    value += torch.tensor(0.1 * rng.standard_normal(tuple(value.shape))).abs().to(value.dtype)
        return made

    @functools.cached_property
    def state(self) -> dict[str, Any]:
        """Return the values that the module has in both libraries."""
        return dict(self.module(False).state_dict())

    # ---- calling them ----
    def given(self, ours: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call, fresh for one run."""
        s = self.sample.forward_input
        if ours:
            return translate.arguments(tuple(s.args)), translate.arguments(dict(s.kwargs))
        return fresh(tuple(s.args)), fresh(dict(s.kwargs))

    def parts(self, ours: bool) -> Any:
        module = self.module(ours)
        args, kwargs = self.given(ours)
        return args, kwargs, dict(module.named_parameters()), module

    def run(self, ours: bool, parts: Any = None, function: Any = None) -> Any:
        """Call the module in one library."""
        args, kwargs, parameters, module = self.parts(ours) if parts is None else parts
        seed()
        own = dict(module.named_parameters())
        if all(own[name] is value for name, value in parameters.items()):
            return module(*args, **kwargs)
        return library(ours).func.functional_call(module, parameters, args, kwargs)

    def values(self, ours: bool) -> Any:
        """Return the outputs and what the call left in the buffers."""
        parts = self.parts(ours)
        result = self.run(ours, parts)
        return tensors_in(result), dict(parts[3].named_buffers())


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__name__}(...)"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_short(v) for v in value) + ")"
    return getattr(value, "__name__", repr(value)[:60])


def _short_input(sample: Any) -> str:
    given = sample.forward_input
    if given is None:
        return ""
    return ", ".join([*(_short(a) for a in given.args), *(f"{k}={_short(v)}" for k, v in given.kwargs.items())])
