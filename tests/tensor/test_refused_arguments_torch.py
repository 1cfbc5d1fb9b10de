"""Arguments that torch refuses, and warnings it gives, where retrograd was silent."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

import retrograd
from retrograd import nn, optim
from tests.oracle import answer

CALLS = [
    "torch.Tensor.__radd__(2, x)",
    "torch.Tensor.__rmul__(2, x)",
    "torch.Tensor.__rand__(2, x)",
    "torch.max(x, keepdim=True)",
    "torch.min(x, keepdim=True)",
    "torch.max(x, (0,))",
    "torch.prod(x, (0, 1))",
    "torch.prod(x, keepdim=True)",
    "torch.median(x, keepdim=True)",
    "torch.nanmedian(x, keepdim=True)",
    "torch.max(x, 0, keepdim=True)",
    "torch.prod(x, 0, keepdim=True)",
    "torch.argmax(x, keepdim=True)",
    "torch.optim.Adam([p]).step(None, 2)",
    "torch.optim.SGD([p], lr=.1).step(1, 2, 3)",
    "torch.optim.AdamW([p]).step(foo=2)",
    "torch.optim.SGD([('a', p, 1)], lr=.1).param_groups[0]['param_names']",
    "torch.optim.SGD([('a', p), p], lr=.1)",
    "torch.autocast('cpu', dtype='x')._enabled",
    "torch.autocast('cpu', dtype=3)._enabled",
]
CAPTURABLE = ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Rprop", "ASGD"]
FOREACH = [*CAPTURABLE, "Adadelta", "Adagrad", "SGD"]


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_calls_answer_as_torchs(call: str) -> None:
    def told(library: Any) -> Any:
        return answer(library, call, x=library.arange(3.0), p=library.nn.Parameter(library.ones(2)))

    assert told(retrograd) == told(pytest.importorskip("torch"))


STEP = "(setattr(p, 'grad', torch.ones(2)), o.param_groups[0].update(options), o.step(), p.detach())[-1]"


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[(name, {"capturable": True}) for name in CAPTURABLE],
        *[(name, {"foreach": True, "differentiable": True}) for name in FOREACH],
    ],
)
def test_a_step_refuses_as_torchs(name: str, options: dict[str, Any]) -> None:
    def told(library: Any) -> Any:
        p = library.nn.Parameter(library.ones(2))
        return answer(library, STEP, p=p, options=options, o=getattr(library.optim, name)([p], lr=0.1))

    assert told(retrograd) == told(pytest.importorskip("torch"))


def test_a_step_without_gradients_refuses_nothing() -> None:
    p = nn.Parameter(retrograd.ones(2))
    optim.Adam([p], capturable=True).step()
    assert p.tolist() == [1.0, 1.0]


BYTES = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, u: x[u],
        lambda x, u: x[u,],
        lambda x, u: x.index_put((u,), retrograd.ones(2)),
        lambda x, u: x.__setitem__(u, retrograd.ones(2)),
    ],
)
def test_a_mask_of_bytes_is_warned_of(call: Any) -> None:
    x, u = retrograd.arange(3.0), retrograd.tensor([1, 0, 1], dtype=retrograd.uint8)
    with pytest.warns(UserWarning, match=BYTES) as caught:
        call(x, u)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = x[u.bool()]


GRIDS = """
import warnings
import retrograd as torch
a = torch.arange(2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.meshgrid(a, a, indexing="ij")
    torch.meshgrid(a, a)
    torch.meshgrid(a, a)
print([(str(one.message), one.lineno) for one in caught])
"""


def test_grids_without_an_order_are_warned_of_once() -> None:
    run = subprocess.run([sys.executable, "-c", GRIDS], capture_output=True, text=True, check=True)
    text = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
    assert run.stdout == f"{[(text, 8)]}\n"
