"""Datasets for tests, in a module of its own so that processes that start anew find them. They know neither library."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import numpy as np


class Squares:
    """Numbers and their squares."""

    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, float(index * index)


class Drawing(Squares):
    """Random numbers of the three streams, which workers seed."""

    def __init__(self, library: Any, size: int = 8) -> None:
        super().__init__(size)
        self.library = library

    def __getitem__(self, index: int) -> Any:
        return index, random.random(), np.random.rand(), self.library.rand(()).item()


class Failing(Squares):
    """Something goes wrong at index 3."""

    def __init__(self, how: str) -> None:
        super().__init__(8)
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "exit":
                os._exit(3)
            elif self.how == "leave":
                os._exit(0)
            elif self.how == "sleep":
                time.sleep(30)
            elif self.how == "stop":
                raise StopIteration
            elif self.how == "unpicklable":
                return lambda: None
            elif self.how == "local":

                class LocalError(Exception):
                    pass

                raise LocalError("here")
            elif self.how == "two":
                raise TwoWordsError("a", "b")
            else:
                raise {"value": ValueError, "key": KeyError}[self.how]("wrong at 3")
        return index


class TwoWordsError(Exception):
    """Cannot be made of one text."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one, two)


class Arrays(Squares):
    """Arrays of some size."""

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        super().__init__(size)
        self.shape = shape

    def __getitem__(self, index: int) -> Any:
        return np.full(self.shape, index, np.float32)


def as_they_are(batch: Any) -> Any:
    """Collate nothing."""
    return batch


def refuse(worker: int) -> None:
    """Fail at the start of a worker."""
    raise OSError(f"no disk in {worker}")


class Unreadable:
    """Can be pickled, but not read again."""

    def __reduce__(self) -> Any:
        return _fail, ()


def _fail() -> None:
    raise EOFError("this is not the end of the channel")


def give_unreadable(sample: Any) -> Any:
    """Collate the second sample to something that does not arrive."""
    return Unreadable() if sample[0] == 1 else sample
