"""Looking into a graph and its gradients: tools that torch does not have."""

from ._gradient_flow import GradientFlow, gradient_flow
from ._saved_bytes import SavedBytes, saved_bytes

__all__ = ["GradientFlow", "SavedBytes", "gradient_flow", "saved_bytes"]
