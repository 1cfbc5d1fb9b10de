"""The transformer against torch: weights from a seed, training, masks; and models as people write them."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import nn
from retrograd.utils.checkpoint import checkpoint
from tests.oracle import Raised, before_the_hint, outcome_and_warnings

QUIET = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def numbers(values: Any) -> list[np.ndarray]:
    return [value.detach().numpy() for value in values]


def assert_close(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=5e-5, err_msg=f"number {k}")


# ---- an encoder ----
def encoder(library: Any, **options: Any) -> Any:
    library.manual_seed(3)
    activation = options.pop("activation", "relu")
    if not isinstance(activation, str):
        activation = activation(library)
    layer = library.nn.TransformerEncoderLayer(8, 2, 16, activation=activation, **options)
    return library.nn.TransformerEncoder(layer, 2, library.nn.LayerNorm(8))


def encoded(library: Any, model: Any, masks: str | None, batched: bool = True) -> Any:
    first = model.layers[0].self_attn.batch_first
    x = library.randn(*((5, 8) if not batched else (3, 5, 8) if first else (5, 3, 8)), requires_grad=True)
    options = {}
    if masks in ("mask", "both"):
        options["mask"] = library.ones(5, 5, dtype=library.bool).triu(1)
    if masks == "causal":
        options["mask"] = library.nn.Transformer.generate_square_subsequent_mask(5)
    if masks in ("padding", "both"):
        places = library.arange(5)
        options["src_key_padding_mask"] = library.stack([places > k + 2 for k in range(3)]) if batched else places > 2
    return x, model(x, **options)


def trained(library: Any, model: Any, masks: str | None, batched: bool = True) -> list[np.ndarray]:
    library.manual_seed(4)
    x, out = encoded(library, model, masks, batched)
    (out * library.arange(out.numel()).reshape(out.shape).sin()).sum().backward()
    return numbers([out, x.grad, *[one.grad for one in model.parameters()], library.rand(1)])


VARIANTS: list[dict[str, Any]] = [
    {},
    {"dropout": 0.0, "activation": "gelu"},
    {"batch_first": True, "dropout": 0.4},
    {"norm_first": True, "layer_norm_eps": 0.01},
    {"bias": False, "batch_first": True, "activation": lambda library: library.tanh},
    {"activation": lambda library: library.nn.GELU(), "norm_first": True, "batch_first": True},
]


@QUIET
@pytest.mark.oracle
@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_trains_as_torch(variant: int) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (encoder(library, **VARIANTS[variant]) for library in (retrograd, torch))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (name, one), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name)
    for masks in (None, "mask", "causal", "padding", "both"):
        for batched in (True, False):
            ours.zero_grad(), theirs.zero_grad()
            assert_close(trained(retrograd, ours, masks, batched), trained(torch, theirs, masks, batched))


@QUIET
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.oracle
@pytest.mark.parametrize("variant", range(len(VARIANTS)))
@pytest.mark.parametrize("masks", [None, "mask", "causal", "padding", "both"])
def test_evaluates_as_torch(variant: int, masks: str | None) -> None:
    """Without gradients torch takes other ways, one of which leaves zeros where there is padding."""
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        model = encoder(library, **VARIANTS[variant]).eval()
        library.manual_seed(4)
        with library.no_grad():
            found.append(numbers([encoded(library, model, masks)[1]]))
    assert_close(*found)


@QUIET
@pytest.mark.oracle
def test_half_precision() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        model = encoder(library, dropout=0.0).to(library.bfloat16)
        library.manual_seed(4)
        x = library.randn(5, 3, 8).to(library.bfloat16)
        out = model(x)
        assert str(out.dtype) == "torch.bfloat16"
        out.float().square().sum().backward()
        found.append(out.detach().float().numpy())
    np.testing.assert_allclose(*found, atol=0.1)


def test_every_order_and_mode() -> None:
    """What torch's fused kernels lack: second derivatives and forward mode."""
    retrograd.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 4, 0.0, "gelu", norm_first=True, dtype=retrograd.float64)
    x = retrograd.randn(3, 1, 4, dtype=retrograd.float64, requires_grad=True)
    assert retrograd.autograd.gradcheck(layer, (x,), check_forward_ad=True)
    assert retrograd.autograd.gradgradcheck(layer, (x,))


