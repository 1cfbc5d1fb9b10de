"""nn at its edges: values at infinity, empty batches, copies, files, and the words of errors."""

from __future__ import annotations

import copy
import io
import pickle
import traceback
from collections import OrderedDict

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

nn, F = retrograd.nn, retrograd.nn.functional

INF = float("inf")


class Tools:
    """What the programs below call, for one library."""

    def __init__(self, torch) -> None:
        self.torch = torch

    def with_grad(self, tensor):
        tensor.grad = self.torch.ones_like(tensor)
        return tensor

    def gradient(self, function, x):
        x.requires_grad_()
        function(x).sum().backward()
        return x.grad

    def gradients(self, module, shape):
        x = self.torch.zeros(shape, requires_grad=True)
        out = module(x)
        out.sum().backward()
        return [out.shape, x.grad.shape, *[p.grad for p in module.parameters()]]

    def hooked(self, value):
        module = self.torch.nn.Linear(2, 2)
        module.register_full_backward_hook(lambda *args: value)
        module(self.torch.ones(1, 2, requires_grad=True)).sum().backward()

    def pickled(self, value):
        return pickle.loads(pickle.dumps(value))


PROGRAMS = """
copy.deepcopy(with_grad(torch.nn.Parameter(torch.ones(2)))).grad
copy.deepcopy(with_grad(torch.ones(2, requires_grad=True))).grad
torch.softmax(torch.tensor([1.0, INF, 3.0]), 0)
torch.log_softmax(torch.tensor([1.0, INF, 3.0]), 0)
torch.log_softmax(torch.tensor([[1.0, INF], [1.0, 2.0]]), 0)[:, 1]
torch.softmax(torch.tensor([[1.0, INF], [1.0, 1.0]]), 1)
torch.softmax(torch.full((300, 300), INF), 1)[0, :2]
torch.log_softmax(torch.full((300, 300), INF), 1)[0, :2]
gradient(torch.nn.functional.mish, torch.tensor([INF, -INF] * 6))
gradient(torch.nn.functional.mish, torch.tensor([INF, -INF] * 6).double())
gradients(torch.nn.Conv1d(2, 3, 2), (0, 2, 4))
gradients(torch.nn.Conv2d(2, 3, 2), (0, 2, 4, 4))
gradients(torch.nn.Conv3d(2, 3, 2), (0, 2, 4, 4, 4))
gradients(torch.nn.Conv2d(2, 4, 2, groups=2, stride=2, padding=1), (0, 2, 4, 4))
gradients(torch.nn.ConvTranspose1d(2, 3, 2), (0, 2, 4))
gradients(torch.nn.ConvTranspose2d(2, 4, 2, groups=2), (0, 2, 4, 4))
gradients(torch.nn.ConvTranspose3d(2, 3, 2), (0, 2, 4, 4, 4))
torch.nn.functional.cross_entropy(torch.zeros(0, 3, 2, 2), torch.zeros(0, 2, 2, dtype=torch.long))
torch.nn.functional.cross_entropy(torch.zeros(0, 3, 2), torch.zeros(0, 2, dtype=torch.long), reduction="sum")
torch.nn.functional.nll_loss(torch.zeros(0, 3, 2, 2), torch.zeros(0, 2, 2, dtype=torch.long), reduction="none")
gradient(lambda x: torch.nn.functional.nll_loss(x, torch.zeros(0, 2, dtype=torch.long)), torch.zeros(0, 3, 2))
gradient(lambda x: torch.nn.functional.ctc_loss(x, torch.tensor([[1, 99], [1, 2]]), (4, 4), (1, 2)), torch.zeros(4, 2, 3)).mul(1e4).round()
gradient(lambda x: torch.nn.functional.ctc_loss(x, torch.tensor([[1, -99], [1, 2]]), (4, 4), (1, 2)), torch.zeros(4, 2, 3)).mul(1e4).round()
pickled(torch.ones(2, requires_grad=True) * 2)
copy.copy(torch.ones(2, requires_grad=True) * 2)
pickled(torch.nn.utils.weight_norm(torch.nn.Linear(2, 3)))(torch.ones(1, 2)).shape
pickled(torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3)))(torch.ones(1, 2)).shape
copy.deepcopy(torch.nn.LSTM(2, 3))(torch.ones(1, 1, 2))[0].shape
torch.nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2).double())
torch.nn.Conv2d(1, 1, 1).double()(torch.ones(1, 1, 2, 2))
torch.nn.Conv2d(1, 1, 1, bias=False)(torch.ones(1, 1, 2, 2).double())
torch.nn.ConvTranspose2d(1, 1, 1)(torch.ones(1, 1, 2, 2).double())
torch.nn.MultiheadAttention(4, 1)(torch.ones(3, 4, 4), *[torch.ones(6, 2, 4)] * 2, need_weights=False)
torch.nn.MultiheadAttention(4, 2)(torch.ones(3, 2, 4), *[torch.ones(6, 4, 4)] * 2)
torch.nn.TransformerDecoderLayer(4, 2)(torch.ones(3, 2, 4), torch.ones(5, 4, 4))
torch.nn.Parameter([1.0])
torch.nn.Parameter("a")
hooked(3)
hooked("abc")
hooked((1, 2))
torch.nn.functional.pad(torch.ones(2, 2), (1, 1), value="a")
torch.nn.functional.pad(torch.ones(2, 2), (1, 1), value=torch.ones(1))
torch.nn.functional.pad(torch.ones(2), (1, 1), value=torch.tensor(2.0))
torch.nn.functional.pad(torch.ones(2, 2), (1, 1, 1), "foo")
torch.nn.functional.pad(torch.ones(2, 2), (1, 1), "foo", value=2)
torch.nn.functional.pad(torch.ones(2), (1, 1), "foo")
torch.nn.functional.pad(torch.ones(2, 2, 2), (1, 1), 3)
setattr(torch.ones(2), "requires_grad", 3)
setattr(torch.ones(2), "requires_grad", None)
torch.ones(2).requires_grad_(3)
torch.nn.ReLU(inplac=1)
torch.nn.SiLU(x=1)
torch.nn.Softmax(x=1)
torch.nn.Conv2d(1, 1)
torch.nn.ConvTranspose2d(1)
torch.nn.LazyConv2d(1)
torch.nn.AvgPool2d()
torch.nn.MaxUnpool2d()
torch.nn.FractionalMaxPool2d()
torch.nn.ReflectionPad2d()
torch.nn.ConstantPad1d(2)
torch.nn.BatchNorm2d()
torch.nn.Embedding(3, 2, max_norm=1)(torch.tensor([1, 5]))
torch.nn.Embedding(3, 2, max_norm=1)(torch.tensor([0, -4]))
torch.nn.Embedding(3, 2, max_norm=1)(torch.tensor([-1]))
torch.nn.Embedding(3, 2, max_norm=1)(torch.tensor([1.0]))
torch.nn.EmbeddingBag(3, 2, max_norm=1)(torch.tensor([[1, 5]]))
torch.nn.EmbeddingBag(3, 2, max_norm=1)(torch.tensor([[-1, 2]]))
torch.nn.LazyLinear(3).share_memory()
torch.nn.Linear(2, 3).share_memory()
torch.func.functional_call(torch.nn.Linear(2, 2), [{"weight": torch.ones(2, 2), "bias": torch.ones(2)}] * 2, (1,))
""".strip().splitlines()

