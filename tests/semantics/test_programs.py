"""The same random programs in torch and in the library under test must look the same after every step.

RETROGRAD_PROGRAMS sets the number of programs (default 3000; three quarters of them never change).
SEMANTICS_LIB chooses the library under test (default retrograd; ``torch`` compares torch with itself).
To see all differences at once instead of the first: ``python -m tests.semantics.hunt``.
"""

from __future__ import annotations

import functools
import os

import pytest

torch = pytest.importorskip("torch")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402 - torch may be missing

from .compare import SKIPPED_OPERATIONS, find_difference, library_under_test  # noqa: E402
from .programs import programs  # noqa: E402
from .reporting import explain  # noqa: E402
from .steps import Program  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS = int(os.environ.get("RETROGRAD_PROGRAMS", "3000"))
FRESH_PROGRAMS = PROGRAMS // 4

# Hypothesis would shrink by drawing again, which changes everything after the change; Reducer works on the
# written program, is far faster, and its result is what gets printed.
COMMON = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate,),
    "report_multiple_bugs": False,
    "database": None,
    "print_blob": False,
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@functools.lru_cache(maxsize=8)
def explanation(program: Program) -> str | None:
    library = library_under_test()
    difference = find_difference(program, library)
    return None if difference is None else explain(program, difference, library)


def check(program: Program) -> None:
    text = explanation(program)  # cached: hypothesis runs a failing program once more
    if text is not None:
        pytest.fail(text, pytrace=False)


@settings(max_examples=PROGRAMS - FRESH_PROGRAMS, derandomize=True, **COMMON)
@given(programs(frozenset(SKIPPED_OPERATIONS)))
def test_same_programs_in_every_run(program):
    check(program)


@settings(max_examples=FRESH_PROGRAMS, **COMMON)
@given(programs(frozenset(SKIPPED_OPERATIONS)))
def test_fresh_programs(program):
    check(program)
