"""torch.amp: the scaler as torch's, autocast where it is off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import amp, nn
from tests.oracle import answer

needs_none = pytest.mark.skipif(retrograd.cuda.is_available(), reason="there is a CUDA device")


# ---- autocast ----
def test_autocast_switched_off_does_nothing() -> None:
    x = retrograd.ones(2, 2)
    with retrograd.autocast("cpu", enabled=False):
        assert (x @ x).dtype is retrograd.float32

    @retrograd.autocast("cpu", dtype=retrograd.bfloat16, enabled=False)
    def product() -> Any:
        return x @ x

    assert product().dtype is retrograd.float32
    assert not retrograd.is_autocast_enabled()
    assert retrograd.is_autocast_cache_enabled()
    retrograd.clear_autocast_cache()


AUTOCAST = {
    "linear": lambda lib, x: lib.nn.functional.linear(x, x, x[0]),
    "matmul": lambda lib, x: x @ x,
    "mm of halves": lambda lib, x: x.bfloat16() @ x,
    "bmm": lambda lib, x: lib.bmm(x[None], x[None]),
    "addmm": lambda lib, x: lib.addmm(x, x, x),
    "conv": lambda lib, x: lib.nn.functional.conv2d(x[None, None], x[None, None, :2, :2]),
    "attention": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(x, x, x),
    "elementwise": lambda lib, x: (x @ x).relu() + 1,
    "mixed": lambda lib, x: (x @ x) + x,
    "softmax": lambda lib, x: (x @ x).softmax(0),
    "cross entropy": lambda lib, x: lib.nn.functional.cross_entropy(x @ x, lib.tensor([0, 1, 2])),
    "mse": lambda lib, x: lib.nn.functional.mse_loss(x @ x, x),
    "float64": lambda lib, x: x.double() @ x.double(),
    "off inside": lambda lib, x: _off(lib, x),
    "questions": lambda lib, x: lib.tensor([lib.is_autocast_enabled("cpu"), lib.is_autocast_enabled()]),
    "sum": lambda lib, x: (x @ x).sum(),
    "matrix and vector": lambda lib, x: lib.mv(x, x[0]),
    "einsum of a list": lambda lib, x: lib.einsum("ij,jk->ik", [x, x]),
    "multi_dot": lambda lib, x: lib.linalg.multi_dot([x, x, x]),
    "matrix_power": lambda lib, x: lib.linalg.matrix_power(x, 3),
    "inverse of halves": lambda lib, x: lib.linalg.inv(lib.eye(3).bfloat16()),
    "product of halves": lambda lib, x: x.bfloat16().prod(0),
    "transform of halves": lambda lib, x: lib.fft.fft(x.bfloat16()).real,
    "trace of halves": lambda lib, x: x.bfloat16().trace(),
    "exponentials of halves": lambda lib, x: x.bfloat16().exp(),
    "reflected halves": lambda lib, x: lib.nn.functional.pad(x.bfloat16(), (1, 1), mode="reflect"),
    "reflected blocks": lambda lib, x: lib.nn.functional.pad(x.bfloat16()[None, None], (1,) * 6, mode="replicate"),
    "reflected halves in three": lambda lib, x: lib.nn.functional.pad(
        x.bfloat16().expand(1, 2, 3, 3), (1, 1, 1, 1, 1, 1), mode="reflect"
    ),
    "normal likelihood of halves": lambda lib, x: lib.nn.functional.gaussian_nll_loss(
        x.bfloat16(), x.detach().bfloat16() + 1, x.detach().bfloat16() + 1
    ),
    "many labels of halves": lambda lib, x: lib.nn.functional.multilabel_soft_margin_loss(x.bfloat16(), x.bfloat16()),
    **{
        f"{name} of {kind}": lambda lib, x, name=name, kind=kind: _steps(lib, name, x if kind == "floats" else x @ x)
        for name in ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
        for kind in ("floats", "products")
    },
}


def _steps(lib: Any, name: str, x: Any) -> Any:
    layer = getattr(lib.nn, name)(3, 2)
    for weight in layer.parameters():
        lib.nn.init.constant_(weight, 0.2)
    out = layer(x)
    return out[0] if isinstance(out, tuple) else out


def _off(lib: Any, x: Any) -> Any:
    with lib.autocast("cpu", enabled=False):
        return x @ x


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", AUTOCAST)
def test_autocast_casts_what_torch_casts(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    if name.startswith("LSTM of") and dtype == "float16":
        pytest.skip("torch has it on some processors only")
    answers = []
    for lib in (retrograd, torch):
        x = (lib.arange(9.0).reshape(3, 3) / 8).requires_grad_()
        with lib.autocast("cpu", dtype=getattr(lib, dtype)):
            out = AUTOCAST[name](lib, x)
        if out.requires_grad:
            out.sum().backward()
        answers.append((str(out.dtype), out.detach().double().numpy(), None if x.grad is None else x.grad.numpy()))
    assert answers[0][0] == answers[1][0]
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=2e-2, atol=2e-2)
    if answers[0][2] is not None:
        assert answers[0][2].dtype == answers[1][2].dtype
        np.testing.assert_allclose(answers[0][2], answers[1][2], rtol=3e-2, atol=3e-2)


def test_a_marked_function_under_autocast() -> None:
    seen = []

    class Product(retrograd.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=retrograd.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a.dtype, retrograd.is_autocast_enabled("cpu")))
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((g.dtype, retrograd.is_autocast_enabled("cpu")))
            a, b = ctx.saved_tensors
            return g @ b.t(), a.t() @ g

    x = retrograd.ones(2, 2, requires_grad=True)
    with retrograd.autocast("cpu"):
        out = Product.apply(x.bfloat16(), x)
    out.sum().backward()
    assert seen == [(retrograd.float32, False)] * 2
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


@needs_none
def test_autocast_is_off_where_torch_turns_it_off() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not amp.autocast("cuda")._enabled
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
        assert not amp.autocast("cpu", dtype=retrograd.float32)._enabled


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        "torch.get_autocast_dtype('cpu')",
        "torch.get_autocast_dtype('cuda')",
        "torch.is_autocast_enabled('cpu')",
        "torch.amp.is_autocast_available('cpu')",
        "torch.autocast(3)",
        "torch.amp.custom_fwd(len, device_type=3)",
        "torch.amp.custom_bwd(len, device_type=3)",
        "torch.autocast('cuda').fast_dtype",
    ],
)
def test_questions_are_answered_as_by_torch(program: str) -> None:
    assert answer(retrograd, program) == answer(pytest.importorskip("torch"), program)


def test_marked_functions_compute() -> None:
    class Double(retrograd.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=retrograd.float32)
        def forward(ctx: Any, x: Any) -> Any:
            assert ctx._fwd_used_autocast is False
            return 2 * x

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    x = retrograd.ones(1, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.item() == 2


@needs_none
def test_older_names_warn() -> None:
    old = retrograd.cuda.amp
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.autocast\(args...\)` is deprecated"):
        old.autocast(enabled=False)
    with pytest.warns(FutureWarning, match=r"Please use `torch.amp.GradScaler\('cuda', args...\)` instead"):
        old.GradScaler(enabled=False)
    with pytest.warns(FutureWarning, match="custom_fwd"):
        old.custom_fwd(lambda ctx: None)
    with pytest.warns(FutureWarning, match="custom_bwd"):
        assert old.custom_bwd(len).__name__ == "len"
    assert old.amp_definitely_not_available()


# ---- the scaler ----
def training(torch: Any, **options: Any) -> list[Any]:
    """Train with gradients that are infinite at times, and write down all that the scaler tells."""
    scaler = torch.amp.GradScaler("cpu", growth_interval=2, **options)
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], 0.1)
    seen = []
    for factor in (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        if factor == 2.0:
            scaler.unscale_(optimizer)
            seen.append(weight.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        seen += [scaler.state_dict(), weight.tolist()]
    return seen


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"growth_factor": 1.1, "backoff_factor": 0.3}, {"init_scale": 3e38}])
def test_scaling_follows_torch(options: dict[str, float]) -> None:
    assert str(training(retrograd, **options)) == str(training(pytest.importorskip("torch"), **options))


MADE = "s := torch.amp.GradScaler('cpu'), w := torch.nn.Parameter(torch.ones(2)), o := torch.optim.SGD([w], 0.1)"
BACK = "s.scale(w.sum()).backward()"


@pytest.mark.oracle
@pytest.mark.parametrize(
    "steps",
    [
        "s.step(o)",
        "s.update()",
        "s.unscale_(o)",
        "s.scale([w, (w, w)])",
        "list(s.scale(iter([w])))",
        "s.scale(3)",
        f"{BACK}, s.unscale_(o), s.unscale_(o)",
        f"{BACK}, s.step(o), s.step(o)",
        f"{BACK}, s.step(o), s.unscale_(o)",
        f"{BACK}, s.update()",
        f"{BACK}, s.step(o, closure=len)",
        "s.scale(w), s.step(o)",
        f"{BACK}, s.update(4.0), s.get_scale()",
        "s.load_state_dict({})",
        "s.set_growth_factor(3.0), s.set_backoff_factor(0.1), s.set_growth_interval(5), s.state_dict()",
        "s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval(), s.is_enabled()",
        "torch.amp.GradScaler('cpu', growth_factor=1.0)",
        "torch.amp.GradScaler('cpu', backoff_factor=1.0)",
        "h := torch.nn.Parameter(torch.ones(1).half()), s.scale(h.sum()).backward(), s.unscale_(torch.optim.SGD([h], 1.0))",
    ],
)
def test_the_scaler_answers_as_torchs(steps: str) -> None:
    program = f"({MADE}, {steps})[3:]"
    assert answer(retrograd, program) == answer(pytest.importorskip("torch"), program)


def test_a_disabled_scaler_steps_only() -> None:
    scaler = amp.GradScaler("cpu", enabled=False)
    weight = nn.Parameter(retrograd.ones(1))
    optimizer = retrograd.optim.SGD([weight], 0.5)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert (weight.item(), scaler.state_dict(), scaler.get_scale(), scaler.is_enabled()) == (0.5, {}, 1.0, False)


@needs_none
def test_a_scaler_for_a_missing_device_is_disabled() -> None:
    with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
        assert not amp.GradScaler().is_enabled()


def test_a_state_is_taken_over() -> None:
    first, second = amp.GradScaler("cpu", init_scale=8.0), amp.GradScaler("cpu")
    second.scale(retrograd.ones(1))
    second.load_state_dict(first.state_dict())
    assert second.scale(retrograd.ones(1)).item() == 8
