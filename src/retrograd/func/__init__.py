"""torch.func: composable transforms."""

from typing import Any

from .._tracebacks import guarded
from ._batch_norm import replace_all_batch_norm_modules_
from ._linearize import debug_unwrap, functionalize, hvp, linearize
from ._modules import functional_call, stack_module_state
from ._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


@guarded
def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    if name == "rearrange":
        from ._rearrange import rearrange

        return rearrange
    raise AttributeError(f"module 'torch.func' has no attribute '{name}'")
