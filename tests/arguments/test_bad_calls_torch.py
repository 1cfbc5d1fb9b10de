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
    r"logsumexp\((s, )?(\(\)|\[\])": "torch's kernel fails where there is no dimension to sum over",
    r"(histogram|ldl_factor|lu_factor|slogdet)\(.*out=\[s,s\]": "the same tensor twice in out=, of the wrong dtype or size",
    r"(det|inner)\(.*out=c": "a complex out= for a real result",
    r"\.(max|median|nanmedian|squeeze_)\(None\)": "None for a dim that torch must be given or not at all",
    r"(ctc_loss|gaussian_nll_loss|hinge_embedding_loss|soft_margin_loss|binary_cross_entropy_with_logits)\(": "what promotes",
    r"rrelu_\(s, training=": "a truth value",
    r"round\(k, decimals=0\)|sub\(2, \(\)\)|index_put_?\((\[\]|e), s\)|feature_alpha_dropout\(s, inplace=": "it means nothing",
    r"range\(-2\*\*63": "what torch's machine cannot have",
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
        elif ours.frames > 1:
            wrong.append(
                f"{program}: {ours.frames} lines of the library in the traceback of {ours.error}: {ours.words}"
            )
        elif (
            theirs.error not in ("", "hang", "crash")
            and not ours.error
            and not any(re.search(one, program) for one in TAKEN)
        ):
            wrong.append(f"{program}: taken, torch: {theirs.error}: {theirs.words}")
    assert wrong == []
