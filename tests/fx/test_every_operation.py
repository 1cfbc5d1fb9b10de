"""make_fx of every operation of the table: it is recorded, and what was recorded holds for other inputs."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.fx.table import holds, samples, targets, traced

pytestmark = pytest.mark.filterwarnings("ignore")


# They change what a tensor looks like: where a gradient is wanted, or there is a level, they are refused.
RESHAPING = {"as_strided_", "t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_"}
LOST = {"multilabel_soft_margin_loss"}  # it asks for an index of a sample
WRITTEN_VIEWS = {
    "view_as_complex_written", "real_part_written", "setitem", "write_into_as_strided", "write_into_unfolded", "write_into_view",
}  # fmt: skip
REFUSED = {
    "forward": set(),
    "grad": RESHAPING | {"view_as_complex_written", "real_part_written"},
    "vmap": RESHAPING | LOST | {"quantile_several", "nanquantile_several"},
    "jvp": RESHAPING | LOST | WRITTEN_VIEWS,
    "hessian": RESHAPING | LOST | WRITTEN_VIEWS
    | {"as_strided", "as_strided_at", "as_strided_twice", "as_strided_squared", "addcdiv", "addcdiv_", "svd_lowrank", "pca_lowrank"},
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_every_operation_is_recorded(how: str) -> None:
    wrong, seen = [], 0
    for op, sample in [*samples(how, 2 if how == "forward" else 1)][:: 3 if how == "hessian" else 1]:
        if op.name in REFUSED[how]:
            continue
        seen += 1
        try:
            module = traced(retrograd, op, sample, how)
        except Exception as error:
            wrong.append(f"{op.name}{sample}: {type(error).__name__} {error}")
            continue
        if not holds(retrograd, module, op, sample, how):
            wrong.append(f"{op.name}{sample}")
    assert wrong == []
    assert seen > (1750 if how == "forward" else 800 if how != "hessian" else 250)


@pytest.mark.oracle
def test_most_operations_are_recorded_as_torchs() -> None:
    torch: Any = pytest.importorskip("torch")
    same = asked = 0
    for op, sample in samples("forward", 1):
        try:
            wanted = targets(traced(torch, op, sample, "forward"))
        except Exception:  # what torch's tracer refuses
            continue
        asked += 1
        same += targets(traced(retrograd, op, sample, "forward")) == wanted
    assert same / asked > 0.7
