"""What a graph keeps, and where gradients go wrong."""

from __future__ import annotations

import math

import pytest

import retrograd as torch
from retrograd import debug


def test_saved_bytes_names_the_lines() -> None:
    x = torch.randn(100, 50)
    w = torch.randn(50, 60, requires_grad=True)
    h = torch.tanh(x @ w)
    y = (h * h).sum()
    report = debug.saved_bytes(y)
    by_line = {one.source: one for one in report.lines}
    assert by_line["h = torch.tanh(x @ w)"].bytes == 4 * (100 * 50 + 100 * 60)  # x for w's gradient, and tanh's output
    assert by_line["h = torch.tanh(x @ w)"].operations == ("MmBackward0", "TanhBackward0")
    assert report.total == 4 * (100 * 50 + 100 * 60)  # h is saved twice and counts once
    assert report.lines[0].file == __file__
    assert "h = torch.tanh(x @ w)" in repr(report)


def test_saved_leaves_are_told_apart() -> None:
    a = torch.randn(10, requires_grad=True)
    b = torch.randn(10, requires_grad=True)
    report = debug.saved_bytes((a * b).sum())
    assert report.total == 0
    assert report.parameters == 80


def test_nothing_is_saved_after_backward() -> None:
    a = torch.randn(10, requires_grad=True)
    y = a.exp().sum()
    y.backward()
    assert debug.saved_bytes(y).total == 0


def test_what_hooks_packed_counts_as_packed() -> None:
    a = torch.randn(10, dtype=torch.float64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.float(), lambda t: t.double()):
        y = a.exp().sum()
    assert debug.saved_bytes(y).total == 40


def test_saved_tensors_of_functions_count() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x + 0)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    a = torch.randn(6, requires_grad=True)
    assert debug.saved_bytes(Square.apply(a).sum()).total == 24


def test_attributes_of_ctx_count_and_are_not_freed() -> None:
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.cosines = {"cos": [x.cos()]}
            ctx.save_for_backward(x.sin())
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.cosines["cos"][0]

    y = Sine.apply(torch.randn(6, requires_grad=True)).sum()
    assert debug.saved_bytes(y).total == 48
    y.backward()
    assert debug.saved_bytes(y).total == 24


def test_saved_tensors_are_counted_without_unpacking() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    unpacked: list[object] = []
    a = torch.randn(6, dtype=torch.float64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().float(), unpacked.append):
        y = Square.apply(a).sum()
    assert debug.saved_bytes(y).total == 24
    assert not unpacked


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_what_recurrent_layers_keep_counts(kind: str) -> None:
    steps, batch, size, hidden = 50, 2, 4, 8
    layer = getattr(torch.nn, kind)(size, hidden)
    output = layer(torch.randn(steps, batch, size))[0]
    kept = debug.saved_bytes(output.sum()).total
    assert kept >= 4 * steps * batch * (size + hidden)  # at least the inputs and a state for each step
    residuals = output.grad_fn.residuals
    assert kept >= sum(one.nbytes for one in residuals)


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_arguments_of_a_checkpoint_count(reentrant: bool) -> None:
    from retrograd.utils.checkpoint import checkpoint

    h = torch.randn(1000, requires_grad=True) * 2
    report = debug.saved_bytes(
        checkpoint(lambda x: x.exp().sin(), h, use_reentrant=reentrant, preserve_rng_state=False).sum()
    )
    assert report.total == 4000


def test_saved_bytes_refuses_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"expected tensors, but got int$"):
        debug.saved_bytes(3)
    with pytest.raises(TypeError, match=r"expected tensors, but got list\nHint: .*saved_bytes\(\*outputs\)"):
        debug.saved_bytes([torch.ones(2)])


def test_gradient_flow_marks_what_is_wrong() -> None:
    good = torch.tensor([3.0, 4.0], requires_grad=True)
    missing = torch.ones(2, requires_grad=True)
    nan = torch.ones(2, requires_grad=True)
    infinite = torch.ones(2, requires_grad=True)
    dead = torch.ones(2, requires_grad=True)
    bias = torch.zeros(2, requires_grad=True)
    good.grad = torch.tensor([0.3, 0.4])
    nan.grad = torch.tensor([math.nan, 1.0])
    infinite.grad = torch.tensor([math.inf, math.inf])
    dead.grad = torch.zeros(2)
    bias.grad = torch.ones(2)
    flow = debug.gradient_flow(
        {"good": good, "missing": missing, "nan": nan, "infinite": infinite, "dead": dead, "bias": bias}
    )
    assert [row.remark for row in flow] == ["", "not reached by backward", "1 NaN", "2 Inf", "zero", ""]
    assert flow["good"].norm == pytest.approx(0.5)
    assert flow["good"].ratio == pytest.approx(0.1)
    assert [row.name for row in flow.problems] == ["missing", "nan", "infinite", "dead"]
    assert "not reached by backward" in repr(flow)
    assert len(repr(flow).splitlines()) == 7


def test_gradient_flow_tells_the_reasons_for_no_gradient_apart() -> None:
    used, unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(used, unused)
    used.bias.requires_grad_(False)
    flow = debug.gradient_flow(model)
    assert [row.remark for row in flow] == ["no gradient yet", "frozen", "no gradient yet", "no gradient yet"]
    assert "backward was not called, or zero_grad() was called after it" in repr(flow)
    used(torch.ones(2)).sum().backward()
    flow = debug.gradient_flow(model)
    assert [row.remark for row in flow] == ["", "frozen", "not reached by backward", "not reached by backward"]
    assert [row.name for row in flow.problems] == ["1.weight", "1.bias"]
    assert "backward was not called" not in repr(flow)
    used.weight.requires_grad_(False)
    assert debug.gradient_flow(model)["0.weight"].remark == "frozen, with an old gradient"


def test_gradient_flow_refuses_what_has_no_names() -> None:
    for wrong, word in ((3, "int"), (torch.ones(2), "Tensor")):
        with pytest.raises(TypeError, match=f"expected a Module, or names with their tensors, but got {word}"):
            debug.gradient_flow(wrong)
    with pytest.raises(TypeError, match=r"named_parameters\(\) instead of model\.parameters\(\)"):
        debug.gradient_flow(torch.nn.Linear(2, 2).parameters())
    with pytest.raises(TypeError, match="'w' is not a Tensor but int"):
        debug.gradient_flow({"w": 3})


def test_gradient_flow_draws(tmp_path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    debug.gradient_flow([("w", w)]).plot(str(tmp_path / "flow.png"))
    assert (tmp_path / "flow.png").stat().st_size > 1000