def test_vmap_over_models() -> None:
    retrograd.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(4, 2, 8, 0.0) for _ in range(3)]
    parameters, buffers = retrograd.func.stack_module_state(layers)
    x = retrograd.randn(5, 2, 4)
    found = retrograd.vmap(lambda p, b: retrograd.func.functional_call(layers[0], (p, b), (x,)))(parameters, buffers)
    for layer, one in zip(layers, found, strict=True):
        assert retrograd.allclose(layer(x), one, atol=1e-5)


# ---- encoder and decoder ----
def whole(library: Any, **options: Any) -> Any:
    library.manual_seed(3)
    return library.nn.Transformer(8, 2, 2, 2, 16, **options)


def translated(library: Any, model: Any, masks: str | None) -> list[np.ndarray]:
    library.manual_seed(4)
    first = model.batch_first
    x = library.randn(*((3, 4, 8) if first else (4, 3, 8)), requires_grad=True)
    y = library.randn(*((3, 5, 8) if first else (5, 3, 8)), requires_grad=True)
    options: dict[str, Any] = {}
    if masks == "masks":
        options["src_mask"] = library.ones(4, 4, dtype=library.bool).triu(1)
        options["memory_mask"] = library.ones(5, 4, dtype=library.bool).triu(2)
    if masks == "padding":
        hidden = (library.arange(4) > 2).expand(3, 4)
        options |= {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
        options["tgt_key_padding_mask"] = (library.arange(5) > 3).expand(3, 5)
    if masks == "causal":
        options |= {"tgt_mask": model.generate_square_subsequent_mask(5), "tgt_is_causal": True}
    out = model(x, y, **options)
    (out * library.arange(out.numel()).reshape(out.shape).sin()).sum().backward()
    return numbers([out, x.grad, y.grad, *[one.grad for one in model.parameters()], library.rand(1)])


@QUIET
@pytest.mark.oracle
@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "norm_first": True}, {"bias": False, "activation": "gelu", "dropout": 0.0}]
)
@pytest.mark.parametrize("masks", [None, "masks", "padding", "causal"])
def test_translates_as_torch(options: dict[str, Any], masks: str | None) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (whole(library, **options) for library in (retrograd, torch))
    for (name, one), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name)
    assert_close(translated(retrograd, ours, masks), translated(torch, theirs, masks))


def test_custom_parts() -> None:
    class Same(nn.Module):
        def forward(self, x: Any, *args: Any, **options: Any) -> Any:
            return x

    model = nn.Transformer(8, 2, custom_encoder=Same(), custom_decoder=Same())
    x, y = retrograd.randn(4, 3, 8), retrograd.randn(5, 3, 8)
    assert model(x, y) is y


# ---- what is seen ----
@QUIET
@pytest.mark.oracle
def test_repr() -> None:
    torch = pytest.importorskip("torch")
    for options in ({}, {"batch_first": True, "bias": False, "activation": "gelu"}):
        ours, theirs = (whole(library, **options) for library in (retrograd, torch))
        assert repr(ours) == repr(theirs)
    ours, theirs = (
        library.nn.TransformerDecoderLayer(4, 2, 8, activation=library.nn.GELU()) for library in (retrograd, torch)
    )
    assert repr(ours) == repr(theirs)


def complaint(library: Any, program: str) -> Any:
    found, heard = outcome_and_warnings(eval, program, {"torch": library}, words=before_the_hint)
    return found if isinstance(found, Raised) else None, heard


