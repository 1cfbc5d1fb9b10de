"""`torch.masked`: reductions and normalisations of the elements that a mask lets through. Dense tensors only."""

from __future__ import annotations

from typing import Any

from ._ops import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from ._ops import input_mask as _input_mask  # torch's own tests use these two
from ._ops import output_mask as _output_mask


def is_masked_tensor(obj: Any, /) -> bool:
    """Tell whether a value is a MaskedTensor, which retrograd does not have."""
    return False


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> Any:
    """Refuse: there are no MaskedTensors."""
    raise NotImplementedError("retrograd has no MaskedTensor: pass the mask to the functions of torch.masked instead")


def as_masked_tensor(data: Any, mask: Any) -> Any:
    """Refuse: there are no MaskedTensors."""
    return masked_tensor(data, mask)


__all__ = [name for name in dir() if name[0] != "_" and name not in ("Any", "annotations")]
