"""Entries of our own for the modules of torch that its table leaves out."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch.testing import make_tensor
from torch.testing._internal.common_modules import FunctionInput, ModuleInfo, ModuleInput


class Shape(NamedTuple):
    """Stands for a tensor of the wanted dtype."""

    sizes: tuple[int, ...]


class Index(NamedTuple):
    """Stands for integers from zero up to a limit."""

    sizes: tuple[int, ...]
    limit: int


def shape(*sizes: int) -> Shape:
    return Shape(sizes)


def made(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def pool_places(*sizes: int) -> torch.Tensor:
    """Return distinct places, two apart, as max pooling by two would find them."""
    *outer, last = sizes
    return (2 * torch.arange(last)).expand(*outer, last).contiguous()


NN = torch.nn
SAMPLES: dict[str, list[tuple[Any, Any]]] = {
    "AdaptiveLogSoftmaxWithLoss": [
        (made(8, 20, [5, 10]), made(shape(4, 8), Index((4,), 20))),
        (
            made(8, 20, [5, 10, 15], div_value=2.0, head_bias=True),
            made(shape(6, 8), torch.tensor([0, 5, 10, 15, 19, 2])),
        ),
        (made(8, 20, [5]), made(shape(8), torch.tensor(7))),
    ],
    "ChannelShuffle": [(made(2), made(shape(2, 6, 3, 3))), (made(3), made(shape(1, 6, 2, 2)))],
    "CosineSimilarity": [
        (made(), made(shape(3, 4, 2), shape(3, 4, 2))),
        (made(dim=-1, eps=0.1), made(shape(3, 4), shape(4))),
        (made(dim=0), made(shape(4), shape(4))),
    ],
    "CrossMapLRN2d": [(made(3, 0.1, 0.6, 2), made(shape(2, 5, 4, 4)))],
    "EmbeddingBag": [
        (made(10, 3), made(Index((2, 4), 10))),
        (made(10, 3, mode="sum"), made(Index((6,), 10), torch.tensor([0, 2, 2]))),
        (made(10, 3, mode="sum", padding_idx=1), made(Index((2, 4), 10), per_sample_weights=shape(2, 4))),
        (made(10, 3, mode="max"), made(Index((6,), 10), torch.tensor([0, 3]))),
        (made(10, 3, include_last_offset=True), made(Index((6,), 10), torch.tensor([0, 3, 6]))),
        (made(10, 3, max_norm=0.5, norm_type=1.0), made(Index((2, 4), 10))),
    ],
    "Flatten": [
        (made(), made(shape(2, 3, 4))),
        (made(0, -2), made(shape(2, 3, 4))),
        (made(start_dim=2), made(shape(2, 3, 4, 2))),
    ],
    "Fold": [
        (made((4, 5), (2, 3)), made(shape(2, 12, 9))),
        (made((6, 6), 2, dilation=2, padding=1, stride=2), made(shape(8, 9))),
    ],
    "Identity": [(made(), made(shape(2, 3))), (made(54, unused_argument1=0.1), made(shape(2)))],
    "LazyLinear": [(made(3), made(shape(2, 4))), (made(3, bias=False), made(shape(4)))],
    "MaxUnpool1d": [
        (made(2, stride=2), made(shape(2, 3, 4), pool_places(2, 3, 4))),
        (made(2), made(shape(3, 4), pool_places(3, 4), output_size=(9,))),
    ],
    "MaxUnpool2d": [
        (made(2, stride=2), made(shape(2, 3, 2, 3), pool_places(2, 3, 6).reshape(2, 3, 2, 3))),
        (made(2), made(shape(3, 2, 2), pool_places(3, 4).reshape(3, 2, 2), output_size=(5, 5))),
    ],
    "MaxUnpool3d": [(made(2), made(shape(1, 2, 2, 2, 2), pool_places(1, 2, 8).reshape(1, 2, 2, 2, 2)))],
    "NLLLoss2d": [(made(), made(shape(2, 3, 4, 4), Index((2, 4, 4), 3)))],
    "PairwiseDistance": [
        (made(), made(shape(3, 4), shape(3, 4))),
        (made(p=1.0, keepdim=True), made(shape(3, 4), shape(4))),
        (made(p=3, eps=0.01), made(shape(4), shape(4))),
    ],
    "PixelShuffle": [(made(2), made(shape(2, 8, 3, 3))), (made(3), made(shape(9, 2, 2)))],
    "PixelUnshuffle": [(made(2), made(shape(2, 2, 4, 6))), (made(3), made(shape(1, 6, 3)))],
    "TransformerDecoder": [
        (made(("layer", 4, 2, 8, 0.0), 2), made(shape(3, 2, 4), shape(5, 2, 4))),
        (made(("layer", 4, 2, 8, 0.3), 1), made(shape(3, 2, 4), shape(5, 2, 4))),
    ],
    "TripletMarginLoss": [
        (made(), made(shape(3, 4), shape(3, 4), shape(3, 4))),
        (made(margin=2.0, p=1.0, swap=True, reduction="sum"), made(shape(3, 4), shape(3, 4), shape(3, 4))),
        (made(reduction="none"), made(shape(4), shape(4), shape(4))),
    ],
    "TripletMarginWithDistanceLoss": [
        (made(), made(shape(3, 4), shape(3, 4), shape(3, 4))),
        (made(margin=0.5, swap=True, reduction="none"), made(shape(3, 4), shape(3, 4), shape(3, 4))),
    ],
    "Unflatten": [(made(1, (2, 3)), made(shape(2, 6))), (made(-1, (2, -1)), made(shape(3, 8)))],
    "Unfold": [
        (made((2, 3)), made(shape(2, 2, 4, 5))),
        (made(2, dilation=2, padding=1, stride=2), made(shape(2, 6, 6))),
    ],
    "Upsample": [
        (made(scale_factor=2), made(shape(1, 2, 3))),
        (made(size=(5, 4)), made(shape(1, 2, 3, 3))),
        (made(scale_factor=1.5, mode="bilinear"), made(shape(1, 2, 4, 4))),
        (made(size=7, mode="linear", align_corners=True), made(shape(1, 2, 4))),
        (made(scale_factor=2, mode="bicubic", align_corners=False), made(shape(1, 1, 3, 3))),
        (made(scale_factor=(1, 2, 2), mode="trilinear"), made(shape(1, 1, 2, 2, 3))),
        (made(scale_factor=1.3, mode="bilinear", recompute_scale_factor=True), made(shape(1, 1, 4, 4))),
    ],
    "UpsamplingBilinear2d": [(made(scale_factor=2), made(shape(1, 2, 3, 3))), (made((4, 5)), made(shape(1, 1, 2, 3)))],
    "UpsamplingNearest2d": [(made(scale_factor=2), made(shape(1, 2, 3, 3))), (made(size=5), made(shape(1, 1, 2, 3)))],
    "RReLU": [(made(), made(shape(4, 5))), (made(0.1, 0.2), made(shape(3)))],
    "Hardsigmoid": [(made(), made(shape(4, 5))), (made(), made(shape()))],
    "Dropout": [(made(), made(shape(4, 5))), (made(0.2), made(shape(3))), (made(1.0), made(shape(3)))],
    "Dropout1d": [(made(), made(shape(2, 4, 5))), (made(0.2), made(shape(4, 3)))],
    "Dropout2d": [(made(), made(shape(2, 4, 5, 2))), (made(0.2), made(shape(2, 4, 3)))],
    "Dropout3d": [(made(), made(shape(2, 4, 5, 2, 2))), (made(0.2), made(shape(4, 3, 2, 2)))],
    "AlphaDropout": [(made(), made(shape(4, 5))), (made(0.2), made(shape(3)))],
    "FeatureAlphaDropout": [(made(), made(shape(4, 5, 3))), (made(0.2), made(shape(2, 3, 2, 2)))],
}
for _rank in (1, 2, 3):
    _inner = (4, 3, 2)[:_rank]
    SAMPLES[f"LazyBatchNorm{_rank}d"] = [
        (made(), made(shape(2, 3, *_inner))),
        (made(affine=False, momentum=None), made(shape(2, 3, *_inner))),
    ]
    SAMPLES[f"LazyInstanceNorm{_rank}d"] = [
        (made(), made(shape(2, 3, *_inner))),
        (made(affine=True, track_running_stats=True), made(shape(2, 3, *_inner))),
    ]


def entries() -> list[Any]:
    """Return the entries, in the form of torch's."""
    return [
        ModuleInfo(
            getattr(NN, name), module_inputs_func=functools.partial(_inputs, samples), train_and_eval_differ=True
        )
        for name, samples in SAMPLES.items()
    ]


def _inputs(samples: Any, info: Any, device: Any, dtype: Any, requires_grad: bool, training: bool) -> list[Any]:
    def filled(value: Any) -> Any:
        if isinstance(value, Shape):
            return make_tensor(value.sizes, device=device, dtype=dtype, requires_grad=requires_grad)
        if isinstance(value, Index):
            return torch.randint(0, value.limit, value.sizes)
        if isinstance(value, tuple) and value and value[0] == "layer":
            return NN.TransformerDecoderLayer(*value[1:], dtype=dtype)
        return value

    def inputs(given: Any) -> Any:
        args, kwargs = given
        return FunctionInput(*(filled(a) for a in args), **{k: filled(v) for k, v in kwargs.items()})

    return [ModuleInput(constructor_input=inputs(c), forward_input=inputs(f)) for c, f in samples]
