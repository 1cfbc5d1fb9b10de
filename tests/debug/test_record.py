"""`debug.record` and `debug.view`: what a recording holds, and that it changes nothing."""

from __future__ import annotations

import doctest
import gc
import json
import linecache
import math
import os
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import retrograd as torch
from retrograd import debug, nn
from retrograd._modes import PLAIN, current_mode
from retrograd._native import machine
from retrograd.autograd._observing import Observer
from retrograd.debug._page import data_of
from retrograd.nn import functional
from retrograd.utils.checkpoint import checkpoint


def recorded(**options):
    return debug.record(path=None, **options)


def operations(recording, kind="operation"):
    return [box.name for box in recording.trace.operations if box.kind == kind]


def box_of(recording, name):
    return next(box for box in recording.trace.operations if box.name == name)


def backward_names(recording):
    return [step.name for step in recording.trace.steps if step.kind == "backward" and step.name]


@pytest.fixture(autouse=True)
def _nothing_is_left_on():
    yield
    from retrograd.nn.modules import module
    from retrograd.optim import optimizer

    assert Observer.running is None
    assert current_mode() is PLAIN
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
    assert not module._global_forward_hooks_always_called
    assert not optimizer._global_optimizer_pre_hooks
    assert not optimizer._global_optimizer_post_hooks