# torch's sentence, and of ours the words that help
HINTS = {
    "torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([1, 3]))": "3 classes, so targets go from 0 to 2",
    "torch.nn.functional.nll_loss(torch.ones(2, 3), torch.tensor([1, -3]))": "3 classes",
    "torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([1.0, 2.0]))": "target.long()",
    "torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(2, 1))": "class indices have shape [2]",
    "torch.nn.functional.binary_cross_entropy(torch.tensor([1.5]), torch.ones(1))": "binary_cross_entropy_with_logits",
    "torch.nn.Linear(2, 2)(torch.ones(2, 2).double())": "x.to(torch.float32), or the layer by model.to(torch.float64)",
    "torch.nn.Linear(2, 2)(torch.ones(2, 2).long())": "x.to(torch.float32).",
    "torch.nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2).double())": "x.to(torch.float32)",
    "torch.nn.Conv2d(1, 1, 1, bias=False)(torch.ones(1, 1, 2, 2).double())": "x.to(torch.float32)",
    "torch.nn.Sequential(torch.nn.LSTM(2, 3), torch.nn.Linear(3, 1))(torch.ones(1, 1, 2))": "(output, state)",
    "torch.nn.Sequential(torch.nn.GRU(2, 3), torch.nn.ReLU())(torch.ones(1, 1, 2))": "(output, state)",
    "torch.nn.MaxPool2d(5)(torch.ones(1, 1, 3, 3))": "a window of [5, 5] does not fit into an input of [3, 3]",
    "torch.nn.MaxPool1d(5)(torch.ones(1, 1, 3))": "a window of [5]",
    "torch.nn.AvgPool3d(5)(torch.ones(1, 1, 3, 3, 3))": "a window of [5, 5, 5]",
    "torch.nn.LayerNorm(4)(torch.ones(2, 3))": "here [3]",
    "torch.nn.Parameter([1.0])": "Parameter(torch.tensor(...))",
}


def scope(library):
    tools = Tools(library)
    names = {name: getattr(tools, name) for name in ("with_grad", "gradient", "gradients", "hooked", "pickled")}
    return {"copy": copy, "INF": INF, **names}


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_torch(program) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program, **scope(retrograd)) == answer(torch, program, **scope(torch))


@pytest.mark.oracle
@pytest.mark.parametrize("program", HINTS)
def test_hint_follows_torch_sentence(program) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program) == answer(torch, program)


