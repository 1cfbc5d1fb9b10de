"""torch.func: composable transforms."""

from ._linearize import debug_unwrap, functionalize, hvp, linearize
from ._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]
