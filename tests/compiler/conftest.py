from __future__ import annotations

from threading import active_count

import pytest

from retrograd.compiler import _making


@pytest.fixture(autouse=True)
def no_threads_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count only the threads that a test starts: where there are others, numbers that functions read are constants."""
    others = active_count() - 1
    monkeypatch.setattr(_making, "active_count", lambda: max(active_count() - others, 1))
