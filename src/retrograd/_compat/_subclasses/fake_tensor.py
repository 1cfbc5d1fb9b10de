"""torch._subclasses.fake_tensor: libraries ask whether a tensor is a fake one, and none is here."""

from __future__ import annotations

from typing import Any

from retrograd.tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode"]

WORDS = "needs torch's compiler, which runs programs on tensors without numbers; tensors on the device 'meta' are such"


class FakeTensor(Tensor):
    """A tensor on a device of its choice that has no numbers: there is none here."""

    @classmethod
    def _construct(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"FakeTensor {WORDS}")


class FakeTensorMode:
    """A block in which programs run on tensors without numbers: not here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"FakeTensorMode {WORDS}")


def is_fake(x: Any) -> bool:
    """Tell whether a value is a tensor without numbers that the compiler made."""
    return isinstance(x, FakeTensor)