class Model(nn.Module):
    """A little of everything: attention, norms, dropout, a recurrent layer, a shared weight."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.batch_norm = nn.BatchNorm1d(8)
        self.last = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 8))

    def forward(self, codes):
        x = self.table(codes)
        x = self.norm(x + self.attention(x, x, x)[0])
        x = self.recurrent(x)[0]
        x = self.batch_norm(x.flatten(0, 1)).view_as(x)
        return functional.linear(x + self.last(x), self.table.weight)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_results_are_the_same_to_the_bit(name):
    def train(record):
        torch.manual_seed(3)
        model = Model()
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        codes = torch.randint(11, (4, 6))
        losses = []

        def step():
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(codes).flatten(0, 1), codes.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())

        for _ in range(3):
            if record:
                with recorded():
                    step()
            else:
                step()
        return losses, [value.numpy() for value in model.state_dict().values()]

    plain, seen = train(False), train(True)
    assert plain[0] == seen[0]
    for one, other in zip(plain[1], seen[1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_operations_have_modules_lines_and_inputs():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    x = torch.randn(5, 3)
    with recorded() as recording:
        loss = model(x).square().mean()
        loss.backward()
    trace = recording.trace
    assert operations(recording) == ["linear", "relu", "square", "mean"]
    assert operations(recording, "parameter") == ["0.weight", "0.bias"]
    linear = box_of(recording, "linear")
    assert [trace.operations[at].name for at in linear.inputs] == ["x", "0.weight", "0.bias"]
    assert (trace.groups[linear.group].name, trace.groups[linear.group].module) == ("0", "Linear")
    assert trace.groups[trace.groups[linear.group].parent].module == "Sequential"
    mean = box_of(recording, "mean")
    file, _, function = [*trace.places.lines][[*trace.places.stacks][mean.stack][-1]]
    assert (file, function) == (__file__, "test_operations_have_modules_lines_and_inputs")
    assert trace.places.sources()[file]
    assert backward_names(recording) == ["MeanBackward0", "PowBackward0", "ReluBackward0", "AddmmBackward0"]


def test_values_and_gradients_are_described():
    x = torch.tensor([1.0, -2.0, 3.0, 0.0], requires_grad=True)
    with recorded() as recording:
        (x * x).sum().backward()
    product = box_of(recording, "mul").values[0]
    assert (product.shape, product.dtype, product.bytes) == ((4,), "float32", 16)
    numbers = product.statistics
    assert (numbers.least, numbers.greatest, numbers.mean, numbers.zeros) == (0.0, 9.0, 3.5, 0.25)
    assert numbers.deviation == pytest.approx(math.sqrt((2.5**2 + 0.5**2 + 5.5**2 + 3.5**2) / 4))
    assert max(numbers.bars) == 100
    assert box_of(recording, "mul").gradient.mean == 1.0
    (leaf,) = recording.trace.leaves
    assert (leaf.gradient.least, leaf.gradient.greatest) == (-4.0, 6.0)
    assert len(leaf.steps) == 1


def test_memory_is_that_of_the_tensors_alive():
    x = torch.ones(1000, requires_grad=True)  # 4000 bytes
    with recorded() as recording:
        y = x.exp()  # saved as the result of exp
        z = y + 1
        del y
        total = z.sum()
        del z
        total.backward()
    live = {recording.trace.operations[s.operation].name: s.live for s in recording.trace.steps if s.kind == "forward"}
    assert (live["exp"], live["add"]) == (8000, 12000)
    assert live["sum"] in (12000, 12004)  # the number may be a NumPy scalar, without memory of its own
    exp, add = box_of(recording, "exp"), box_of(recording, "add")
    assert [(one.name, one.bytes, one.is_first) for one in exp.saved] == [("result", 4000, True)]
    at = next(i for i, step in enumerate(recording.trace.steps) if step.name == "ExpBackward0")
    assert exp.released == at
    assert add.values[0].freed == 3  # while `backward` was about to begin
    assert exp.values[0].freed == at
    assert recording.trace.steps[-1].live in (8000, 8004)  # x, its gradient, and the sum


def test_saved_bytes_agree_with_the_report():
    model = Model()
    codes = torch.randint(11, (4, 6))
    with recorded() as recording:
        loss = model(codes).sum()
    saved = sum(one.bytes for box in recording.trace.operations for one in box.saved if one.is_first)
    report = debug.saved_bytes(loss)
    assert saved == report.total


def test_nothing_is_kept_alive():
    x = torch.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        with recorded():
            y = x.exp()
            node = weakref.ref(y.grad_fn)
            tensor = weakref.ref(y)
            array = weakref.ref(y._array)
            del y
            assert node() is tensor() is array() is None
            x.sin().sum().backward()
            grad = weakref.ref(x.grad)
            x.grad = None
            assert grad() is None
    finally:
        gc.enable()


def test_in_place_writes_follow_each_other():
    x = torch.zeros(4)
    with recorded() as recording:
        view = x[:2]
        view.add_(1)
        y = x * 2
        x[0] = 5.0
        z = x + y
    names = [box.name for box in recording.trace.operations]
    assert operations(recording) == ["getitem", "add_", "mul", "setitem_", "add"]
    inputs = {box.name: [names[at] for at in box.inputs] for box in recording.trace.operations}
    assert "add_" in inputs["mul"]  # which wrote into the memory of x
    assert "setitem_" in inputs["add"]
    assert z.tolist() == [7.0, 3.0, 0.0, 0.0]


def test_double_backward_is_seen():
    x = torch.tensor(2.0, requires_grad=True)
    with recorded() as recording:
        y = x**3
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        slope.backward()
    assert x.grad.item() == 12.0
    runs = {step.run for step in recording.trace.steps if step.kind == "backward"}
    assert runs == {1, 2}
    assert operations(recording, "backward") == ["backward", "backward"]
    second = [step.name for step in recording.trace.steps if step.run == 2 and step.name]
    assert "MulBackward0" in second


def test_several_backwards_of_one_graph():
    x = torch.ones(3, requires_grad=True)
    with recorded() as recording:
        y = x.exp().sum()
        y.backward(retain_graph=True)
        held = box_of(recording, "exp").released
        y.backward()
    assert held is None
    assert box_of(recording, "exp").released is not None
    assert backward_names(recording) == ["SumBackward0", "ExpBackward0"] * 2


def test_transforms_inside():
    x = torch.randn(4, 3)
    with recorded() as recording:
        a = torch.func.vmap(lambda row: row.sin().sum())(x)
        b, t = torch.func.jvp(torch.cos, (x,), (x,))
        c = torch.func.vmap(torch.func.grad(lambda row: row.exp().sum()))(x)
        d = torch.func.jacrev(torch.tanh)(x[0])
    np.testing.assert_array_equal(a.numpy(), torch.func.vmap(lambda row: row.sin().sum())(x).numpy())
    np.testing.assert_array_equal(c.numpy(), x.exp().numpy())
    assert b.shape == t.shape
    assert d.shape == (3, 3)
    assert {"sin", "sum", "cos", "exp", "tanh"} <= set(operations(recording))
    json.dumps(data_of(recording.trace), allow_nan=False)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


def test_custom_functions_are_operations():
    x = torch.arange(3.0, requires_grad=True)
    with recorded() as recording:
        Square.apply(x.exp()).sum().backward()
    square = box_of(recording, "Square")
    assert square.node == "SquareBackward"
    assert square.values[0].shape == (3,)
    assert [one.name for one in square.saved] == ["saved_tensors"]
    at = recording.trace.operations.index(square)
    assert at in box_of(recording, "sum").inputs
    inside = [
        recording.trace.operations[s.operation].name for s in recording.trace.steps if s.kind == "forward" and s.run
    ]
    assert inside == ["mul", "mul"]  # what its backward calls


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_compute_again(reentrant):
    x = torch.randn(4, requires_grad=True)
    with recorded() as recording:
        y = checkpoint(lambda v: v.sin().exp(), x, use_reentrant=reentrant)
        y.sum().backward()
    grad = x.grad.clone()
    x.grad = None
    x.sin().exp().sum().backward()
    np.testing.assert_array_equal(grad.numpy(), x.grad.numpy())
    again = [
        recording.trace.operations[s.operation].name for s in recording.trace.steps if s.kind == "forward" and s.run
    ]
    assert [name for name in again if name in ("sin", "exp")][:2] == ["sin", "exp"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(2.0),
        lambda: torch.empty(0, 3),
        lambda: torch.randn(3, dtype=torch.complex64),
        lambda: torch.randn(3).half(),
        lambda: torch.randn(3).bfloat16(),
        lambda: torch.randn(3, dtype=torch.float64),
        lambda: torch.tensor([math.inf, -math.inf, math.nan]),
        lambda: torch.tensor([1e308, -1e308], dtype=torch.float64),
    ],
    ids=["0-d", "empty", "complex", "half", "bfloat16", "double", "not finite", "huge"],
)
def test_every_kind_of_tensor(make):
    x = make().requires_grad_()
    with recorded() as recording:
        y = (x * 2).sum()
        y.backward(torch.ones_like(y))
        x.detach() == 1  # noqa: B015 - a comparison, whose values are booleans
    value = box_of(recording, "mul").values[0]
    assert value.shape == tuple(x.shape)
    assert value.dtype == str(x.dtype).removeprefix("torch.")
    json.dumps(data_of(recording.trace), allow_nan=False)
    assert recording.html().startswith("<!doctype html>")


def test_meta_tensors_have_no_statistics():
    with recorded() as recording:
        torch.empty(3, 4, device="meta").exp()
    value = box_of(recording, "exp").values[0]
    assert (value.shape, value.statistics) == ((3, 4), None)


def test_the_file_is_written_after_an_error(tmp_path):
    path = tmp_path / "page.html"
    x = torch.ones(2, requires_grad=True)
    recording = debug.record(path)
    with pytest.raises(RuntimeError, match="size"), recording:
        x.exp() @ torch.ones(3)
    assert path.read_text() == recording.html()
    assert recording.path == path
    failed = recording.trace.operations[-1]
    assert failed.name in ("matmul", "dot")
    assert failed.remark.startswith("RuntimeError")
    assert recording.findings[0].startswith("The program was left by RuntimeError")
    assert recording.trace.findings[0].operation == len(recording.trace.operations) - 1


def test_an_error_is_told_with_its_line_and_what_ran_before():
    x = torch.ones(2, requires_grad=True)

    def work():
        y = (x.exp() * 2).sin()
        y.sum().backward()
        {}["missing"]  # no operation

    recording = recorded()
    with pytest.raises(KeyError), recording:
        work()
    first = work.__code__.co_firstlineno
    assert recording.findings[0].splitlines() == [
        "The program was left by KeyError: 'missing'",
        f'at test_record.py:{first + 3}: {{}}["missing"]  # no operation',
        f"Last before it: the backward of sum (test_record.py:{first + 2}), the backward of sin (test_record.py:{first + 1}), "
        f"the backward of mul (test_record.py:{first + 1}), the backward of exp (test_record.py:{first + 1})",
    ]
    finding = recording.trace.findings[0]
    assert recording.trace.operations[finding.operation].name == "exp"
    assert finding.step == len(recording.trace.steps) - 1


def test_an_error_of_an_operation_is_told_with_what_ran_before():
    x = torch.ones(2)
    recording = recorded()
    with pytest.raises(RuntimeError), recording:
        x.exp().view(7)
    (finding,) = recording.trace.findings
    assert recording.trace.operations[finding.operation].name == "view"
    assert [recording.trace.operations[at].name for at, _ in finding.before] == ["exp"]
    assert "test_record.py" in finding.text


def test_an_error_at_once_and_an_error_of_a_library():
    recording = recorded()
    with pytest.raises(json.JSONDecodeError), recording:
        json.loads("no")
    (text,) = recording.findings
    assert text.splitlines()[1].endswith(': json.loads("no")')  # not the line in json
    assert "Last before it" not in text


def test_parameters_that_are_never_used():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.frozen = (
                nn.Linear(2, 2),
                nn.Linear(2, 2),
                nn.Linear(2, 2).requires_grad_(False),
            )
            self.register_buffer("unused", torch.ones(2))

        def forward(self, x):
            return self.first(x)

    model, alone = Half(), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), alone], lr=0.1)
    with recorded() as recording:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    (text,) = [one.text for one in recording.trace.findings if one.kind == "unused"]
    assert text == (
        "Half.second.weight, Half.second.bias, Half.frozen.weight, Half.frozen.bias, parameter 6 in group 0 of SGD are never used: "
        "no operation of the recording takes them"
    )
    with recorded() as recording, torch.no_grad():
        Model().eval()(torch.randint(11, (4, 6)))  # attention, a recurrent layer, a shared weight: all are used
    assert recording.findings == []


def test_nothing_is_said_of_parameters_where_a_recording_was_cut_off():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with recorded(limit=1) as recording:
        model(torch.ones(1, 2))
    assert recording.findings == []
    model[0].register_forward_hook(lambda *given: {}["missing"])
    recording = recorded()
    with pytest.raises(KeyError), recording:
        model(torch.ones(1, 2))
    assert [one.kind for one in recording.trace.findings] == ["error"]


def test_an_error_in_a_module_leaves_its_group():
    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    with recorded() as recording:
        with pytest.raises(ValueError, match="no"):
            nn.Sequential(Bad())(torch.ones(2))
        torch.ones(2).exp()
    assert box_of(recording, "exp").group == -1


def test_an_error_in_backward_ends_the_run():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no")

    x = torch.ones(2, requires_grad=True)
    with recorded() as recording:
        with pytest.raises(ValueError, match="no"):
            Bad.apply(x).sum().backward()
        x.exp().sum().backward()
    assert x.grad is not None
    assert "ExpBackward0" in backward_names(recording)
    assert recording.trace.steps[-1].run == 2


def test_optimizer_steps_are_operations():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = torch.randn(8, 2), torch.randn(8, 1)

    def closure():
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    with recorded() as recording:
        optimizer.step(closure)
        model(x)
    assert operations(recording, "optimizer") == ["LBFGS.step"]
    assert operations(recording).count("mse_loss") >= 2  # the closure's
    assert recording.trace.operations[-1].name == "linear"  # seen again after the step


def test_operations_are_seen_again_after_a_step_that_failed():
    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise ArithmeticError

    model = nn.Linear(2, 1)
    with recorded() as recording:
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        with pytest.raises(ArithmeticError):
            Failing(model.parameters(), lr=1.0).step()
        model(torch.ones(1, 2)).exp()
    assert "exp" in operations(recording)


def test_the_first_nan_is_found():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    with recorded() as recording:
        y = x * 2
        z = y.log()
        (z + 1).sum().backward()
    (first, *_) = recording.trace.findings
    assert (first.kind, recording.trace.operations[first.operation].name) == ("nan", "log")
    assert "NaN first appears in log (test_record.py:" in first.text


def test_a_gradient_that_stops_being_finite_is_found():
    x = torch.zeros(2, requires_grad=True)
    with recorded() as recording:
        x.sqrt().sum().backward()
    found = [one for one in recording.trace.findings if one.kind == "nan"]
    assert [recording.trace.operations[one.operation].name for one in found] == ["sqrt"]


def test_masks_with_infinities_are_no_finding():
    scores = torch.randn(3, 3, requires_grad=True)
    with recorded() as recording:
        masked = scores.masked_fill(torch.ones(3, 3).triu(1).bool(), -math.inf)
        masked.softmax(-1).square().sum().backward()
    assert recording.findings == []


def test_gradients_that_vanish_are_found():
    x = torch.full((3,), -1.0, requires_grad=True)
    with recorded() as recording:
        x.relu().sum().backward()
    kinds = {one.kind: recording.trace.operations[one.operation].name for one in recording.trace.findings}
    assert kinds == {"vanished": "x"}
    assert "The gradient vanishes in relu (test_record.py:" in recording.findings[0]


def test_a_scaled_loss_makes_no_gradient_explode():
    model = nn.Linear(8, 8)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    with recorded() as recording:
        loss = model(torch.ones(4, 8)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert recording.findings == []
    x = torch.full((8,), 1e-3, requires_grad=True)
    with recorded() as recording:
        (x * 3e6).square().sum().backward()
    assert recording.findings == ["The gradient of x: exploding"]


def test_infinities_of_a_mask_pass_until_they_make_nan():
    scores = torch.zeros(3, 3, requires_grad=True)
    with recorded() as recording:
        mask = torch.full((3, 3), -math.inf).triu(1)
        (scores + mask).softmax(-1).sum().backward()
    assert [text for text in recording.findings if "first appears" in text] == []
    with recorded() as recording:
        (scores + torch.full((3, 3), -math.inf)).softmax(-1).sum()
    (text,) = recording.findings
    assert text.startswith("NaN first appears in softmax (test_record.py:")


def test_cuts_are_found_where_they_matter():
    x = torch.ones(3, requires_grad=True)
    with recorded() as recording:
        y = x.exp()
        loss = (y * y.detach()).sum()
        (y > 1).float().mean()  # an accuracy, which no backward uses
        with torch.no_grad():
            y.mean()
        loss.backward()
    assert [recording.trace.operations[one.operation].name for one in recording.trace.meant_cuts] == ["detach"]
    assert [box.name for box in recording.trace.operations if box.cut] == ["detach", "gt", "mean"]
    assert [box.name for box in recording.trace.operations if box.is_meant] == ["detach", "mean"]
    assert recording.findings == []  # who writes detach() means it, and x has its gradient


@pytest.mark.parametrize("cut", [torch.tensor, lambda h: h.data], ids=["tensor", "data"])
@pytest.mark.filterwarnings("ignore:To copy construct")
def test_cuts_that_nobody_means_are_findings(cut):
    x = torch.ones(3, requires_grad=True)
    with recorded() as recording:
        h = x * 2
        (h + cut(h)).sum().backward()
    assert [one.kind for one in recording.trace.findings] == ["cut"]
    assert recording.trace.meant_cuts == []


class Clamp(torch.autograd.Function):
    """Clamps, and lets the whole gradient pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0) * 1

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize(
    "loss",
    [
        lambda h: h + torch.randn_like(h) * h.exp(),
        lambda h: h * (torch.rand_like(h) > 0.5),
        lambda h: torch.where(h > 0, h, torch.zeros_like(h)),
        lambda h: h + h.new_ones(h.shape),
        lambda h: h * (h > 0).float(),
        lambda h: h.gather(1, h.argmax(1, keepdim=True)),
        Clamp.apply,
        lambda h: checkpoint(torch.tanh, h, use_reentrant=True),
    ],
    ids=["randn_like", "rand_like", "zeros_like", "new_ones", "comparison", "argmax", "Function", "checkpoint"],
)
def test_right_code_cuts_nothing(loss):
    model = nn.Linear(4, 4)
    x = torch.arange(12.0).view(3, 4) / 6
    with recorded() as recording:
        loss(model(x)).mean().backward()
    assert [one.text for one in recording.trace.findings if one.kind in ("cut", "missing")] == []


