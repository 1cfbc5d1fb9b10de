"""torch._functorch.eager_transforms."""

from retrograd.func import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp
from retrograd.func._transforms import _slice_argnums

__all__ = ["_slice_argnums", "debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
