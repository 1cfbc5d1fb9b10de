"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: modules that keep their inputs and compute the rest again in backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from ...._public import set_all
from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....utils.checkpoint import checkpoint
from ...fsdp._names import CHECKPOINT_WRAPPED_MODULE, unwrap_names, wrap_names
from ...fsdp.wrap import replace_parts, wrap_parts

_CHECKPOINT_WRAPPED_MODULE = CHECKPOINT_WRAPPED_MODULE
_CHECKPOINT_PREFIX = f"{CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(Enum):
    """Which of the two ways of checkpointing is used."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, whose names do not show in the state."""

    def __init__(self, mod: Any) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_wrapper)
        self.register_load_state_dict_pre_hook(_with_wrapper)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module inside; subclasses say how."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == CHECKPOINT_WRAPPED_MODULE:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters by their names in the module inside."""
        for name, one in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), one


def _without_wrapper(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Take the wrapper's part out of the names of a state."""
    unwrap_names(state, prefix, CHECKPOINT_WRAPPED_MODULE)


def _with_wrapper(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Put the wrapper's part into the names of a state."""
    wrap_names(state, prefix, CHECKPOINT_WRAPPED_MODULE)


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs in the memory of the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module inside."""
        with save_on_cpu(pin_memory=False):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Keeps its inputs, and lets backward compute the rest again."""

    def __init__(
        self,
        mod: Any,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        self.checkpoint_fn: Any
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn = partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module inside under a checkpoint."""
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names, count = tuple(kwargs), len(args)  # the reentrant way takes tensors by position

        def call(*values: Any) -> Any:
            return self._checkpoint_wrapped_module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Any) -> Any:
    """Wrap a module so that what backward needs is kept in the memory of the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Any:
    """Wrap a module so that backward computes its values again."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable[..., Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wrap the parts of a module that a function or a policy names, in place."""
    if auto_wrap_policy is not None:
        wrap_parts(model, auto_wrap_policy, checkpoint_wrapper_fn, set(), {})
    else:
        replace_parts(model, lambda part: checkpoint_wrapper_fn(part) if check_fn(part) else part)


set_all(globals())