def test_the_whole_message_of_an_error_is_kept():
    def fail():
        raise ValueError("the first line\nHint: the second\n\n  the last")

    with pytest.raises(ValueError, match="first line"), recorded() as recording:
        fail()
    (text,) = recording.findings
    assert text.startswith(
        "The program was left by ValueError: the first line\nHint: the second\n\n  the last\nat test_record.py:"
    )


def test_parameters_without_a_gradient_are_explained():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    x = torch.ones(1, 2)
    with recorded() as recording:
        hidden = first(x).detach()
        second(hidden).sum().backward()
    (text,) = [one.text for one in recording.trace.findings if one.kind == "missing"]
    assert text.startswith("weight (test_record.py:")
    assert " get no gradient. They are cut at detach (test_record.py:" in text


@pytest.mark.parametrize("is_batched", [False, True], ids=["grad", "vmap"])
def test_gradients_pass_through_transforms(is_batched):
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    weights = dict(model.named_parameters())

    def loss_of(weights, x):
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    def after_learning(weights, x):
        found = torch.func.grad(loss_of)(weights, x)
        return loss_of({name: value - 0.1 * found[name] for name, value in weights.items()}, x)

    x = torch.arange(10.0).view(5, 2, 1)
    with recorded() as recording:
        if is_batched:
            torch.func.vmap(after_learning, in_dims=(None, 0))(weights, x).mean().backward()
        else:
            after_learning(weights, x[0]).backward()
    assert all(value.grad.abs().sum() > 0 for value in weights.values())
    assert recording.findings == []
    assert {leaf.name for leaf in recording.trace.leaves if leaf.requires_grad} == set(weights)


