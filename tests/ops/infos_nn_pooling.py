"""Pooling, and putting back what it took."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd._core.primitive import vocabulary as xp
from retrograd._ops.pooling import Window
from tests.ops.opinfo import F, K, Op, S, Sample

OPS: list[Op] = []


def op(name: str, *samples: Sample, **options: Any) -> None:
    """Add a function of nn.functional."""
    OPS.append(Op(name, lambda torch, *args, **kw: getattr(torch.nn.functional, name)(*args, **kw), samples, **options))


MANY_STEPS = {"same_graph": False}  # torch adds an axis, and takes it away again
MAX = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 1, "dilation": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True},
)
op("max_pool1d", *[S(F(2, 2, 6), **kw) for kw in MAX], S(F(2, 6), 2), S(F(2, 5), 2, return_indices=True), **MANY_STEPS)
op(
    "max_pool2d",
    *[S(F(1, 2, 6, 5), **kw) for kw in MAX],
    S(F(2, 4, 6), 2),
    S(F(2, 4, 6), (1, 3)),
    S(F(2, 4, 6), (2, 1), (1, 2)),
    S(F(0, 1, 4, 4), 2),
    S(F(4, 3, 2, layout="transposed"), 2),
    S(F(1, 9, 9), 9, 1, 4),  # windows of more than 64 elements
)
op("max_pool3d", *[S(F(1, 1, 4, 5, 4), **kw) for kw in MAX[:2]], S(F(1, 2, 4, 2), 2), S(F(1, 3, 3, 4), (1, 2, 3)))
AVERAGE = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True},
)
op("avg_pool1d", *[S(F(2, 2, 6), **kw) for kw in AVERAGE], S(F(2, 6), 6), **MANY_STEPS)
op(
    "avg_pool2d",
    *[S(F(1, 2, 5, 6), **kw) for kw in AVERAGE],
    S(F(2, 4, 6), 2),
    S(F(2, 4, 6), (4, 3), divisor_override=5),
    S(F(0, 1, 4, 4), 2),
    S(F(4, 3, 2, layout="transposed"), 2),
)
op(
    "avg_pool3d",
    S(F(1, 1, 4, 5, 4), 2),
    S(F(1, 4, 4, 5), 3, 1, 1, count_include_pad=False),
    S(F(1, 4, 4, 4), (2, 1, 3), divisor_override=2),
    oracle_dtypes=("float64", "float32"),
)
op("adaptive_avg_pool1d", S(F(2, 2, 6), 3), S(F(2, 5), 3), S(F(2, 2), 5), S(F(2, 4), 1), **MANY_STEPS)
op("adaptive_avg_pool2d", S(F(2, 4, 6), 2), S(F(1, 2, 5, 3), (3, None)), S(F(1, 3, 3), 1), S(F(1, 2, 3), (0, 1)))
op("adaptive_avg_pool3d", S(F(1, 2, 4, 4), 2), S(F(1, 1, 3, 4, 5), (2, None, 3)))
op("adaptive_max_pool1d", S(F(2, 2, 6), 3), S(F(2, 5), 3, return_indices=True), S(F(2, 2), 5), **MANY_STEPS)
op("adaptive_max_pool2d", S(F(2, 4, 6), 2), S(F(1, 2, 5, 3), (3, None), return_indices=True), S(F(1, 9, 9), 1))
op("adaptive_max_pool3d", S(F(1, 2, 4, 4), 2), S(F(1, 1, 3, 4, 5), (2, None, 3)))
for _name, _shape in (("lp_pool1d", (2, 6)), ("lp_pool2d", (1, 4, 6)), ("lp_pool3d", (1, 2, 4, 4))):
    op(_name, S(F(*_shape), 2, 2), S(F(*_shape), 3.0, 2, 1), domain=((0.4, 2.1),), oracle_dtypes=("float64", "float32"))
op("max_unpool1d", S(F(2, 2), K([[0, 3], [1, 2]]), 2), S(F(1, 1, 2), K([[[4, 1]]]), 2, output_size=(5,)), **MANY_STEPS)
op("max_unpool2d", S(F(1, 2, 2), K([[[0, 3], [9, 14]]]), 2), S(F(1, 2, 2), K([[[0, 2], [7, 8]]]), 2, 1))
op("max_unpool3d", S(F(1, 1, 2, 2), K([[[[0, 3], [9, 14]]]]), 2))


def _drawn(torch: Any, x: Any, ndim: int, **kw: Any) -> Any:
    samples = torch.tensor(_samples(x, ndim), dtype=x.dtype)
    return getattr(torch.nn.functional, f"fractional_max_pool{ndim}d")(x, 2, _random_samples=samples, **kw)


def _samples(x: Any, ndim: int) -> list[Any]:
    count = x.shape[0] if x.dim() == ndim + 2 else 1
    channels = x.shape[-ndim - 1]
    return (np.arange(count * channels * ndim).reshape(count, channels, ndim) * 0.29 % 1).tolist()


OPS.append(
    Op(
        "fractional_max_pool",
        _drawn,
        (
            S(F(2, 5, 6), 2, output_size=3),
            S(F(2, 2, 5, 6), 2, output_size=(2, 4), return_indices=True),
            S(F(2, 4, 5, 6), 3, output_ratio=(0.5, 0.6, 0.5)),
        ),
        oracle_dtypes=("float64", "float32"),
    )
)

# ---- inner operations, which other samples reach in some modes only ----
_WINDOWS = (Window(5, 3, 2, 1, 1, 3), Window(4, 2, 2, 0, 1, 2))
OPS.append(
    Op(
        "xp_avg_pool_back",
        lambda _, g, **kw: xp.avg_pool_back(g, **kw),
        (S(F(2, 3, 2), windows=_WINDOWS, counts="inside"), S(F(3, 2), windows=_WINDOWS, counts=4)),
        oracle_dtypes=(),
    )
)
for _stride in (2, 1):  # windows apart, and such that share elements
    OPS.append(
        Op(
            f"xp_max_pool_back_{_stride}",
            lambda _, g, at, stride=_stride: xp.max_pool_back(
                g, at, windows=(Window(1 + 2 * stride, 2, stride, 0, 1, 2),)
            ),
            (S(F(2, 3, 2), K([[[0, 1], [1, 0], [0, 0]], [[1, 1], [1, 0], [0, 1]]])),),
            oracle_dtypes=(),
        )
    )
for _repeats in (False, True):
    OPS.append(
        Op(
            f"xp_take_in_planes_{_repeats}",
            lambda _, x, at, repeats=_repeats: xp.take_in_planes(x, at, ndim=2, repeats=repeats),
            (S(F(2, 3, 2), K([[[0, 5], [1, 2]], [[3, 0], [1, 4]]])),),
            oracle_dtypes=(),
        )
    )
    OPS.append(
        Op(
            f"xp_put_in_planes_{_repeats}",
            lambda _, g, at, repeats=_repeats: xp.put_in_planes(g, at, sizes=(3, 2), repeats=repeats),
            (S(F(2, 2, 2), K([[[0, 5], [1, 2]], [[3, 0], [1, 4]]])),),
            oracle_dtypes=(),
        )
    )
