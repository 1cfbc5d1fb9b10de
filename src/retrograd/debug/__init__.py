"""Looking into a graph and its gradients: what torch has no word for."""

from ._gradient_flow import GradientFlow, gradient_flow
from ._saved_bytes import SavedBytes, saved_bytes

__all__ = ["GradientFlow", "SavedBytes", "gradient_flow", "saved_bytes"]