def test_a_transform_alone_misses_no_gradient():
    model = nn.Linear(2, 1)
    x = torch.ones(3, 2)

    def call(weights):
        return torch.func.functional_call(model, weights, (x,)).sum()

    with recorded() as recording:
        torch.func.grad(call)({name: value.detach() for name, value in model.named_parameters()})
    assert recording.findings == []


def test_identical_findings_are_one_with_a_count():
    x = torch.ones(3, requires_grad=True)
    with recorded() as recording:
        loss = x.sum()
        for _ in range(3):
            loss = loss + x.detach().sum() + x.data.sum()
        loss.backward()
    (text,) = recording.findings
    assert text.startswith("A gradient is cut at data: ")
    assert text.endswith(" (3 times)")
    (meant,) = recording.trace.meant_cuts
    assert meant.text.startswith("detach (test_record.py:")
    assert meant.text.endswith(" (3 times)")


def test_findings_that_are_left_out_are_counted():
    frozen = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(30))
    x = torch.ones(2, requires_grad=True)
    with recorded() as recording:
        loss = x.sum()
        for number, layer in enumerate(frozen):
            loss = loss + eval(compile("layer(x).detach().sum()", f"line{number}.py", "eval"), {"layer": layer, "x": x})
        loss.backward()
    trace = recording.trace
    assert [len(found) for found in (trace.findings, trace.meant_cuts)] == [9, 9]
    assert trace.findings[-1].text == "22 more parameters without a gradient"
    assert trace.meant_cuts[-1].text == "22 more places at which a gradient is cut on purpose"


