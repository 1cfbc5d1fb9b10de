"""Spectral normalisation: a weight is divided by its largest singular value, which a power iteration follows."""

from __future__ import annotations

from typing import Any

from ..._modes import using
from ..._public import set_all
from ..._tracebacks import guarded
from ...tensor._functions.matrix_products import dot, mv
from .. import functional as F  # noqa: N812 - torch's name
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..parameter import UninitializedParameter, make_parameter


def outputs_dim(module: Any) -> int:
    """Return the dimension of a module's weight that counts its outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def unit(vector: Any, eps: float, out: Any = None) -> Any:
    """Return a vector of length one, written into `out` if given."""
    return F.normalize(vector, dim=0, eps=eps, out=out)


class SpectralNorm:
    """A hook that computes a weight from its original before every forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """Return the weight with one row for each output."""
        return weight.movedim(self.dim, 0).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """Return the weight, after a step of the power iteration if wanted."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with using(grad=False):
                for _ in range(self.n_power_iterations):
                    v = unit(mv(matrix.t(), u), self.eps, v)
                    u = unit(mv(matrix, v), self.eps, u)
                u, v = u.clone(), v.clone()  # the next forward writes into the buffers, and this graph still needs them
        return weight / dot(u, mv(matrix, v))

    def remove(self, module: Any) -> None:
        """Make the weight an ordinary parameter again."""
        with using(grad=False):
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, make_parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Put a hook on a module."""
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying spectral normalization"
            )
        with using(grad=False):
            rows, columns = hook.reshape_weight_to_matrix(weight).size()
            u, v = (unit(weight.new_empty(n).normal_(0, 1), eps) for n in (rows, columns))
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)  # others may look for it before the first forward
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Fills in what states of old versions do not hold: `v`, from the weight, its original and `u`."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *rest: Any
    ) -> None:
        hook = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{hook.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + hook.name
        if version is None and all(key + s in state_dict for s in ("_orig", "_u", "_v")) and key not in state_dict:
            return  # a state of this version without its metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with using(grad=False):
            original = state_dict[f"{key}_orig"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix, u = hook.reshape_weight_to_matrix(original), state_dict[f"{key}_u"]
            v = mv(matrix.pinverse(), u)
            state_dict[f"{key}_v"] = v * (sigma / dot(u, mv(matrix, v)))


class SpectralNormStateDictHook:
    """Notes the version in a state's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


@guarded
def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a module's weight by its largest singular value before every forward."""
    SpectralNorm.apply(module, name, n_power_iterations, outputs_dim(module) if dim is None else dim, eps)
    return module


@guarded
def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`."""
    hook = _take_out(module._forward_pre_hooks, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook.remove(module)
    _take_out(module._state_dict_hooks, SpectralNormStateDictHook, name)
    _take_out(module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook, name)
    return module


def _take_out(hooks: Any, kind: type, name: str) -> Any:
    """Remove the hook of a kind that belongs to a name; returns it."""
    for number, hook in hooks.items():
        if isinstance(hook, kind) and getattr(hook, "fn", hook).name == name:  # type: ignore[attr-defined]
            return hooks.pop(number)
    return None


set_all(globals(), but="outputs_dim unit")
