"""The same programs in torch and in the library under test must look the same after every step.

Every run tries the same 2000 random programs. In 8 of them the library still differs from torch: they are listed
in ``open_differences.json``, and must differ until the list is written again, so that it can only shrink:
``python -m tests.semantics.find_differences --write-open``.

RETROGRAD_PROGRAMS_FRESH=1 tries programs that nobody has seen, too; RETROGRAD_PROGRAMS says how many (default 500).
SEMANTICS_LIB chooses the library under test (default retrograd; ``torch`` compares torch with itself).
To see all differences at once instead of the first: ``python -m tests.semantics.find_differences``.
"""

from __future__ import annotations

import functools
import os

import pytest

torch = pytest.importorskip("torch")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402 - torch may be missing

from .compare import SKIPPED_OPERATIONS, find_difference, library_under_test  # noqa: E402
from .fixed import CRASH, FIXED_PROGRAMS, PARTS, fixed_seeds, open_differences, seeds_of_part  # noqa: E402
from .programs import programs, random_program  # noqa: E402
from .reporting import explain  # noqa: E402
from .steps import Program  # noqa: E402

pytestmark = pytest.mark.oracle

FRESH = os.environ.get("RETROGRAD_PROGRAMS_FRESH") == "1"
FRESH_PROGRAMS = int(os.environ.get("RETROGRAD_PROGRAMS", "500"))


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


@pytest.mark.parametrize("part", range(PARTS))
def test_same_programs_in_every_run(part):
    still_open = open_differences() if library_under_test().__name__ == "retrograd" else {}
    mended = []
    for seed in seeds_of_part(part):
        listed = still_open.get(seed)
        if listed == CRASH:
            continue
        program = random_program(seed, frozenset(SKIPPED_OPERATIONS))
        if listed is None:
            text = explanation(program)
            if text is not None:
                pytest.fail(text, pytrace=False)
        elif find_difference(program, library_under_test()) is None:
            mended.append(seed)
    assert not mended, "listed in open_differences.json, but mended: write the list again"


def test_the_list_of_open_differences_is_short():
    listed = open_differences()
    assert set(listed) <= set(fixed_seeds())
    assert len(listed) <= FIXED_PROGRAMS // 100


# Hypothesis would shrink by drawing again, which changes everything after the change; Reducer works on the
# written program, is far faster, and its result is what gets printed.
@pytest.mark.skipif(not FRESH, reason="RETROGRAD_PROGRAMS_FRESH=1 tries fresh programs")
@settings(
    max_examples=FRESH_PROGRAMS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    database=None,
    print_blob=False,
)
@given(programs(frozenset(SKIPPED_OPERATIONS)))
def test_fresh_programs(program):
    text = explanation(program)  # cached: hypothesis runs a failing program once more
    if text is not None:
        pytest.fail(text, pytrace=False)
