"""torch.distributed.checkpoint.api: the error that says which process failed."""

from __future__ import annotations

import pickle
import traceback

from ..._tracebacks import shorten

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


def _wrap_exception(error: BaseException) -> WRAPPED_EXCEPTION:
    """Return an error with its lines, in a form that other processes can be told."""
    shorten(error)
    lines = traceback.extract_tb(error.__traceback__)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError("".join(traceback.format_exception_only(error)).strip())
    return error, lines


class CheckpointException(BaseException):
    """An error of one or more processes while a checkpoint is written or read."""

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """The errors by the number of the process, each with the lines it came from."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, lines) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(lines) + traceback.format_exception_only(error))
        return text


__all__ = ["CheckpointException"]
