"""torch.distributed.checkpoint.api: the error that says which process failed."""

from __future__ import annotations

import traceback
from typing import Any


class CheckpointException(BaseException):
    """An error of one or more processes while a checkpoint is written or read."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """The errors by the number of the process."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, error in self._failures.items():
            lines = traceback.format_exception(error)
            text += f"Traceback (most recent call last): (RANK {rank})\n{''.join(lines)}\n"
        return text


__all__ = ["CheckpointException"]