def test_modules_of_the_same_name_are_told_apart():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    x = torch.ones(1, 2)
    with recorded() as recording:
        hidden = first(x)
        second(hidden.detach()).sum().backward()
    line = test_modules_of_the_same_name_are_told_apart.__code__.co_firstlineno
    (missing,) = [one.text.split(" get ")[0] for one in recording.trace.findings if one.kind == "missing"]
    assert missing == f"weight (test_record.py:{line + 4}), bias (test_record.py:{line + 4})"


def test_a_critic_that_learns_alone_misses_nothing():
    """The generator of a GAN runs under no_grad meanwhile; optimizers of the recording do not have its parameters."""
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    with recorded() as recording:
        with torch.no_grad():
            fake = generator(torch.randn(4, 2))
        critic(fake).square().mean().backward()
        optimizer.step()
    assert recording.findings == []
    assert [one.kind for one in recording.trace.meant_cuts] == ["meant"]


def test_a_parameter_of_an_optimizer_without_a_gradient_is_found():
    backbone, head = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
    with recorded() as recording:
        with torch.no_grad():
            features = backbone(torch.randn(4, 2))
        head(features).square().mean().backward()
        optimizer.step()
    (text,) = recording.findings
    assert text.startswith("weight (test_record.py:")
    assert " get no gradient. They are cut at linear (test_record.py:" in text


