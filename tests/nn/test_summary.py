"""nn.summary: a table of layers that leaves the model as it is."""

from __future__ import annotations

import math
from typing import Any

import pytest

import retrograd
from retrograd import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.drop = nn.Dropout(0.5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return x + self.drop(self.norm(self.conv(x)).relu())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.first = Block(4)
        self.again = self.first  # the same module at another place
        self.head = nn.Linear(4, 5)
        self.scale = nn.Parameter(retrograd.ones(3), requires_grad=False)

    def forward(self, x: Any, double: bool = False) -> dict[str, Any]:
        x = self.again(self.first(self.stem(x)))
        return {"logits": self.head(x.mean((2, 3))) * (2 if double else 1), "features": x}


def test_shapes_parameters_bytes_and_flops() -> None:
    found = nn.summary(Net(), input_size=(2, 3, 8, 8))
    stem, first, conv, head = found["stem"], found["first"], found["first.conv"], found["head"]
    assert (stem.inputs, stem.outputs) == ([(2, 3, 8, 8)], [(2, 4, 6, 6)])
    assert (stem.parameters, stem.bytes) == (4 * 3 * 9 + 4, 4 * (4 * 3 * 9 + 4))
    assert stem.flops == 2 * (2 * 4 * 6 * 6) * (3 * 9)
    assert (conv.calls, conv.flops) == (2, 2 * 2 * (2 * 4 * 6 * 6) * (4 * 9))
    assert first.flops == conv.flops  # a layer counts what is inside of it
    assert head.flops == 2 * 2 * 4 * 5
    assert found[""].outputs == [(2, 5), (2, 4, 6, 6)]
    assert found.flops == stem.flops + conv.flops + head.flops
    of_block = 4 * 4 * 9 + 4 + 8 + 6
    assert found.total_parameters == 112 + of_block + 25 + 3 == sum(layer.parameters for layer in found)
    assert found.trainable_parameters == found.total_parameters - 3
    assert (found.parameter_bytes, found.input_bytes) == (4 * found.total_parameters, 4 * 2 * 3 * 8 * 8)
    assert found["again"].shared
    assert not found["first"].shared
    with pytest.raises(KeyError):
        found["nowhere"]


def test_the_table() -> None:
    text = repr(nn.summary(Net(), input_size=(2, 3, 8, 8)))
    lines = text.splitlines()
    assert lines[0].split() == ["layer", "input", "output", "parameters", "bytes", "flops"]
    (block,) = [line for line in lines if line.strip().startswith("first: Block x 2")]
    assert "[2, 4, 6, 6]" in block
    assert any("again: Block (shared)" in line for line in lines)
    (unused,) = [line for line in lines if "unused: Linear" in line]
    assert unused.count("not called") == 2
    assert "parameters: 302 (299 trainable, 3 frozen)" in text
    plain = repr(nn.summary(Net()))  # without inputs there are no shapes
    assert "input" not in plain
    assert "first: Block" in plain


@pytest.mark.parametrize("mode", ["eval", "train", "same"])
def test_nothing_changes(mode: str) -> None:
    model = Net()
    model.first.drop.eval()
    model.stem.weight.grad = retrograd.ones_like(model.stem.weight)
    hooks = []
    model.head.register_forward_hook(lambda *given: hooks.append(1))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    buffers = {name: id(value) for name, value in model.named_buffers()}
    flags = [module.training for module in model.modules()]
    versions = [one._version for one in (*model.parameters(), *model.buffers())]
    random = retrograd.get_rng_state()
    nn.summary(model, input_size=(2, 3, 8, 8), mode=mode)
    assert retrograd.equal(random, retrograd.get_rng_state())
    assert flags == [module.training for module in model.modules()]
    assert all(retrograd.equal(state[name], value) for name, value in model.state_dict().items())
    assert buffers == {name: id(value) for name, value in model.named_buffers()}
    assert versions == [one._version for one in (*model.parameters(), *model.buffers())]
    assert model.head.weight.grad is None
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert len(model.head._forward_hooks) == 1 == len(hooks)


def test_what_fails_changes_nothing_either() -> None:
    model = Net()
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        nn.summary(model, input_size=(2, 7, 8, 8))
    assert model.training
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())


def test_inputs_and_arguments() -> None:
    model = Net()
    given = nn.summary(model, retrograd.ones(2, 3, 8, 8), double=True)
    assert given.flops == nn.summary(model, input_size=[(2, 3, 8, 8)]).flops
    words = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    assert nn.summary(words, input_size=(3, 7), dtypes=retrograd.int64)["1"].outputs == [(3, 7, 2)]
    pair = nn.Bilinear(2, 3, 4)
    assert nn.summary(pair, input_size=[(5, 2), (5, 3)])[""].inputs == [(5, 2), (5, 3)]
    assert nn.summary(nn.Linear(2, 1).double(), input_size=(1, 2), dtypes=[retrograd.float64]).parameter_bytes == 24


