"""torch.cuda.amp.grad_scaler: an older home of the scaler."""

from . import GradScaler

__all__ = ["GradScaler"]
