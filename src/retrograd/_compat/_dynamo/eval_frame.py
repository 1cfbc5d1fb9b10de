"""torch._dynamo.eval_frame: where torch has the class of compiled modules."""

from retrograd.compiler._module import OptimizedModule

__all__ = ["OptimizedModule"]