def test_depth() -> None:
    model = Net()
    for depth in range(4):
        found = nn.summary(model, input_size=(2, 3, 8, 8), depth=depth)
        assert max(layer.depth for layer in found) == min(depth, 2)
        assert sum(layer.parameters for layer in found) == found.total_parameters
    assert nn.summary(model, depth=1)["first"].parameters == 4 * 4 * 9 + 4 + 8 + 6


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.summary(3), TypeError, "model must be a Module, not int"),
        (
            lambda: nn.summary(Net(), input_size=(2,), mode="fit"),
            ValueError,
            "mode must be one of 'eval', 'train', 'same'",
        ),
        (lambda: nn.summary(Net(), depth=-1), ValueError, "depth must be a number of levels"),
        (lambda: nn.summary(Net(), retrograd.ones(2), input_size=(2,)), ValueError, "input_size or inputs, not both"),
        (lambda: nn.summary(Net(), input_size="ab"), ValueError, "input_size must be a shape"),
        (lambda: nn.summary(Net(), dtypes=[retrograd.float32]), ValueError, "dtypes are those of the inputs"),
        (
            lambda: nn.summary(Net(), input_size=(2, 3), dtypes=[retrograd.int64] * 2),
            ValueError,
            "1 inputs and 2 dtypes",
        ),
        (lambda: nn.summary(nn.LazyLinear(3), input_size=(2, 3)), ValueError, "'weight' has no shape yet"),
    ],
)
def test_what_is_refused(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.oracle
def test_flops_as_torch_counts_them() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    def model(library: Any) -> Any:
        layers = library.nn
        return layers.Sequential(
            layers.Conv2d(3, 6, 3, stride=2),
            layers.ReLU(),
            layers.ConvTranspose2d(6, 4, 2),
            layers.Flatten(2),
            layers.Linear(36, 5),
        )

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch)(torch.ones(2, 3, 12, 12))
    assert nn.summary(model(retrograd), input_size=(2, 3, 12, 12)).flops == counter.get_total_flops()


@pytest.mark.oracle
def test_attention_is_counted_by_torchs_formula() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    def model(library: Any) -> Any:
        return library.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()

    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # torch counts that of CUDA alone
    mapping = {attention: lambda query, key, value, *_, **__: sdpa_flop_count(query, key, value)}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        model(torch)(torch.ones(2, 5, 8))
    assert counter.get_flop_counts()["Global"][attention] > 0
    assert nn.summary(model(retrograd), input_size=(2, 5, 8)).flops == counter.get_total_flops()


class Attention(nn.Module):
    def forward(self, query: Any, key: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=query.shape != key.shape)


@pytest.mark.parametrize(("query", "key"), [((3, 5, 4),) * 2, ((2, 3, 5, 4),) * 2, ((2, 6, 5, 4), (2, 3, 5, 4))])
def test_attention_of_any_heads(query: tuple[int, ...], key: tuple[int, ...]) -> None:
    heads = math.prod(query[:-2])
    products = 2 * (5 * 5 * 4)  # the scores, and the sums of values
    assert nn.summary(Attention(), input_size=[query, key]).flops == heads * products * 2


class Shaped(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.relu()


@pytest.mark.parametrize(
    ("model", "inputs", "error", "size"),
    [
        (nn.Linear(8, 2), [(4, 8)], TypeError, "input_size=(4, 8)"),
        (nn.Conv2d(3, 2, 3), [[3, 8, 8]], TypeError, "input_size=[3, 8, 8]"),
        (Shaped(), [(4, 8)], AttributeError, "input_size=(4, 8)"),
        (nn.Bilinear(2, 2, 3), [(4, 2), (4, 2)], TypeError, "input_size=[(4, 2), (4, 2)]"),
    ],
)
def test_a_shape_for_an_input(model: Any, inputs: Any, error: Any, size: str) -> None:
    with pytest.raises(error) as caught:
        nn.summary(model, *inputs)
    assert str(caught.value).endswith(f"\nHint: inputs are tensors; their shapes go by name: {size}")
    with pytest.raises(TypeError, match=r"must be Tensor, not str$"):
        nn.summary(nn.Linear(8, 2), "a")


def test_the_bytes_of_a_model_without_layers_inside() -> None:
    found = nn.summary(nn.LSTM(3, 4), retrograd.ones(5, 2, 3))
    assert found.output_bytes == 4 * (5 * 2 * 4 + 2 * (2 * 4))  # the output and both states
    attention = nn.summary(nn.MultiheadAttention(8, 2), *[retrograd.ones(5, 2, 8)] * 3)
    assert attention.output_bytes == 4 * (5 * 2 * 8 + 2 * 5 * 5)  # the layer inside is not called


def test_layers_whose_weights_others_use() -> None:
    attention = nn.summary(nn.MultiheadAttention(8, 2), *[retrograd.ones(5, 2, 8)] * 3)
    (row,) = [line for line in str(attention).splitlines() if "out_proj" in line]
    assert "weights used" in row
    assert "not called" not in row
    assert "not called" in next(
        line for line in str(nn.summary(Net(), input_size=(2, 3, 8, 8))).splitlines() if "unused" in line
    )


@pytest.mark.parametrize(
    ("size", "hint"), [(5, "input_size=(1, 5)"), (2.5, ""), (True, ""), ([(2, 3), 4], "(1, 4)"), ("a", "")]
)
def test_sizes_that_are_none(size: Any, hint: str) -> None:
    with pytest.raises(ValueError, match="input_size must be a shape or a list of shapes") as caught:
        nn.summary(nn.Linear(5, 2), input_size=size)
    assert hint in str(caught.value)
