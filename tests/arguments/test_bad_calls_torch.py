"""Bad calls of public functions: never an error from inside, never a call that does not end, refused wherever torch refuses.

A fixed part of what `python -m tests.arguments` runs.
"""

from __future__ import annotations

import re

import pytest

import retrograd
from tests.arguments.calls import functions
from tests.arguments.running import run

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = 4
PART = 6  # one function of so many
# What is taken though torch refuses it, and why.
TAKEN = {
    r"functional\..*(training|inplace|ceil_mode|size_average|reduce|train)=": "a flag of Python code: any truth value",
    r"(keepdim|upper|sorted|return_\w+|pivot|force|non_blocking|copy|wrap|ambiguity_check|requires_grad|pin_memory)=": "a flag",
    r"float\('nan'\)|float\('inf'\)|2\*\*40|-2\*\*63": "a number whose range only torch's kernels mind",
    r"\bout=": "out is resized and cast",
    r"normalize\(s, dim=e\)|threshold_\(s, 2, \[\[1\]\]\)": "what NumPy takes for a number or none",
    r"torch.range\(2, z\)": "an empty range",
}


@pytest.mark.parametrize(
    "written", [one for one in sorted(functions(retrograd, torch))[::PART]], ids=lambda one: one[0]
)
def test_bad_calls(written: tuple[str, str, str]) -> None:
    wrong = []
    for program, said in run({"retrograd": retrograd, "torch": torch}, *written[:2], CALLS):
        ours, theirs = said["retrograd"], said["torch"]
        if ours.error in ("hang", "crash") and theirs.error not in ("hang", "crash"):
            wrong.append(f"{program}: {ours.error}")
        elif ours.internal and ours[:2] != theirs[:2]:
            wrong.append(f"{program}: from inside: {ours.error}: {ours.words}")
        elif (
            theirs.error not in ("", "hang", "crash")
            and not ours.error
            and not any(re.search(one, program) for one in TAKEN)
        ):
            wrong.append(f"{program}: taken, torch: {theirs.error}: {theirs.words}")
    assert wrong == []