def test_parameters_have_their_names_where_the_model_is_made_in_the_recording():
    with recorded() as recording:
        model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
        model(torch.ones(1, 2)).square().sum().backward()
    names = {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert {leaf.name for leaf in recording.trace.leaves if leaf.requires_grad} == names
    assert {box.name for box in recording.trace.operations if box.kind == "parameter"} == names


def test_leaves_have_the_names_of_variables():
    program = compile(
        "def loss(scale):\n    return (scale * inputs).sum()\nloss(weight).backward()\n", "program.py", "exec"
    )
    variables = {"weight": torch.ones(3, requires_grad=True), "inputs": torch.arange(3.0)}
    with recorded() as recording:
        exec(program, variables)
    assert [leaf.name for leaf in recording.trace.leaves] == ["scale", "inputs"]  # as where they were used first


def test_parameters_have_the_names_of_the_variables_of_their_modules():
    model = nn.Linear(3, 1)
    view = debug.view(model(torch.ones(3)).sum(), path=None)
    assert [leaf.name for leaf in view.trace.leaves] == ["model.bias", "model.weight"]


def test_looking_for_names_keeps_nothing_alive_and_changes_nothing():
    x = torch.ones(3, requires_grad=True)
    gone = weakref.ref(x)
    with recorded():
        (x * x).sum().backward()
    del x
    assert gone() is None

    def holds():
        y = torch.ones(3, requires_grad=True)
        held = locals()
        with recorded() as recording:
            (y * y).sum().backward()
        return list(held), recording

    names, recording = holds()
    assert names == ["y"]
    assert [leaf.name for leaf in recording.trace.leaves] == ["leaf"]


@pytest.mark.skipif(not machine.is_available(), reason="no kernels here")
def test_kernels_are_counted_where_they_are_made():
    program = (
        "import retrograd as torch\n"
        "from retrograd import debug\n"
        "x = torch.randn(128, 128, requires_grad=True)\n"
        "for _ in range(2):\n"
        "    with debug.record(path=None) as recording:\n"
        "        torch.nn.functional.gelu(x).sum().backward()\n"
        "    steps = recording.trace.steps\n"
        "    print(recording.trace.compiled, sum(one.compiled for one in steps), sum(one.making > 0 for one in steps))\n"
    )
    environment = {**os.environ, "RETROGRAD_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    whole, in_steps, steps = map(int, first.split())
    assert whole == in_steps > 0
    assert steps > 0
    assert second == "0 0 0"


def test_unused_parameters_of_modules_of_the_same_name_are_told_apart():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x.exp()

    first, second = Idle(), Idle()
    with recorded() as recording:
        hidden = first(torch.ones(1))
        second(hidden)
    line = test_unused_parameters_of_modules_of_the_same_name_are_told_apart.__code__.co_firstlineno
    (text,) = recording.findings
    names = f"Idle.weight (test_record.py:{line + 11}), Idle.weight (test_record.py:{line + 12})"
    assert text.startswith(f"{names} are never used")


def test_a_leaf_that_is_used_twice_is_one_leaf():
    x = torch.ones(3, requires_grad=True)
    with recorded() as recording:
        (x.sum() + x.exp().sum()).backward()
    assert operations(recording) == ["sum", "exp", "sum", "add"]
    assert recording.findings == []


def test_data_is_a_cut():
    weight = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    with recorded() as recording:
        y = weight.exp()
        loss = (y.data * other).sum()
        loss.backward()
    (text,) = [one.text for one in recording.trace.findings if one.kind == "missing"]
    assert text == (
        "weight gets no gradient. It is cut at data: the value left the graph by .data, or by memory that is shared."
    )


def test_explain_says_why_a_leaf_was_not_reached():
    unused = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    with recorded() as recording:
        unused.exp()
        other.sin().sum().backward()
    (text,) = [one.text for one in recording.trace.findings if one.kind == "missing"]
    assert text.startswith("unused gets no gradient. What backward began from does not depend on it")


def test_nothing_is_claimed_of_what_did_not_run():
    model, x = nn.Linear(2, 1), torch.ones(1, 2)

    def said(recording):
        return data_of(recording.trace)["good"]

    with recorded() as empty:
        pass
    assert said(empty) == "No operation was recorded."
    with recorded(limit=1) as ended:
        model(x).sum().backward()
    assert said(ended) == "No NaN, no infinity."
    with recorded() as forward:
        model(x)
    assert said(forward) == "No NaN, no infinity, no parameter that is never used."
    with recorded() as whole:
        model(x).sum().backward()
    assert said(whole) == (
        "No NaN, no infinity, no gradient that vanishes, is cut or missing, no parameter that is never used."
    )
    with recorded(statistics=False) as unseen:
        model(x).sum().backward()
    assert said(unseen) == (
        "No gradient that is cut or missing, no parameter that is never used. Values were not looked at (statistics=False)."
    )
    with recorded(statistics=False, limit=1) as ended:
        model(x)
    assert said(ended) == "Values were not looked at (statistics=False)."
    graph = debug.view(model(x).sum(), path=None)
    assert (
        said(graph) == "No NaN, no infinity in what the graph has kept, no gradient that vanishes, is cut or missing."
    )


def test_limits(tmp_path):
    x = torch.ones(2)
    with recorded(limit=5) as recording:
        for _ in range(10):
            x = x + 1
    assert len(recording.trace.steps) == 5
    assert "limit of 5 events" in recording.trace.notes[0]
    weight = torch.ones(2, requires_grad=True)
    with recorded(limit=7) as recording:
        weight.sin().cos().exp().tanh().sum().backward()
    assert len(recording.trace.steps) == 7  # in the midst of backward, which goes on
    assert weight.grad is not None
    path = tmp_path / "early.html"
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with debug.record(path, steps=2) as recording:
        for done in range(4):
            assert path.exists() == (done >= 2)
            model(x).sum().backward()
            optimizer.step()
    assert operations(recording, "optimizer") == ["SGD.step"] * 2


def test_one_thread_is_recorded():
    with recorded() as recording:
        other = threading.Thread(target=lambda: torch.ones(3, requires_grad=True).exp().sum().backward())
        other.start()
        other.join()
        torch.ones(3).sin()
    assert operations(recording) == ["ones", "sin"]
    assert backward_names(recording) == []


def test_without_statistics():
    x = torch.ones(3, requires_grad=True)
    with recorded(statistics=False) as recording:
        x.exp().sum().backward()
    assert box_of(recording, "exp").values[0].statistics is None
    assert box_of(recording, "exp").gradient is None
    assert recording.findings == []
    assert backward_names(recording) == ["SumBackward0", "ExpBackward0"]


def test_nothing_changes_after_the_end():
    x = torch.ones(2, requires_grad=True)
    with recorded() as recording:
        y = x.exp()
    before = recording.html()
    y.sum().backward()
    del y
    assert recording.html() == before


def test_the_examples_in_the_docstrings():
    from retrograd.debug import _view

    assert doctest.testmod(_view).failed == 0


def test_wrong_use():
    with pytest.raises(ValueError, match=r"record\(\): limit must be a positive integer, but got 0"):
        debug.record(limit=0)
    with pytest.raises(ValueError, match="steps must be a positive integer, but got True"):
        debug.record(steps=True)
    with recorded() as recording:
        with pytest.raises(RuntimeError, match="a recording is running already"), recorded():
            pass
        with pytest.raises(RuntimeError, match="a recording is running"):
            debug.view(torch.ones(1, requires_grad=True).exp(), path=None)
    with pytest.raises(RuntimeError, match="this recording has ended"), recording:
        pass
    with pytest.raises(TypeError, match="at least one tensor"):
        debug.view()
    with pytest.raises(TypeError, match="expected tensors, but got list"):
        debug.view([torch.ones(1)])
    with pytest.raises(RuntimeError, match="does not require grad"):
        debug.view(torch.ones(1))


def test_nodes_know_the_lines_of_the_program():
    x = torch.ones(2, requires_grad=True)
    with recorded():
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            y.sum().backward()
    assert y.grad_fn.code.co_name == "test_nodes_know_the_lines_of_the_program"
    assert "y = x.exp()" in str(caught.value)
    assert "y.add_(1)" in str(caught.value)


def test_graphs_from_before_and_properties():
    x = torch.randn(2, 3, requires_grad=True)
    before = x.exp()
    with recorded() as recording:
        (before.T.data * before.T).sum().backward()
    assert {"exp", "mul", "sum"} <= set(operations(recording))
    assert [leaf.gradient is not None for leaf in recording.trace.leaves if leaf.requires_grad] == [True]
    assert backward_names(recording)[-1] == "ExpBackward0"


def test_optimizers_in_backward_and_hooks():
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def step(parameter):
        optimizer.step()
        optimizer.zero_grad()

    weight.register_post_accumulate_grad_hook(step)
    seen = []
    with recorded() as recording:
        hidden = weight * 3
        hidden.register_hook(lambda g: seen.append(g) or g * 2)
        hidden.sum().backward()
    assert weight.tolist() == [-2.0, -2.0]
    assert len(seen) == 1
    assert operations(recording, "optimizer") == ["SGD.step"]
    assert recording.trace.leaves[0].gradient.mean == 6.0


# ---- view ----
def test_view_shows_the_graph_and_its_gradients(tmp_path):
    x = torch.arange(3.0, requires_grad=True)
    loss = (x.exp() * 2).sum()
    recording = debug.view(loss, path=tmp_path / "view.html")
    assert operations(recording) == ["exp", "mul", "sum"]
    assert x.grad is None
    exp = box_of(recording, "exp")
    assert exp.values[0].shape == (3,)  # which the graph has saved
    assert exp.gradient.mean == 2.0
    assert recording.trace.leaves[0].gradient.greatest == pytest.approx(2 * math.exp(2), rel=1e-6)
    assert recording.path.read_text().startswith("<!doctype html>")
    loss.backward()  # the graph is still there
    assert x.grad is not None
    freed = debug.view(loss, path=None)
    assert freed.trace.notes == ["A backward has freed the graph: there are no saved values and no gradients to show."]


def test_view_without_gradients_runs_no_hook():
    called = []
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: called.append(1))
    debug.view(y.sum(), y.mean(), path=None, gradients=False)
    assert called == []


def test_view_of_a_long_chain():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):  # deeper than Python's stack
        y = y + 1
    assert len(operations(debug.view(y.sum(), path=None))) == 5001


