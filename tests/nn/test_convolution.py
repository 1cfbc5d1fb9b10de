"""Convolution layers: what they compute, print and refuse, and the gradients of each sample."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import retrograd
from retrograd._ops import convolution_kernels as kernels
from tests.oracle import Raised, answer

LAYERS = (
    "Conv1d(4, 6, 3)",
    "Conv1d(4, 6, 3, padding='same', dilation=2, bias=False)",
    "Conv2d(4, 6, 3)",
    "Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=2)",
    "Conv2d(4, 4, 3, padding=1, groups=4)",
    "Conv2d(4, 6, 3, padding=2, padding_mode='reflect')",
    "Conv2d(4, 6, 2, padding='same', padding_mode='circular')",
    "Conv2d(4, 6, 3, padding=(2, 1), padding_mode='replicate', bias=False)",
    "Conv3d(4, 2, 2, stride=(1, 2, 1))",
    "ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)",
    "ConvTranspose2d(4, 6, 3)",
    "ConvTranspose2d(4, 6, (3, 2), padding=1, groups=2, dilation=2, bias=False)",
    "ConvTranspose3d(4, 2, 2, stride=2)",
    "Unfold((2, 3), dilation=1, padding=1, stride=2)",
    "LazyConv1d(6, 3)",
    "LazyConv2d(6, 3, bias=False, groups=2)",
    "LazyConvTranspose2d(6, 3, stride=2)",
)

REFUSED = """
F.conv2d(z(1, 3, 5, 5), z(2, 4, 3, 3))
F.conv2d(z(3, 5, 5), z(2, 4, 3, 3))
F.conv2d(z(1, 3, 2, 2), z(2, 3, 3, 3))
F.conv2d(z(1, 3, 2, 5), z(2, 3, 3, 3), padding=(0, 1), dilation=2)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), padding=-1)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), stride=0)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), dilation=0)
F.conv2d(z(1, 4, 5, 5), z(3, 2, 3, 3), groups=2)
F.conv2d(z(1, 4, 5, 5), z(4, 3, 3, 3), groups=2)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), groups=0)
F.conv2d(z(5, 5), z(2, 3, 3, 3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3))
F.conv1d(z(1, 3, 5, 5), z(2, 3, 3))
F.conv3d(z(5, 5), z(2, 3, 3, 3, 3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), z(3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), stride=(1, 2, 3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), padding=[1, 2, 3])
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), stride=())
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), padding='foo')
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), padding='same', stride=2)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3, dtype=torch.float64))
F.conv2d(z(2, 3, 5, 5), z(2, 3, 3, 3, dtype=torch.float64))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), z(2, dtype=torch.float64))
F.conv2d(z(1, 3, 5, 5, dtype=torch.bool), z(2, 3, 3, 3, dtype=torch.bool))
F.conv2d(z(1, 3, 5, 5, dtype=torch.complex64), z(2, 3, 3, 3))
F.conv2d(z(1, 3, 0, 5), z(2, 3, 3, 3))
F.conv2d(z(1, 3, 5, 5), z(0, 3, 3, 3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 0, 3))
F.conv2d(1, z(2, 3, 3, 3))
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), 1)
F.conv2d(z(1, 3, 5, 5), z(2, 3, 3, 3), stride=1.5)
F.conv_transpose2d(z(1, 3, 5, 5), z(2, 4, 3, 3))
F.conv_transpose2d(z(1, 3, 5, 5), z(3, 4, 3, 3), z(3))
F.conv_transpose2d(z(1, 3, 5, 5), z(3, 4, 3, 3), output_padding=1)
F.conv_transpose2d(z(1, 3, 5, 5), z(3, 4, 3, 3), output_padding=-1)
F.conv_transpose2d(z(1, 3, 5, 5), z(3, 4, 3, 3), padding=4)
F.conv_transpose2d(z(1, 3, 0, 5), z(3, 4, 3, 3))
F.conv_transpose2d(z(1, 4, 5, 5), z(4, 3, 3, 3), padding='same')
F.conv_tbc(z(5, 2, 3), z(3, 2, 4), z(4), 1)
F.conv_tbc(z(5, 2), z(3, 2, 4), z(4), 1)
F.conv_tbc(z(5, 2, 3), z(3, 3, 4), z(5), 1)
F.unfold(z(5, 5), 3)
F.unfold(z(1, 3, 5, 5), 6)
F.unfold(z(1, 3, 5, 5), 0)
F.unfold(z(1, 3, 5, 5), 3, stride=0)
F.unfold(z(1, 3, 5, 5), 3, padding=-1)
F.unfold(z(1, 3, 5, 5), (1, 2, 3))
F.unfold(z(1, 0, 5, 5), 3)
F.unfold(z(1, 3, 5, 5, dtype=torch.int64), 3)
F.fold(z(1, 27, 8), (5, 5), 3)
F.fold(z(1, 26, 9), (5, 5), 3)
F.fold(z(27), (5, 5), 3)
F.fold(z(1, 27, 9), (5, 5, 5), 3)
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(4, 3, 3, groups=2)
nn.Conv2d(3, 4, 3, groups=0)
nn.Conv2d(3, 4, 3, padding='same', stride=2)
nn.ConvTranspose2d(3, 4, 3, padding_mode='reflect')
nn.Conv2d(4, 4, (3, 3, 3))(z(1, 4, 5, 5))
nn.ConvTranspose2d(3, 4, 3, stride=2)(z(1, 3, 5, 5), output_size=(14, 14))
nn.ConvTranspose2d(3, 4, 3, stride=2)(z(1, 3, 5, 5), output_size=(12,))
nn.LazyConv2d(4, 3)(z(2, 3))
nn.LazyConv2d(4, 3, groups=2)(z(1, 3, 5, 5))
""".strip().splitlines()

ANSWERED = """
F.conv2d(torch.arange(27).reshape(1, 3, 3, 3), torch.ones(2, 3, 2, 2, dtype=torch.int64))
F.conv2d(torch.full((1, 1, 3, 3), 200, dtype=torch.uint8), torch.ones(1, 1, 2, 2, dtype=torch.uint8))
F.conv_transpose1d(torch.arange(6).reshape(1, 2, 3), torch.ones(2, 1, 2, dtype=torch.int64), stride=2)
F.conv2d(z(0, 3, 5, 5), z(2, 3, 3, 3))
F.conv_transpose2d(z(0, 3, 5, 5), z(3, 2, 3, 3))
F.conv2d(torch.ones(1, 1, 3, 3, requires_grad=True), torch.ones(2, 1, 2, 2), stride=(1,))
F.conv2d(torch.ones(1, 3, 3, requires_grad=True), torch.ones(2, 1, 2, 2))
F.conv1d(torch.ones(1, 1, 3, dtype=torch.bfloat16), torch.ones(2, 1, 2, dtype=torch.bfloat16))
torch.convolution(torch.ones(1, 1, 3, 3), torch.ones(1, 2, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [1, 1], 1)
torch.conv2d(input=torch.ones(1, 1, 3, 3), weight=torch.ones(1, 1, 2, 2), bias=torch.ones(1))
F.unfold(torch.ones(1, 3, 3, requires_grad=True), 2)
F.fold(torch.ones(1, 4, 4, requires_grad=True), 3, 2)
nn.ConvTranspose2d(3, 4, 3, stride=2)(z(3, 5, 5), output_size=(12, 11)).shape
nn.ConvTranspose2d(3, 4, 3, stride=2)(z(1, 3, 5, 5), output_size=(1, 4, 12, 12)).shape
[nn.LazyConv2d(4, 3), repr(nn.LazyConv2d(4, 3).weight), nn.LazyConvTranspose1d(4, 3, bias=False)]
""".strip().splitlines()


def scope(library):
    return {"F": library.nn.functional, "nn": library.nn, "z": library.zeros}


@pytest.mark.oracle
@pytest.mark.parametrize("program", REFUSED + ANSWERED)
def test_answers_as_torch(program) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (answer(library, program, **scope(library)) for library in (retrograd, torch))
    assert ours == theirs
    assert isinstance(ours, Raised) == (program in REFUSED)


@pytest.mark.oracle
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("unbatched", [False, True])
def test_layers_as_torch(layer, unbatched) -> None:
    """Same seed, same weights; same results and gradients; same state_dict and repr."""
    torch = pytest.importorskip("torch")
    rank = next((int(c[0]) for c in (layer.split("d(")[0][-1],) if c.isdigit()), 2)
    shape = (4, *(6, 7, 5)[:rank]) if unbatched else (2, 4, *(6, 7, 5)[:rank])
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    results = []
    for library in (retrograd, torch):
        library.manual_seed(3)
        module = eval(f"nn.{layer}", {"nn": library.nn})
        x = library.tensor(data, requires_grad=True)
        out = module(x)
        (out * out).sum().backward()
        state = {name: value.detach().numpy() for name, value in module.state_dict().items()}
        grads = {name: value.grad.numpy() for name, value in module.named_parameters()}
        results.append((repr(module), state, out.detach().numpy(), grads, x.grad.numpy()))
    (text, state, out, grads, dx), theirs = results
    assert text == theirs[0]
    assert list(state) == list(theirs[1])
    for name, value in state.items():
        assert np.array_equal(value, theirs[1][name]), name
        assert np.allclose(grads[name], theirs[3][name], rtol=1e-4, atol=1e-3), name
    assert np.allclose(out, theirs[2], rtol=1e-5, atol=1e-5)
    assert np.allclose(dx, theirs[4], rtol=1e-4, atol=1e-4)


def per_sample(model, data):
    """Return the gradients of each sample by vmap, and in a loop."""
    from retrograd.func import functional_call, grad, vmap

    params = {name: value.detach() for name, value in model.named_parameters()}

    def loss(params, x):
        return (functional_call(model, params, (x.unsqueeze(0),)) ** 2).sum()

    together = vmap(grad(loss), in_dims=(None, 0))(params, data)
    alone = [grad(loss)(params, x) for x in data]
    return together, {name: retrograd.stack([one[name] for one in alone]) for name in params}


@pytest.mark.parametrize("options", [{}, {"groups": 2, "stride": 2}, {"dilation": 2, "padding": 1}])
def test_gradients_of_each_sample(options) -> None:
    nn = retrograd.nn
    model = nn.Sequential(nn.Conv2d(4, 6, 3, **options), nn.ConvTranspose2d(6, 2, 2)).double()
    together, alone = per_sample(model, retrograd.randn(5, 4, 8, 8, dtype=retrograd.float64))
    for name, value in together.items():
        assert retrograd.allclose(value, alone[name]), name


@pytest.mark.parametrize("part", [1, 100, 1000])
def test_batches_in_parts(monkeypatch, part) -> None:
    """Batches are cut where their patches are many, and shared out among threads: the results do not depend on it."""
    F = retrograd.nn.functional  # noqa: N806 - torch's name
    made = []
    for size, worth in ((1 << 19, 1 << 17), (part, 0)):
        monkeypatch.setattr(kernels, "PART", size)
        monkeypatch.setattr(kernels, "WORTH_THREADS", worth)
        retrograd.manual_seed(0)
        x, w, b = (retrograd.randn(s, dtype=retrograd.float64) for s in ((7, 4, 6, 9), (6, 2, 3, 3), (6,)))
        x, w, b = (t.requires_grad_() for t in (x, w, b))
        out = F.conv2d(x, w, b, padding=1, groups=2)
        back = F.conv_transpose2d(out, w, groups=2, stride=2)
        made.append([out, back, *retrograd.autograd.grad(back.sin().sum(), (x, w, b))])
    for one, other in zip(*made, strict=True):
        assert retrograd.allclose(one, other)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": (2, 1), "padding": (0, 2)}])
def test_gradients_of_many_small_images(monkeypatch, options) -> None:
    """Short rows of many images are put together images last: the gradient is that of each image alone."""
    F = retrograd.nn.functional  # noqa: N806 - torch's name
    retrograd.manual_seed(0)
    x, w = (retrograd.randn(s, dtype=retrograd.float64, requires_grad=True) for s in ((20, 3, 8, 7), (5, 3, 3, 3)))
    monkeypatch.setattr("retrograd._native.nests.NATIVE", 1 << 40)  # for whose kernels all images are alike
    used = []
    together = kernels._input_of_part
    monkeypatch.setattr(kernels, "_input_of_part", lambda *args: (used.append(1), together(*args)))
    (whole,) = retrograd.autograd.grad(F.conv2d(x, w, **options).sin().sum(), x)
    assert used
    alone = [retrograd.autograd.grad(F.conv2d(one[None], w, **options).sin().sum(), x)[0] for one in x]
    assert retrograd.allclose(whole, sum(alone))


def test_kept_patches_are_not_needed(monkeypatch) -> None:
    """The gradient of the weight is the same whether the forward kept its patches or not."""
    grads = []
    for kept in (1 << 19, 0):
        monkeypatch.setattr(kernels, "KEPT", kept)
        retrograd.manual_seed(0)
        layer = retrograd.nn.Conv2d(3, 5, 3)
        layer(retrograd.randn(4, 3, 9, 9)).square().sum().backward()
        grads.append(layer.weight.grad)
    assert retrograd.equal(*grads)


def test_channels_last_input_is_hinted_at() -> None:
    with pytest.raises(RuntimeError, match=r"Hint: channels come second here.*input.permute\(0, 3, 1, 2\)"):
        retrograd.nn.Conv2d(3, 4, 3)(retrograd.zeros(1, 8, 8, 3))


def test_lazy_layers_become_ordinary() -> None:
    nn = retrograd.nn
    layer = nn.LazyConv2d(4, 3)
    assert layer.has_uninitialized_params()
    copied = copy.deepcopy(layer)
    layer(retrograd.zeros(2, 5, 6, 6))
    assert type(layer) is nn.Conv2d
    assert layer.in_channels == 5
    assert layer.weight.shape == (4, 5, 3, 3)
    copied.load_state_dict(layer.state_dict())
    assert retrograd.equal(copied.weight, layer.weight)
