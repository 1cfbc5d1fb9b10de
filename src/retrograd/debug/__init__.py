"""Looking into a graph and its gradients: tools that torch does not have."""

from ._gradient_flow import GradientFlow, gradient_flow
from ._saved_bytes import SavedBytes, saved_bytes
from ._view import Recording, record, view

__all__ = ["GradientFlow", "Recording", "SavedBytes", "gradient_flow", "record", "saved_bytes", "view"]
