"""Weight normalisation: the length of a weight and its direction are learned apart."""

from __future__ import annotations

from typing import Any

from ..._ops import weight_norm as w
from ..._tracebacks import guarded
from ..._warnings import warn
from ...overrides import overridable
from ...tensor._functions.norms import vector_norm
from ...tensor._recording.record import record
from ..parameter import UninitializedParameter, make_parameter


@overridable
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Return the norms of the slices along a dimension, or of everything if it is -1."""
    if dim == -1:
        return vector_norm(v, pow)
    _check_dim(v, dim)
    return vector_norm(v, pow, [k for k in range(v.dim()) if k != dim], keepdim=True) if v.dim() > 1 else v.abs()


def _check_dim(v: Any, dim: int) -> None:
    if not -v.dim() <= dim < v.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-v.dim()}, {v.dim() - 1}], but got {dim})"
        )


@overridable(forms="function")
def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Return a direction with given lengths of its slices along a dimension."""
    if dim in (0, v.dim() - 1) and v.dim() > 1 and not v.is_complex():
        return record(w.weight_norm, (v, g), {"axis": dim})
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """A hook that computes a weight from its length and its direction before every forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """Return the weight."""
        return _weight_norm(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Put a hook on a module."""
        warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(f"{name}_g", make_parameter(norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(f"{name}_v", make_parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, make_parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


@guarded
def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a module learn the length and the direction of a weight apart; `dim` None takes the norm of all of it."""
    WeightNorm.apply(module, name, dim)
    return module


@guarded
def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
