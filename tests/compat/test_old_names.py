"""Names that torch keeps for old programs, and small refusals and answers in which retrograd was silent."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

CALLS = [
    # sizes changed into another tensor
    "x.resize(3, 1)",
    "x.resize(4)",
    "x.resize((1, 3))",
    "x.resize_as(torch.ones(1, 3))",
    "r.resize(3, 1)",
    "torch.ones(2, 3).t().resize(6)",
    # devices that are not here
    "torch.nn.Linear(2, 1).xpu()",
    "torch.nn.Linear(2, 1).ipu()",
    "torch.nn.Module().xpu()",
    "x.xpu()",
    "x.ipu()",
    *[f"torch.Generator('{kind}').device" for kind in ("cpu", "mps", "xpu", "meta", "hpu", "mtia", "vulkan")],
    # futures and containers of jit
    "torch.jit.wait(torch.jit.fork(torch.add, x, x))",
    "torch.jit.fork(torch.add, x, x).value()",
    "torch.jit.fork(torch.add, x, x).done()",
    "torch.jit.fork(torch.add, x, x).then(lambda f: f.value() + 1).wait()",
    "torch.jit.fork(lambda: 1 / 0)",
    "torch.jit.Future().done()",
    *[
        f"torch.jit.isinstance({value}, {kind})"
        for value, kind in (
            ("[1]", "t.List[int]"),
            ("[1]", "list[str]"),
            ("[1]", "list"),
            ("[]", "list[int]"),
            ("{'a': 1}", "dict[str, int]"),
            ("{'a': 1}", "t.Dict[str, float]"),
            ("(1, 'a')", "tuple[int, str]"),
            ("(1, 2, 3)", "tuple[int, int]"),
            ("None", "t.Optional[int]"),
            ("'a'", "t.Optional[int]"),
            ("1", "t.Union[int, str]"),
            ("[[x]]", "list[list[torch.Tensor]]"),
            ("[1]", "(list[str], list[int])"),
            ("1", "'int'"),
        )
    ],
    # optimizers under an old name
    *[f"multi.{name}([p]).defaults['foreach']" for name in ("SGD", "Adam", "AdamW", "Rprop")],
    "multi.Adam([p], foreach=False).defaults['foreach']",
    "isinstance(multi.ASGD([p]), torch.optim.ASGD)",
    # reductions without dim
    "torch.sum(x, out=y)",
    "torch.prod(x, out=y)",
    "torch.sum(x, dtype=torch.float32, out=y)",
    "torch.sum(x, keepdim=True, out=y)",
    "torch.sum(x, None, out=y)",
    "torch.sum(x, dim=(), out=y)",
    "torch.sum(x, 0, out=y)",
    # parameters of inference tensors
    "torch.nn.Parameter(i)",
    "torch.nn.Parameter(i, requires_grad=False)",
    "torch.nn.Parameter(i.clone())",
    "torch.nn.Parameter(n)",
    # scalers
    *[
        f"(g := torch.amp.GradScaler('cpu'), g.scale(x), g.update({value}), g.get_scale())[-1]"
        for value in ("torch.ones(2)", "torch.ones(1)", "torch.tensor(3.)", "2.", "2", "'a'", "r.sum()")
    ],
    "torch.amp.GradScaler('cpu')._get_growth_tracker()",
    "torch.amp.GradScaler('cpu', enabled=False)._get_growth_tracker()",
    # arrays that run backwards
    "torch.utils.data.default_collate([np.ones(2)[::-1]] * 2)",
    "torch.utils.data.default_collate([{'a': np.ones((2, 2))[:, ::-1]}])",
    "torch.utils.data.default_collate([np.ones((2, 2))[:, 1:]] * 2)",
]


def _scope(library: Any) -> dict[str, Any]:
    with library.inference_mode():
        made, numbers = library.ones(2), library.ones(2, dtype=library.int64)
    return {
        "x": library.arange(3.0),
        "r": library.ones(3, requires_grad=True),
        "y": library.ones(()),
        "p": library.nn.Parameter(library.ones(2)),
        "i": made,
        "n": numbers,
        "t": typing,
        "multi": import_module(f"{library.__name__}.optim._multi_tensor"),
        "np": np,
    }


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_calls_answer_as_torchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, call, **_scope(retrograd)) == answer(torch, call, **_scope(torch))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        *["torch.symeig(x)", "x.symeig(True)", "torch.eig(x)", "x.eig()", "torch.solve(x, x)", "x.solve(x)"],
        *["torch.lstsq(x, x)", "x.lstsq(x)", "torch.matrix_rank(x)"],
    ],
)
def test_removed_functions_name_what_replaced_them(call: str) -> None:
    def told(library: Any) -> Any:
        refused = answer(library, call, x=library.eye(2))
        return refused.kind, refused.words.split("\n")[0]

    assert told(retrograd) == told(pytest.importorskip("torch"))
    assert "torch.linalg." in answer(retrograd, call, x=retrograd.eye(2)).words


def test_a_generator_needs_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.cuda.is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"Cannot get CUDA generator without ATen_cuda library\."):
        retrograd.Generator("cuda")


def test_resize_warns() -> None:
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        made = retrograd.ones(3).resize(3, 1)
    assert made.shape == (3, 1)


UNSET = [f"torch.empty(2, dtype=torch.{name})" for name in ("float64", "float16", "bfloat16", "complex64", "bool")]
UNSET += [f"torch.empty(2, dtype=torch.{name})" for name in ("int64", "int32", "int8", "uint8")]
UNSET += ["torch.empty(())", "torch.empty_like(x)", "torch.empty_like(x.t())", "x.new_empty(2)", "torch.Tensor(2)"]
UNSET += ["torch.empty_strided((2, 2), (3, 1))", "torch.empty_permuted((2, 2), (1, 0))", "x.clone().resize_(6)"]
UNSET += [
    "torch.zeros(2)",
    "torch.zeros_like(x)",
    "torch.ones_like(x)",
    "torch.LongTensor(2)",
    "torch.nn.LayerNorm(2).bias",
]


@pytest.fixture(params=[True, False])
def deterministic(request: pytest.FixtureRequest) -> Iterator[bool]:
    torch = pytest.importorskip("torch")
    for library in (torch, retrograd):
        library.use_deterministic_algorithms(True)
        library.utils.deterministic.fill_uninitialized_memory = request.param
    yield request.param
    for library in (torch, retrograd):
        library.use_deterministic_algorithms(False)
        library.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.oracle
@pytest.mark.parametrize("call", UNSET)
def test_unset_memory_shows_if_algorithms_are_deterministic(call: str, deterministic: bool) -> None:
    torch = pytest.importorskip("torch")
    found = answer(retrograd, call, x=retrograd.ones(2, 2))
    if deterministic:
        assert found == answer(torch, call, x=torch.ones(2, 2))
    else:
        assert "nan" not in found[3]
