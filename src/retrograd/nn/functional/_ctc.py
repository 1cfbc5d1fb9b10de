"""The CTC loss."""

from __future__ import annotations

from typing import Any

from ...overrides import overridable
from .._reduction import get_enum
from . import _coded_ctc

__all__ = ["ctc_loss"]


@overridable(raised="cpu cuda")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Return the loss of label sequences over all their alignments with longer sequences of log-probabilities."""
    return _coded_ctc.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity
    )
