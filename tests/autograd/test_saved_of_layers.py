"""What the nodes of layers, losses and products show: torch's `_saved_*`, `dir`, `_input_metadata`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.autograd.graph import saved_tensors_hooks

Program = Callable[[Any], Any]


def values(t: Any, *shape: int) -> Any:
    """Make a leaf of numbers that differ."""
    count = int(np.prod(shape))
    numbers = np.sin(np.arange(count, dtype=np.float32) * 1.7 + 0.3).reshape(shape)
    return t.tensor(numbers.tolist(), requires_grad=True)


def of(*names: str) -> Callable[[Program], Program]:
    """Say which of torch's attributes a node lacks here: what torch keeps and we do not."""

    def mark(program: Program) -> Program:
        LACKS[program] = set(names)
        return program

    return mark


LACKS: dict[Program, set[str]] = {}
SELF = of("self")
CLASSES = [0, 2, 1]

PROGRAMS: dict[str, Program] = {
    "conv1d": lambda t: t.nn.functional.conv1d(values(t, 2, 3, 7), values(t, 4, 3, 3), values(t, 4), 2, 1),
    "conv2d": lambda t: t.nn.functional.conv2d(
        values(t, 2, 4, 7, 6), values(t, 4, 2, 3, 3), values(t, 4), (2, 1), (1, 2), (1, 2), 2
    ),
    "conv2d_without_bias": lambda t: t.nn.functional.conv2d(values(t, 1, 2, 5, 5), values(t, 3, 2, 3, 3), padding="same"),
    "conv2d_constant": lambda t: t.nn.functional.conv2d(values(t, 1, 2, 5, 5), t.ones(3, 2, 3, 3)),
    "conv3d": lambda t: t.nn.functional.conv3d(values(t, 1, 2, 4, 4, 4), values(t, 3, 2, 3, 3, 3)),
    "conv_transpose2d": lambda t: t.nn.functional.conv_transpose2d(
        values(t, 1, 2, 5, 5), values(t, 2, 3, 3, 3), values(t, 3), 2, 1, 1
    ),
    "layer_norm": lambda t: t.nn.functional.layer_norm(
        values(t, 2, 3, 4), (3, 4), values(t, 3, 4), values(t, 3, 4)
    ),
    "layer_norm_plain": lambda t: t.nn.functional.layer_norm(values(t, 2, 3, 4), (4,)),
    "layer_norm_row": lambda t: t.nn.functional.layer_norm(values(t, 5), (5,)),
    "batch_norm": of("running_mean", "running_var")(
        lambda t: t.nn.functional.batch_norm(values(t, 4, 3), None, None, values(t, 3), values(t, 3), True)
    ),
    "batch_norm_planes": of("running_mean", "running_var")(
        lambda t: t.nn.functional.batch_norm(values(t, 2, 3, 4, 4), None, None, training=True)
    ),
    "batch_norm_fixed": lambda t: t.nn.functional.batch_norm(
        values(t, 4, 3), t.zeros(3), t.ones(3), values(t, 3), values(t, 3)
    ),
    "group_norm": lambda t: t.nn.functional.group_norm(values(t, 2, 4, 3), 2, values(t, 4), values(t, 4)),
    "rms_norm": lambda t: t.nn.functional.rms_norm(values(t, 2, 4), (4,), values(t, 4)),
    "nll_loss": lambda t: t.nn.functional.nll_loss(values(t, 3, 4), t.tensor(CLASSES)),
    "nll_loss_weighted": lambda t: t.nn.functional.nll_loss(
        values(t, 3, 4), t.tensor(CLASSES), values(t, 4).detach(), ignore_index=1, reduction="sum"
    ),
    "nll_loss2d": lambda t: t.nn.functional.nll_loss(values(t, 2, 4, 3, 3), t.ones(2, 3, 3, dtype=t.int64)),
    "cross_entropy": lambda t: t.nn.functional.cross_entropy(values(t, 3, 4), t.tensor(CLASSES)),
    "mse_loss": lambda t: t.nn.functional.mse_loss(values(t, 3), values(t, 3) * 2),
    "smooth_l1_loss": lambda t: t.nn.functional.smooth_l1_loss(values(t, 3), values(t, 3), beta=0.5),
    "huber_loss": lambda t: t.nn.functional.huber_loss(values(t, 3), values(t, 3), delta=2.0),
    "bce": lambda t: t.nn.functional.binary_cross_entropy(values(t, 3).sigmoid(), t.ones(3)),
    "bce_logits": lambda t: t.nn.functional.binary_cross_entropy_with_logits(
        values(t, 3), t.ones(3), pos_weight=t.ones(3)
    ),
    "soft_margin_loss": lambda t: t.nn.functional.soft_margin_loss(values(t, 3), t.ones(3)),
    "multi_margin_loss": lambda t: t.nn.functional.multi_margin_loss(values(t, 3, 4), t.tensor(CLASSES)),
    "multilabel_margin_loss": lambda t: t.nn.functional.multilabel_margin_loss(
        values(t, 2, 3), t.tensor([[0, -1, 1], [1, 2, -1]])
    ),
    "grid_sample": lambda t: t.nn.functional.grid_sample(
        values(t, 1, 2, 4, 4), values(t, 1, 2, 2, 2), "nearest", "border", False
    ),
    "affine_grid": lambda t: t.nn.functional.affine_grid(values(t, 1, 2, 3), (1, 1, 2, 2), align_corners=False),
    "max_pool2d": SELF(lambda t: t.nn.functional.max_pool2d(values(t, 1, 2, 6, 6), 2, padding=1)),
    "max_pool2d_strided": SELF(lambda t: t.nn.functional.max_pool2d(values(t, 1, 2, 6, 6), (2, 3), [2, 1])),
    "max_pool3d": SELF(lambda t: t.nn.functional.max_pool3d(values(t, 1, 2, 4, 4, 4), 2, ceil_mode=True)),
    "avg_pool2d": SELF(lambda t: t.nn.functional.avg_pool2d(values(t, 1, 2, 6, 6), 2, 1, 1, True)),
    "avg_pool3d": SELF(lambda t: t.nn.functional.avg_pool3d(values(t, 1, 2, 4, 4, 4), 2, divisor_override=3)),
    "adaptive_max_pool2d": SELF(lambda t: t.nn.functional.adaptive_max_pool2d(values(t, 1, 2, 6, 6), 3)),
    "adaptive_max_pool2d_uneven": SELF(lambda t: t.nn.functional.adaptive_max_pool2d(values(t, 1, 2, 7, 6), (3, 4))),
    "adaptive_avg_pool2d": SELF(lambda t: t.nn.functional.adaptive_avg_pool2d(values(t, 1, 2, 6, 6), (3, 2))),
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([[0, 1]]), values(t, 4, 3), padding_idx=2),
    "embedding_plain": lambda t: t.nn.functional.embedding(t.tensor([[0, 1]]), values(t, 4, 3)),
    **{
        f"{mode}_{rank}d": lambda t, mode=mode, rank=rank: t.nn.functional.interpolate(
            values(t, 1, 2, *(3,) * rank), scale_factor=2, mode=mode
        )
        for mode, rank in [
            ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
            ("bicubic", 2), ("trilinear", 3),
        ]
    },
    "bilinear_sizes": lambda t: t.nn.functional.interpolate(
        values(t, 1, 2, 4, 4), (8, 6), mode="bilinear", align_corners=True
    ),
    "bilinear_smooth": lambda t: t.nn.functional.interpolate(
        values(t, 1, 2, 4, 4), (2, 2), mode="bilinear", antialias=True
    ),
    "reflection_pad": SELF(lambda t: t.nn.functional.pad(values(t, 1, 2, 4), (1, 1), mode="reflect")),
    "replication_pad": SELF(lambda t: t.nn.functional.pad(values(t, 1, 2, 4, 4), (1, 2, 0, 1), mode="replicate")),
    "pixel_shuffle": lambda t: t.nn.functional.pixel_shuffle(values(t, 1, 4, 2, 2), 2),
    "unfold": lambda t: t.nn.functional.unfold(values(t, 1, 2, 4, 5), 2),
    "fold": lambda t: t.nn.functional.fold(values(t, 1, 8, 4), (3, 3), 2),
    "linear": lambda t: t.nn.functional.linear(values(t, 2, 3), values(t, 4, 3), values(t, 4)),
    "linear_constant_input": lambda t: t.nn.functional.linear(t.ones(2, 3), values(t, 4, 3), values(t, 4)),
    "linear_constant_weight": lambda t: t.nn.functional.linear(values(t, 2, 3), t.ones(4, 3), values(t, 4)),
    "linear_3d": lambda t: t.nn.functional.linear(values(t, 2, 2, 3), values(t, 4, 3), values(t, 4)),
    "linear_without_bias": lambda t: t.nn.functional.linear(values(t, 2, 3), values(t, 4, 3)),
    "linear_3d_without_bias": lambda t: t.nn.functional.linear(values(t, 2, 2, 3), values(t, 4, 3)),
    "addmm": lambda t: t.addmm(values(t, 2, 2), values(t, 2, 3), values(t, 3, 2), beta=2, alpha=3),
    "addmv": lambda t: t.addmv(values(t, 2), values(t, 2, 3), values(t, 3)),
    "baddbmm": lambda t: t.baddbmm(values(t, 1, 2, 2), values(t, 1, 2, 3), values(t, 1, 3, 2)),
    "addr": lambda t: t.addr(values(t, 2, 2), values(t, 2), values(t, 2)),
    "cdist": lambda t: t.cdist(values(t, 3, 2), values(t, 2, 2)),
    "clamp_min": lambda t: values(t, 3).clamp_min(0),
    "celu": lambda t: t.nn.functional.celu(values(t, 3)),
}  # fmt: skip