def test_notebooks_show_a_frame():
    x = torch.ones(2, requires_grad=True)
    frame = debug.view(x.sum(), path=None)._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert frame.count("<") == 2


def test_stacks_end_at_the_cell_of_a_notebook(monkeypatch):
    """What runs cells is nothing to the program, and its source would double the page of `view`."""
    compiler = types.SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]") if file == "cell" else None)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    program = (
        "from retrograd import debug\ndef loss(x):\n    return x.exp().sum()\nmade = debug.view(loss(x), path=None)\n"
    )
    names = {"x": torch.ones(2, requires_grad=True)}
    exec(compile(program, "cell", "exec"), names)
    assert {file for file, _, _ in names["made"].trace.places.lines} == {"cell"}
    with torch.profiler.profile(with_stack=True) as prof:
        exec(compile("loss(x)", "cell", "exec"), names)
    (event,) = [one for one in prof.events() if one.name == "aten::exp"]
    assert event.stack == ["Cell In[3](3): loss", "Cell In[3](1): <module>"]


def test_notebooks_call_files_by_their_cells(monkeypatch):
    file = "/tmp/ipykernel_1/123.py"
    program = "with record(path=None) as recording:\n    x.log()\n    x.log().missing\n"
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if name == file else None)
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(compile=compiler))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(linecache.cache, file, (len(program), None, program.splitlines(keepends=True), file))
    names = {"record": debug.record, "x": torch.ones(2)}
    with pytest.raises(AttributeError):
        exec(compile(program, file, "exec"), names)
    recording = names["recording"]
    assert recording.trace.title == "Cell In[3]"
    assert (
        "at Cell In[3], line 3: x.log().missing\nLast before it: log (Cell In[3], line 2), log (Cell In[3], line 3)"
        in recording.findings[0]
    )
    assert [shown for _, shown, _ in data_of(recording.trace)["files"]] == ["Cell In[3]"]


def test_the_page_needs_nothing_from_the_net():
    x = torch.ones(2, requires_grad=True)
    page = debug.view(x.sum(), path=None).html()
    assert "src=" not in page.replace("src=(", "")
    assert "http://" not in page
    assert "https://" not in page
    assert "Copyright (c) 2012-2014 Chris Pettitt" in page  # dagre's licence travels with it