@pytest.mark.parametrize("program", HINTS)
def test_hint(program) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError, AttributeError)) as caught:
        eval(program, {"torch": retrograd})
    assert HINTS[program] in str(caught.value).partition("\nHint: ")[2]


def test_softmax_of_infinity() -> None:
    assert F.softmax(retrograd.tensor([1.0, INF, 3.0]), 0).isnan().all()
    assert F.log_softmax(retrograd.tensor([1.0, INF, 3.0]), 0).isnan().all()


def test_copy_of_a_module_has_no_gradients() -> None:
    layer = nn.Linear(2, 1)
    layer(retrograd.ones(1, 2)).sum().backward()
    assert copy.deepcopy(layer).weight.grad is None
    assert layer.weight.grad is not None


def test_hooks_before_loading_are_pickled() -> None:
    layer = pickle.loads(pickle.dumps(nn.utils.spectral_norm(nn.Linear(2, 3))))
    assert layer.load_state_dict(layer.state_dict()).missing_keys == []


# ---- refusals of our own ----
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_deleted_weight_is_named(kind) -> None:
    layer = getattr(nn, kind)(2, 3)
    del layer.weight_hh_l0
    with pytest.raises(RuntimeError, match=f"{kind} has no weight 'weight_hh_l0'"):
        layer(retrograd.ones(1, 1, 2))


@pytest.mark.parametrize("target", [5, -1])
def test_target_of_ctc_out_of_range(target) -> None:
    log_probs = retrograd.zeros(4, 2, 3).log_softmax(2)
    with pytest.raises(IndexError, match=rf"Target {target} is out of bounds.\n.*target 1 of sequence 0.* 3 classes"):
        F.ctc_loss(log_probs, retrograd.tensor([[1, target], [1, 2]]), (4, 4), (2, 2))
    padded = F.ctc_loss(log_probs, retrograd.tensor([[1, target], [1, 2]]), (4, 4), (1, 2))  # beyond its sequence
    assert padded.isfinite()


def test_first_call_shows_no_machinery() -> None:
    @retrograd.overrides.overridable
    def fails(input, other=None):
        raise RuntimeError("of the function itself")

    with pytest.raises(RuntimeError) as caught:
        fails(retrograd.ones(1))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_first_call_shows_no_machinery", "fails"]


# ---- files ----
def test_text_is_no_file_of_ours(tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("words")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 119"):
        retrograd.load(path)
    with pytest.raises(EOFError):
        retrograd.load(io.BytesIO())


MODELS = {
    "layers": ("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.GELU(), nn.Linear(4, 2))", [(2, 3)]),
    "images": (
        "nn.Sequential(nn.Conv2d(2, 3, 3, padding='same'), nn.MaxPool2d(2), nn.ReflectionPad2d(1))",
        [(1, 2, 4, 4)],
    ),
    "LSTM": ("nn.LSTM(3, 4, 2, bidirectional=True)", [(2, 1, 3)]),
    "GRU": ("nn.GRU(3, 4)", [(2, 1, 3)]),
    "encoder": ("nn.TransformerEncoderLayer(4, 2, 8)", [(3, 2, 4)]),
    "decoder": ("nn.TransformerDecoderLayer(4, 2, 8)", [(3, 2, 4), (3, 2, 4)]),
    "attention": ("nn.MultiheadAttention(4, 2)", [(3, 2, 4)] * 3),
    "weight_norm": ("nn.utils.weight_norm(nn.Linear(3, 2))", [(2, 3)]),
    "spectral_norm": ("nn.utils.spectral_norm(nn.Linear(3, 2))", [(2, 3)]),
}


def output(library, model, shapes):
    given = [library.tensor(np.linspace(-1, 1, np.prod(s), dtype=np.float32).reshape(s)) for s in shapes]
    out = model(*given)
    while isinstance(out, tuple):
        out = out[0]
    return out.detach().numpy()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_go_both_ways(name) -> None:
    torch = pytest.importorskip("torch")
    program, shapes = MODELS[name]
    for here, there in ((retrograd, torch), (torch, retrograd), (retrograd, retrograd)):
        model = eval(program, {"nn": here.nn}).eval()
        file = io.BytesIO()
        here.save(model, file)
        file.seek(0)
        loaded = there.load(file, weights_only=False)
        assert isinstance(loaded, there.nn.Module)
        assert repr(loaded) == repr(model)
        np.testing.assert_allclose(output(there, loaded, shapes), output(here, model, shapes), atol=1e-5)
        loaded.load_state_dict(loaded.state_dict())


def test_safe_classes_are_found_by_torch_names() -> None:
    file = io.BytesIO()
    retrograd.save(nn.ReLU(), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.activation\.ReLU"):
        retrograd.load(file)
    file.seek(0)
    with retrograd.serialization.safe_globals([nn.ReLU, set, OrderedDict]):
        assert isinstance(retrograd.load(file), nn.ReLU)
