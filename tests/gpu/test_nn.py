"""Modules on CUDA arrays: outputs, gradients and buffers as on the CPU.

The functions of nn.functional stand in the table of operations, which test_operations.py runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd import nn

if not torch.cuda.is_available():
    pytest.skip("needs CuPy and a CUDA device", allow_module_level=True)

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)


def real(*sizes: int) -> np.ndarray:
    return RNG.standard_normal(sizes).astype(np.float32)


def positive(*sizes: int) -> np.ndarray:
    return RNG.uniform(0.1, 0.9, sizes).astype(np.float32)


def below(limit: int, *sizes: int) -> np.ndarray:
    return RNG.integers(0, limit, sizes)


def signs(*sizes: int) -> np.ndarray:
    return np.where(RNG.random(sizes) < 0.5, -1, 1)


# by name: how the module is made, and what it is called with
CALLS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    # convolution
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (real(2, 4, 9),)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, padding="same", dilation=2), (real(2, 4, 7, 8),)),
    "Conv2d_circular": (lambda: nn.Conv2d(3, 5, 3, padding=1, padding_mode="circular"), (real(2, 3, 6, 6),)),
    "Conv2d_depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), (real(2, 4, 6, 6),)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, bias=False), (real(2, 2, 4, 4, 4),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, groups=2), (real(2, 4, 5),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1), (real(2, 4, 5, 5),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2), (real(1, 2, 3, 3, 3),)),
    "Unfold": (lambda: nn.Unfold(2, stride=2), (real(2, 3, 6, 6),)),
    "Fold": (lambda: nn.Fold((4, 5), (2, 3)), (real(2, 12, 9),)),
    # pooling, resizing, padding, rearranging
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), (real(2, 3, 9),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, return_indices=True), (real(2, 3, 6, 6),)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), (real(2, 3, 4, 4, 4),)),
    "MaxUnpool2d": (lambda: nn.MaxUnpool2d(2), (real(1, 1, 2, 2), np.array([[[[0, 2], [9, 11]]]]))),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), (real(2, 3, 7, 7),)),
    "AvgPool3d": (lambda: nn.AvgPool3d(2), (real(2, 3, 4, 4, 4),)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), (real(2, 3, 6, 6),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), (real(2, 3, 7, 7),)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((3, 2)), (real(2, 3, 7, 7),)),
    "Upsample_nearest": (lambda: nn.Upsample(scale_factor=2), (real(2, 3, 4, 4),)),
    "Upsample_bilinear": (lambda: nn.Upsample(size=(7, 5), mode="bilinear"), (real(2, 3, 4, 4),)),
    "Upsample_bicubic": (lambda: nn.Upsample(size=(7, 5), mode="bicubic", align_corners=True), (real(2, 3, 4, 4),)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(2), (real(2, 3, 4, 4),)),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d((1, 2, 0, 1)), (real(2, 3, 4, 4),)),
    "CircularPad2d": (lambda: nn.CircularPad2d(1), (real(2, 3, 4, 4),)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, -1, 2, 0), 3.5), (real(2, 3, 4, 4),)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (real(2, 8, 3, 3),)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), (real(2, 2, 4, 4),)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), (real(2, 6, 3, 3),)),
    # linear layers, activations, embeddings
    "Linear": (lambda: nn.Linear(4, 3), (real(5, 4),)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), (real(2, 3), real(2, 4))),
    "Embedding": (lambda: nn.Embedding(10, 4, padding_idx=2), (below(10, 3, 5),)),
    "Embedding_max_norm": (lambda: nn.Embedding(10, 4, max_norm=0.5), (below(10, 3, 5),)),
    "EmbeddingBag_mean": (lambda: nn.EmbeddingBag(10, 4), (below(10, 3, 5),)),
    "EmbeddingBag_max": (lambda: nn.EmbeddingBag(10, 4, mode="max"), (below(10, 8), np.array([0, 3, 3, 6]))),
    "PReLU": (lambda: nn.PReLU(3), (real(2, 3, 4),)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), (real(2, 5, 8),) * 3),
    # normalisation
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (real(5, 3),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, momentum=None), (real(4, 3, 5, 5),)),
    "BatchNorm2d_eval": (lambda: nn.BatchNorm2d(3).eval(), (real(4, 3, 5, 5),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (real(4, 3, 5, 5),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6), (real(3, 6, 4),)),
    "LayerNorm": (lambda: nn.LayerNorm((4, 5)), (real(3, 4, 5),)),
    "RMSNorm": (lambda: nn.RMSNorm(5), (real(3, 4, 5),)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), (real(2, 5, 4, 4),)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), (real(2, 5, 4, 4),)),
    # losses
    "L1Loss": (nn.L1Loss, (real(3, 4), real(3, 4))),
    "MSELoss": (nn.MSELoss, (real(3, 4), real(3, 4))),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss(beta=0.5), (real(3, 4), real(3, 4))),
    "HuberLoss": (lambda: nn.HuberLoss(delta=0.5), (real(3, 4), real(3, 4))),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), (real(5, 4), below(4, 5))),
    "CrossEntropyLoss_probabilities": (nn.CrossEntropyLoss, (real(5, 4), positive(5, 4))),
    "NLLLoss": (nn.NLLLoss, (real(5, 4, 3), below(4, 5, 3))),
    "BCELoss": (nn.BCELoss, (positive(5, 4), positive(5, 4))),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, (real(5, 4), positive(5, 4))),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), (real(5, 4), positive(5, 4))),
    "CTCLoss": (nn.CTCLoss, (real(9, 3, 5), below(4, 3, 4) + 1, np.array([9, 8, 7]), np.array([4, 3, 2]))),
    "PoissonNLLLoss": (lambda: nn.PoissonNLLLoss(full=True), (real(5, 4), positive(5, 4))),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, (real(5, 4), real(5, 4), positive(5, 4))),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, (real(5, 4), signs(5, 4))),
    "MultiMarginLoss": (nn.MultiMarginLoss, (real(5, 4), below(4, 5))),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, (real(2, 4), np.array([[1, 0, -1, 2], [3, -1, 0, 0]]))),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, (real(5, 4), positive(5, 4))),
    "SoftMarginLoss": (nn.SoftMarginLoss, (real(5, 4), signs(5, 4))),
    "MarginRankingLoss": (nn.MarginRankingLoss, (real(5), real(5), signs(5))),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, (real(5, 4), real(5, 4), signs(5))),
    "TripletMarginLoss": (nn.TripletMarginLoss, (real(5, 4), real(5, 4), real(5, 4))),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0),
        (real(4, 8), np.array([0, 7, 12, 19])),
    ),
    # recurrent layers
    "RNN": (lambda: nn.RNN(4, 5, 2, nonlinearity="relu", bidirectional=True), (real(3, 2, 4),)),
    "LSTM": (lambda: nn.LSTM(4, 5, 2, batch_first=True), (real(2, 3, 4),)),
    "LSTM_projected": (lambda: nn.LSTM(4, 5, proj_size=3, bidirectional=True), (real(3, 2, 4),)),
    "GRU": (lambda: nn.GRU(4, 5, bidirectional=True), (real(3, 2, 4),)),
    "RNNCell": (lambda: nn.RNNCell(4, 5), (real(2, 4), real(2, 5))),
    "LSTMCell": (lambda: nn.LSTMCell(4, 5), (real(2, 4),)),
    "GRUCell": (lambda: nn.GRUCell(4, 5), (real(2, 4), real(2, 5))),
    # transformer
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0), (real(5, 2, 8),)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0), (real(5, 2, 8), real(4, 2, 8))),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True), (real(2, 5, 8), real(2, 4, 8))),
}
ACTIVATIONS = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]
CALLS |= {
    name: (lambda name=name: getattr(nn, name)(**({"dim": 1} if "oftm" in name else {})), (real(3, 4),))
    for name in ACTIVATIONS
}


def tensors(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for one in result for t in tensors(one)] if isinstance(result, (tuple, list)) else []


def run(name: str, device: str) -> list[np.ndarray]:
    """Return the outputs, the gradients of inputs and parameters, and the buffers."""
    make, given = CALLS[name]
    torch.manual_seed(0)
    module = make().to(device)
    inputs = [torch.tensor(array).to(device) for array in given]
    inputs = [t.requires_grad_() if t.is_floating_point() else t for t in inputs]
    outputs = tensors(module(*inputs))
    assert all(o.device.type == device for o in outputs)
    sum(o.square().sum() for o in outputs if o.requires_grad).backward()
    grads = [t.grad for t in (*inputs, *module.parameters()) if t.grad is not None]
    assert all(g.device.type == device for g in grads)
    return [t.detach().cpu().numpy() for t in (*outputs, *grads, *module.buffers())]


@pytest.mark.parametrize("name", CALLS)
def test_a_module_does_as_on_the_cpu(name: str) -> None:
    expected, found = run(name, "cpu"), run(name, "cuda")
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


DRAWING = {"Dropout": 2, "Dropout1d": 3, "Dropout2d": 4, "Dropout3d": 5, "AlphaDropout": 2, "FeatureAlphaDropout": 4}


@pytest.mark.parametrize("name", [*DRAWING, "RReLU"])
def test_a_module_that_draws(name: str) -> None:
    module = getattr(nn, name)()
    x = torch.tensor(real(2, 3, 4, 4, 4)[(..., *[0] * (5 - DRAWING.get(name, 2)))]).to("cuda").requires_grad_()
    out = module(x)
    out.sum().backward()
    assert out.device.type == x.grad.device.type == "cuda"
    assert module.eval()(x).shape == x.shape
