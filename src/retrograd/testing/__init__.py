"""torch.testing: comparing results, and making inputs."""

from __future__ import annotations

from ._comparing import assert_allclose, assert_close
from ._making import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
