"""torch.mps.event: no such device is there."""

from retrograd._compat._absent_device import refusals

globals().update(refusals("MPS", "Event"))
