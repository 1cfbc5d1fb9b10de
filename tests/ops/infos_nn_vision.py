"""Padding, resizing, sampling at grids, and shuffling."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import F, Op, S, Sample

OPS: list[Op] = []


def op(name: str, *samples: Sample, **options: Any) -> None:
    """Add a function of nn.functional."""
    OPS.append(Op(name, lambda torch, *args, **kw: getattr(torch.nn.functional, name)(*args, **kw), samples, **options))


op("pad", S(F(2, 3), (1, 2)), S(F(2, 3), (1, 0, -1, 2), value=1.5), S(F(2, 3), ()), complex=True)
for _mode in ("reflect", "replicate", "circular"):
    OPS.append(
        Op(
            f"pad_{_mode}",
            lambda torch, x, pad, mode=_mode: torch.nn.functional.pad(x, pad, mode),
            (
                S(F(2, 3), (2, 1)),
                S(F(2, 2, 3), (0, 2)),
                S(F(1, 3, 4), (1, 2, 0, 2)),
                S(F(1, 3, 4), (-1, 2, 1, -1)),
                S(F(1, 2, 3, 2), (1, 0, 2, 1, 1, 1)),
                S(F(0, 1, 3, 4), (1, 1, 1, 1)),
                S(F(4, 3, 2, layout="transposed"), (1, 1)),
            ),
            complex=True,
            same_graph=_mode != "circular",
        )
    )
EXACT = ("float64", "float32")  # in half precision torch rounds weights and coordinates
RESIZED = {
    "nearest": (F(1, 2, 4), F(1, 1, 3, 4), F(1, 1, 2, 3, 2)),
    "nearest-exact": (F(1, 2, 4), F(1, 1, 3, 4), F(1, 1, 2, 3, 2)),
    "area": (F(1, 1, 3, 4),),
    "linear": (F(1, 2, 4),),
    "bilinear": (F(1, 1, 3, 4),),
    "bicubic": (F(1, 1, 3, 4),),
    "trilinear": (F(1, 1, 2, 3, 2),),
}
for _mode, _inputs in RESIZED.items():
    _wanted: list[dict[str, Any]] = [{"size": 5}, {"size": 2}, {"scale_factor": 1.7}]
    if _mode not in ("nearest", "nearest-exact", "area"):
        _wanted += [{"size": 5, "align_corners": True}, {"size": 1, "align_corners": True}]
        _wanted.append({"scale_factor": 1.7, "recompute_scale_factor": True})
    OPS.append(
        Op(
            f"interpolate_{_mode}",
            lambda torch, x, mode=_mode, **kw: torch.nn.functional.interpolate(x, mode=mode, **kw),
            tuple(S(x, **kw) for x in _inputs for kw in _wanted),
            oracle_dtypes=EXACT,
        )
    )
OPS.append(
    Op(
        "interpolate_smooth",
        lambda torch, x, mode, **kw: torch.nn.functional.interpolate(x, mode=mode, antialias=True, **kw),
        tuple(
            S(F(1, 1, 5, 6), mode, **kw)
            for mode in ("bilinear", "bicubic", "lanczos")
            for kw in ({"size": (2, 3)}, {"size": (7, 4)}, {"scale_factor": 0.6})
        ),
        oracle_dtypes=EXACT,
    )
)
# points between elements, where a sample is smooth
POINTS = ((-1.9, -1.35), (-0.9, -0.7), (-0.2, -0.05), (0.1, 0.3), (0.6, 0.9), (1.4, 1.9))
for _padding in ("zeros", "border", "reflection"):
    for _corners in (False, True):
        OPS.append(
            Op(
                f"grid_sample_{_padding}_{_corners}",
                lambda torch, x, grid, mode, padding=_padding, corners=_corners: torch.nn.functional.grid_sample(
                    x, grid, mode, padding, corners
                ),
                (
                    S(F(1, 2, 3, 4), F(1, 2, 2, 2, domain=POINTS), "bilinear"),
                    S(F(2, 1, 3, 4), F(2, 2, 1, 2, domain=POINTS), "nearest"),
                    S(F(1, 1, 3, 4), F(1, 2, 1, 2, domain=POINTS), "bicubic"),
                    S(F(1, 1, 2, 3, 2), F(1, 1, 2, 1, 3, domain=POINTS), "bilinear"),
                    S(F(1, 1, 2, 3, 2), F(1, 1, 2, 1, 3, domain=POINTS), "nearest"),
                ),
                oracle_dtypes=EXACT,
            )
        )
op(
    "affine_grid",
    S(F(2, 2, 3), (2, 1, 2, 3), align_corners=False),
    S(F(1, 2, 3), (1, 1, 3, 2), align_corners=True),
    S(F(1, 3, 4), (1, 1, 2, 1, 3), align_corners=False),
    oracle_dtypes=EXACT,
)
op("pixel_shuffle", S(F(4, 2, 1), 2), S(F(2, 8, 1, 2), 2), S(F(2, 2, 1), 1), S(F(0, 4, 1, 1), 2), complex=True)
op("pixel_unshuffle", S(F(1, 2, 4), 2), S(F(2, 1, 2, 2), 2), S(F(2, 2, 1), 1), complex=True)
op("channel_shuffle", S(F(2, 6, 2), 3), S(F(1, 4, 1, 2), 2), S(F(1, 4, 2), 1), complex=True)
