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
    "parameters of other names, and NumPy's names of them": """s.clone().copy_ s.clone().polygamma s.clone().sum_to_size
    torch.isin torch.linalg.solve_triangular torch.result_type torch.unsafe_split""",
    "NumPy's names where torch has a function in Python of the same name": """torch.celu
    torch.max_pool1d torch.max_pool1d_with_indices torch.rrelu torch.selu torch.threshold""",
    "in place: the tensor is self, and other has no second name": """s.clone().eq_ s.clone().ge_ s.clone().greater_
    s.clone().greater_equal_ s.clone().gt_ s.clone().le_ s.clone().less_ s.clone().less_equal_ s.clone().lt_ s.clone().ne_
    s.clone().not_equal_ torch.nn.functional.celu_ torch.nn.functional.elu_ torch.nn.functional.hardtanh_
    torch.nn.functional.leaky_relu_ torch.nn.functional.relu_ torch.nn.functional.rrelu_ torch.nn.functional.selu_
    torch.nn.functional.threshold_""",
    "which of several elements stays at one place is left to torch's threads": "torch.nn.functional.max_unpool1d",
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
