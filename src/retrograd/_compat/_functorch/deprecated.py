"""The package `functorch` as it is in torch 2: torch.func's functions, which warn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograd import func
from retrograd._warnings import warn
from retrograd.torch_version import TORCH_VERSION

from . import make_functional as _old
from .make_functional import FunctionalModule, FunctionalModuleWithBuffers

__version__ = TORCH_VERSION


def _warning(function: Callable[..., Any], name: str, instead: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warn(
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. "
            f"Please use `{instead}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for "
            "more details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
        )
        return function(*args, **kwargs)

    return warned


vmap = _warning(func.vmap, "vmap", "torch.vmap")
functionalize = _warning(func.functionalize, "functionalize", "torch.func.functionalize")
grad = _warning(func.grad, "grad", "torch.func.grad")
grad_and_value = _warning(func.grad_and_value, "grad_and_value", "torch.func.grad_and_value")
hessian = _warning(func.hessian, "hessian", "torch.func.hessian")
jacfwd = _warning(func.jacfwd, "jacfwd", "torch.func.jacfwd")
jacrev = _warning(func.jacrev, "jacrev", "torch.func.jacrev")
jvp = _warning(func.jvp, "jvp", "torch.func.jvp")
vjp = _warning(func.vjp, "vjp", "torch.func.vjp")
make_functional = _warning(_old.make_functional, "make_functional", "torch.func.functional_call")
make_functional_with_buffers = _warning(
    _old.make_functional_with_buffers, "make_functional_with_buffers", "torch.func.functional_call"
)
combine_state_for_ensemble = _warning(
    _old.combine_state_for_ensemble, "combine_state_for_ensemble", "torch.func.stack_module_state"
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "__version__",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]