def shown(value: Any) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "stride"):
        return str(value.dtype).rpartition(".")[2], value.detach().double().numpy().round(4) + 0.0
    if isinstance(value, (tuple, list)):
        return tuple(map(shown, value))
    return value


def attributes(t: Any, name: str) -> tuple[str, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = PROGRAMS[name](t).grad_fn
    return node.name(), {a[7:]: shown(getattr(node, a)) for a in dir(node) if a.startswith("_saved_")}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    (our_name, ours), (their_name, theirs) = attributes(retrograd, name), attributes(torch, name)
    assert our_name == their_name
    assert set(ours) == set(theirs) - LACKS.get(PROGRAMS[name], set())
    for attribute, value in ours.items():
        np.testing.assert_equal(value, theirs[attribute], attribute)


def test_values_are_there_under_hooks_and_gone_after_backward() -> None:
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        y = PROGRAMS["layer_norm"](retrograd)
    assert y.grad_fn._saved_result1.shape == (2, 1, 1)
    assert y.grad_fn._saved_input.shape == (2, 3, 4)
    y.sum().backward()
    for name in ("_saved_result1", "_saved_input"):
        with pytest.raises(RuntimeError, match="after they have already been freed"):
            getattr(y.grad_fn, name)


def test_raw_saved_values_take_hooks() -> None:
    y = PROGRAMS["conv1d"](retrograd)
    seen: list[Any] = []
    y.grad_fn._raw_saved_weight.register_hooks(lambda x: x, lambda x: seen.append(x.shape) or x)
    y.sum().backward()
    assert seen == [(4, 3, 3)]


# ---- dir ----
def listed(t: Any) -> list[str]:
    a = t.ones(3, requires_grad=True)
    nodes = [a.sin().grad_fn, (a * 2).grad_fn.next_functions[0][0], PROGRAMS["conv1d"](t).grad_fn]
    return [sorted(name for name in dir(node) if not name.startswith("__")) for node in nodes]


@pytest.mark.oracle
def test_names_listed_are_torchs() -> None:
    assert listed(retrograd) == listed(pytest.importorskip("torch"))


def test_of_a_custom_function_everything_is_listed() -> None:
    class Own(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mine = 1
            return x * 1

    assert {"mine", "saved_tensors", "mark_dirty"} <= set(dir(Own.apply(retrograd.ones(1, requires_grad=True)).grad_fn))


# ---- _input_metadata ----
def metadata(t: Any) -> Any:
    inside: list[Any] = []

    class Own(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            inside.append(len(ctx._input_metadata))
            return x * 2, x.double().sum()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g

    a = t.ones(3, requires_grad=True)
    own, _ = Own.apply(a)
    nodes = [own.grad_fn, a.exp().grad_fn, a.sin().grad_fn, (a * 2).grad_fn, (a * t.ones(2, 3)).grad_fn]
    nodes += [(a * 2).grad_fn.next_functions[0][0], ((a * 2).relu() + 1).grad_fn, a.double().sin().grad_fn]
    return inside, [
        [
            (one.shape, str(one.dtype).rpartition(".")[2], str(one.device), one.is_nested_tensor)
            for one in n._input_metadata
        ]
        for n in nodes
    ]


@pytest.mark.oracle
def test_metadata_is_torchs() -> None:
    assert metadata(retrograd) == metadata(pytest.importorskip("torch"))


def test_metadata_that_no_node_knows() -> None:
    node = (retrograd.ones(3, requires_grad=True) * 1).exp().sum(0, keepdim=True).grad_fn
    assert not hasattr(node, "_input_metadata")


def test_numbers_of_nodes_can_be_set() -> None:
    node = retrograd.ones(3, requires_grad=True).sin().grad_fn
    node._set_sequence_nr(5)
    assert node._sequence_nr() == 5
    assert node.requires_grad
    with pytest.raises(TypeError, match="an integer is required"):
        node._set_sequence_nr("a")  # type: ignore[arg-type]
