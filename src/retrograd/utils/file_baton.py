"""torch.utils.file_baton: a file that one process holds while others wait for it to go."""

from __future__ import annotations

import os
import time

from .._warnings import warn


class FileBaton:
    """A lock between processes: whoever makes the file has it."""

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path, self.wait_seconds, self.warn_after_seconds = (
            lock_file_path,
            wait_seconds,
            warn_after_seconds,
        )
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Make the file, and tell whether this process has."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        began, has_warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - began
            if self.warn_after_seconds is not None and not has_warned and waited > self.warn_after_seconds:
                has_warned = True
                warn(f'Waited on lock file "{self.lock_file_path}" for {self.warn_after_seconds} seconds.')

    def release(self) -> None:
        """Take the file away."""
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)
