"""Looking into a graph and its gradients: tools that torch does not have."""

from ._activations import Activations, activations
from ._gradient_flow import GradientFlow, gradient_flow
from ._loss_landscape import LossLandscape, loss_landscape
from ._saved_bytes import SavedBytes, saved_bytes
from ._switches import full_tracebacks, progress
from ._view import Recording, record, view

__all__ = [
    "Activations",
    "GradientFlow",
    "LossLandscape",
    "Recording",
    "SavedBytes",
    "activations",
    "full_tracebacks",
    "gradient_flow",
    "loss_landscape",
    "progress",
    "record",
    "saved_bytes",
    "view",
]