LAYER = "torch.nn.TransformerEncoderLayer(8, {}, 16{})"
PROGRAMS = [
    *(
        f"torch.nn.TransformerEncoder({LAYER.format(heads, more)}, 1{nested})"
        for heads, more, nested in (
            (2, "", ""),
            (2, "", ", enable_nested_tensor=False"),
            (2, ", batch_first=True", ""),
            (1, ", batch_first=True", ""),
            (2, ", batch_first=True, norm_first=True", ""),
            (2, ", batch_first=True, bias=False", ""),
            (2, ", batch_first=True, activation=torch.tanh", ""),
        )
    ),
    LAYER.format(3, ""),
    LAYER.format(2, ", activation='tanh'"),
    "torch.nn.TransformerDecoderLayer(8, 2, activation='silu')",
    "torch.nn.TransformerEncoder(torch.nn.Linear(2, 2), 1)",
    f"{LAYER.format(2, '')}(torch.ones(3, 2, 6))",
    f"{LAYER.format(2, '')}(torch.ones(3, 2, 8), is_causal=True)",
    f"{LAYER.format(2, '')}(torch.ones(3, 2, 8), src_mask=torch.ones(3, 3, dtype=torch.int64))",
    f"{LAYER.format(2, '')}(torch.ones(3, 2, 8), torch.zeros(3, 3), torch.zeros(2, 3) > 0)",
    "torch.nn.Transformer(8, 2, 1, 1, 8)(torch.ones(3, 2, 8), torch.ones(3, 3, 8))",
    "torch.nn.Transformer(8, 2, 1, 1, 8, batch_first=True)(torch.ones(3, 2, 8), torch.ones(2, 3, 8))",
    "torch.nn.Transformer(8, 2, 1, 1, 8)(torch.ones(3, 2, 8), torch.ones(3, 2, 6))",
    "torch.nn.Transformer(8, 3)",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_errors_and_warnings(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert complaint(retrograd, program) == complaint(torch, program)


def test_square_mask() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert nn.Transformer.generate_square_subsequent_mask(3, dtype=retrograd.float64).dtype is retrograd.float64


def test_layers_are_copies() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    weights = [one.linear1.weight for one in (layer, *model.layers)]
    assert len({id(one) for one in weights}) == 4
    assert all(retrograd.equal(weights[0], one) for one in weights)
    twin = copy.deepcopy(model).eval()
    x = retrograd.randn(5, 2, 4)
    assert retrograd.equal(twin(x), model.eval()(x))


# ---- models as people write them ----
class Block(nn.Module):
    """Attention and a small network, each with what it is added to."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        x = self.before(x + self.attention(x, x, x)[0])
        return self.after(x + self.network(x))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_layers_have_the_same_gradients(reentrant: bool) -> None:
    retrograd.manual_seed(0)
    blocks = nn.ModuleList([Block(8, 2) for _ in range(3)])
    x = retrograd.randn(2, 5, 8, requires_grad=True)

    def gradients(keep: bool) -> list[Any]:
        blocks.zero_grad()
        y = x
        for block in blocks:
            y = block(y) if keep else checkpoint(block, y, use_reentrant=reentrant)
        y.square().sum().backward()
        found = [x.grad, *[one.grad.clone() for one in blocks.parameters()]]
        x.grad = None
        return found

    for one, other in zip(gradients(True), gradients(False), strict=True):
        assert retrograd.equal(one, other)


def test_checkpointed_dropout_is_drawn_again() -> None:
    retrograd.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.5)
    x = retrograd.randn(5, 3, 8)
    found = []
    for keep in (True, False):
        retrograd.manual_seed(1)
        layer.zero_grad()
        (layer(x) if keep else checkpoint(layer, x, use_reentrant=False)).square().sum().backward()
        found.append([one.grad for one in layer.parameters()])
    assert all(retrograd.equal(one, other) for one, other in zip(*found, strict=True))


PROGRAM = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(7)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        found, _ = self.attention(x, x, x)
        x = self.norm1(x + found)
        return self.norm2(x + self.network(x))


class Model(nn.Module):
    def __init__(self, layers, width=16, heads=4):
        super().__init__()
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, 3)

    def forward(self, x, again=False):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
        return self.head(x.mean(1))


def flow(model):
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            print(name, "has none")
        else:
            grad, size = parameter.grad.data.norm(2).item(), parameter.data.norm(2).item()
            print(f"{name} {grad:.3e} {size:.3e} {grad / (size + 1e-8):.2e}")
    bad = [n for n, p in model.named_parameters() if p.grad is not None and not torch.isfinite(p.grad).all()]
    print("not finite:", bad or "none")


model = Model(2)
x, y = torch.randn(4, 6, 16), torch.randint(0, 3, (4,))
for again in (False, True):
    model.zero_grad(set_to_none=True)
    loss = nn.CrossEntropyLoss()(model(x, again), y)
    loss.backward()
    print(f"{loss.item():.5f}")
    flow(model)
with torch.inference_mode():
    print(model.eval()(x).softmax(dim=1).sum(1).round(decimals=4))
print(model)
"""


def output_of(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_checkpointed_model_as_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert "not finite: none" in output_of("-m", "retrograd", "run", str(program))


@pytest.mark.oracle
def test_a_checkpointed_model_prints_what_torch_prints(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ours, theirs = output_of("-m", "retrograd", "run", str(program)), output_of(str(program))
    for one, other in zip(ours.splitlines(), theirs.splitlines(), strict=True):
        for word, wanted in zip(one.split(), other.split(), strict=True):
            assert word == wanted or float(word) == pytest.approx(float(wanted), rel=0.02, abs=1e-6), (one, other)
