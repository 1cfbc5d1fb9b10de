"""What a process gives up waiting for."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from retrograd.distributed._work import Line, Waiter


class Never:
    """A request that does not end; MPI keeps the memory that it may still write."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def Test(self) -> bool:  # noqa: N802 - MPI's name
        return False


@pytest.mark.parametrize("in_steps", [False, True])
def test_memory_of_what_was_given_up_stays(in_steps: bool) -> None:
    memory = np.ones(3)
    seen = weakref.ref(memory)

    def issue(memory: Any = memory) -> Any:
        return iter([Never(memory)]) if in_steps else Never(memory)

    waiter = Waiter(Line(), 0.0, "all_reduce", lambda *_: TimeoutError("too late"))
    with pytest.raises(TimeoutError, match="too late"):
        waiter.run(issue)
    del memory, issue
    gc.collect()
    assert seen() is not None
