"""Dropout draws torch's numbers from torch's seed."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer, assert_same_answer, outcome, outcome_and_warnings, whole

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """F.dropout(x,.3) F.dropout(x) F.dropout(x,1.) F.dropout(x,0.) F.dropout(x,.5,False) F.alpha_dropout(x,.4,True)
F.feature_alpha_dropout(x,.4,True) F.dropout1d(x,.4) F.dropout2d(x,.4) F.dropout3d(x.unsqueeze(-1),.4) torch.dropout(x,.2,True)
torch.feature_dropout(x,.2,True) torch.alpha_dropout(x,.2,True) torch.native_dropout(x,.3,True)[1]
F.dropout(x.transpose(0,2),.3) torch.dropout_(x.clone(),.4,True) F.dropout(x,.3,True,True)""".split()  # noqa: SIM905
ERRORS = """F.dropout(torch.ones(2),1.5) F.dropout(torch.ones(2).long()) F.dropout2d(torch.ones(2)) F.dropout1d(torch.ones(2)) F.dropout(3)
F.alpha_dropout(torch.ones(2),2.,True) torch.feature_dropout(torch.ones(2),.5,True) torch.dropout(torch.ones(3),2.,True)
F.dropout(torch.ones(2)+1j) torch.nn.Dropout(2) torch.nn.Dropout(.2,True) torch.nn.AlphaDropout()""".split()  # noqa: SIM905


def drawn(library: Any, program: str, dtype: str, shape=(4, 5, 6)):
    library.manual_seed(7)
    x = (
        (library.arange(120).reshape(4, 5, 6)[tuple(slice(n) for n in shape)] / 7)
        .to(getattr(library, dtype))
        .contiguous()
    )
    return answer(library, program, F=library.nn.functional, x=x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("program", CALLS)
def test_draws(program, dtype) -> None:
    assert_same_answer(lambda library: drawn(library, program, dtype))


@pytest.mark.parametrize(
    "program", ["F.dropout(x,.3)", "F.alpha_dropout(x,.3,True)", "torch.native_dropout(x,.3,True)[0]"]
)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (1, 2, 6), (4, 5, 6), (0, 5, 6)])
def test_sizes(program, shape) -> None:
    assert_same_answer(lambda library: drawn(library, program, "float32", shape))


def test_a_large_array() -> None:
    kept = []
    for library in (retrograd, torch):
        library.manual_seed(1)
        kept.append(library.nn.functional.dropout(library.ones(200_000), 0.37).numpy().tobytes())
    assert kept[0] == kept[1]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program) -> None:
    assert answer(retrograd, program, F=retrograd.nn.functional) == answer(torch, program, F=torch.nn.functional)


@pytest.mark.parametrize("randomness", ["same", "different", "error"])
@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout2d"])
def test_vmap(name, randomness) -> None:
    def mapped(library: Any) -> Any:
        library.manual_seed(3)
        function = getattr(library.nn.functional, name)
        x = library.arange(48.0).reshape(3, 2, 2, 2, 2) + 1
        over_rows = library.func.vmap(lambda row: function(row, 0.5, True), randomness=randomness)
        return outcome(lambda: over_rows(x).tolist(), words=whole, kinds=RuntimeError)

    assert_same_answer(mapped)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2,)])
@pytest.mark.parametrize("name", ["dropout2d", "dropout3d"])
def test_warnings(name, shape) -> None:
    def refused_or_warned(library: Any) -> Any:
        function = getattr(library.nn.functional, name)
        return outcome_and_warnings(lambda: function(library.ones(shape)).shape, words=whole)

    assert_same_answer(refused_or_warned)
