"""Arguments by torch's names and by NumPy's, and tensors of no dimensions for numbers: taken wherever torch takes them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.arguments.calls import by_name, functions, numbers_as_tensors, scope

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

FUNCTIONS = sorted(functions(retrograd, torch))
# Functions some of whose calls are not taken as torch takes them, by why.
DIFFERENT = {
    "each form has other names, and one of them is ours": "s.clone().copy_ s.clone().polygamma torch.isin",
    "it asks for a symmetric matrix, and this one is not: what it finds depends on where it begins": "torch.lobpcg",
    "several values go to one place, and torch's threads decide which one stays": " ".join(
        f"torch.nn.functional.max_unpool{n}d" for n in (1, 2, 3)
    ),
    "an eps that leaves nothing": "s.clone().logit s.clone().logit_ torch.logit torch.logit_ torch.special.logit",
}
KNOWN = {name for names in DIFFERENT.values() for name in names.split()}


def result(library: Any, program: str) -> Any:
    """Return what a program gives, as arrays; or the error."""
    library.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(one) for one in _parts(eval(program, scope(library)))]
    except Exception as error:
        return error


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [part for one in value for part in _parts(one)]
    if not hasattr(value, "detach"):
        return []
    value = value.detach().resolve_conj()
    return [value.float() if str(value.dtype).endswith("bfloat16") else value]


def check(programs: list[str]) -> None:
    """Compare what programs give with what torch gives, where it gives anything."""
    wrong = []
    for program in programs:
        theirs = result(torch, program)
        if isinstance(theirs, Exception) or "empty" in program or "resize" in program:
            continue
        ours = result(retrograd, program)
        if isinstance(ours, Exception):
            wrong.append(f"{program}: {type(ours).__name__}: {ours}")
        elif "rand" in program or "dropout" in program or "rrelu" in program:
            assert [one.shape for one in ours] == [one.shape for one in theirs], program
        elif len(ours) != len(theirs) or not all(
            one.shape == other.shape and np.allclose(one, other, 1e-3, 1e-3, equal_nan=True)
            for one, other in zip(ours, theirs, strict=True)
        ):
            wrong.append(f"{program}: {ours}, torch: {theirs}")
    assert wrong == []


@pytest.mark.parametrize(("written", "key"), [one[:2] for one in FUNCTIONS if one[0] not in KNOWN])
def test_arguments_by_name(written: str, key: str) -> None:
    check(by_name(written, key))


@pytest.mark.parametrize(("written", "key"), [one[:2] for one in FUNCTIONS if one[0] not in KNOWN])
def test_tensors_for_numbers(written: str, key: str) -> None:
    check(numbers_as_tensors(written, key))
