"""What torch shows of the nodes that pool, resize, pad, look up and unfold: see `saved_names.py`.

torch keeps the input of most of them; we keep what the rules read, which is less, so `_saved_self` is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.primitive import vocabulary
from .saved_names import shown, unsigned


def static(name: str) -> Callable[[Any], Any]:
    """Read a parameter of the operation, as torch shows numbers."""
    return lambda node: unsigned(getattr(node, name))


# ---- pooling ----
def _given(at: int) -> Callable[[Any], Any]:
    """Read one of (kernel_size, stride, padding, dilation, ceil_mode) as the caller gave it, for each axis."""

    def read(node: Any) -> Any:
        values = getattr(node, "shown", None)
        if values is None:
            return None
        value = values["given"][at]
        if isinstance(value, bool):
            return value
        ndim = node.ndim if hasattr(node, "ndim") else len(node.windows)
        value = () if value is None else tuple(value) if isinstance(value, (tuple, list)) else (value,)
        return value * ndim if len(value) == 1 else value

    return read


def _places(node: Any) -> Any:
    """Return where the largest elements are in their planes."""
    node.check_saved(("out",))
    at = node.saved_tensor("out")[1]
    return vocabulary.max_pool_indices(at, windows=node.windows) if hasattr(node, "windows") else at


_WINDOWS = {"ceil_mode": _given(4), "kernel_size": _given(0), "padding": _given(2), "stride": _given(1)}
_LARGEST = {**_WINDOWS, "dilation": _given(3), "result1": _places}
_MEAN = {**_WINDOWS, "count_include_pad": shown("count_include_pad"), "divisor_override": shown("divisor_override")}


# ---- resizing ----
def _factor(axis: int) -> Callable[[Any], Any]:
    def read(node: Any) -> Any:
        values = getattr(node, "shown", None)
        return None if values is None or values["factors"][axis] is None else float(values["factors"][axis])

    return read


_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


def _resized(ndim: int, aligns: bool) -> dict[str, Any]:
    names = {name: _factor(axis) for axis, name in enumerate(_SCALES[ndim])}
    names |= {"output_size": shown("output_size"), "self_sym_sizes": shown("self_sym_sizes")}
    return {**names, "align_corners": shown("align_corners")} if aligns else names


_SMOOTH = {1: ("Linear1D",), 2: ("Bilinear2D", "Bicubic2D", "Bilinear2DAa", "Bicubic2DAa"), 3: ("Trilinear3D",)}

IMAGE_NAMES: dict[str, dict[str, Any]] = {
    **{f"MaxPool{n}DWithIndicesBackward0": _LARGEST for n in (1, 2, 3)},
    **{f"AvgPool{n}DBackward0": _MEAN for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}DBackward0": {"result1": _places} for n in (1, 2, 3)},
    **{f"AdaptiveAvgPool{n}DBackward0": {} for n in (1, 2, 3)},
    **{
        f"FractionalMaxPool{n}DBackward0": {
            "kernel_size": shown("kernel_size"),
            "output_size": shown("output_size"),
            "result1": _places,
        }
        for n in (2, 3)
    },
    **{f"MaxUnpool{n}DBackward0": {"indices": "indices"} for n in (2, 3)},
    **{f"UpsampleNearest{exact}{n}DBackward0": _resized(n, False) for n in (1, 2, 3) for exact in ("", "Exact")},
    **{f"Upsample{name}Backward0": _resized(n, True) for n, names in _SMOOTH.items() for name in names},
    **{
        f"{kind}Pad{n}DBackward0": {"padding": shown("padding")}
        for n in (1, 2, 3)
        for kind in ("Reflection", "Replication")
    },
    "EmbeddingBackward0": {
        "indices": "indices",
        "padding_idx": static("padding_idx"),
        "scale_grad_by_freq": static("by_frequency"),
        "sparse": lambda node: False,
        "weight_sym_argsize_0": lambda node: node.x_shape[0],
    },
    "EmbeddingBagBackward0": {"sparse": lambda node: False},
    "Im2ColBackward0": {
        "dilation": "dilation",
        "kernel_size": "kernel",
        "padding": "padding",
        "self_sym_argsize_minus_1": lambda node: node.x_shape[-1],
        "self_sym_argsize_minus_2": lambda node: node.x_shape[-2],
        "stride": "stride",
    },
    "Col2ImBackward0": {"dilation": "dilation", "kernel_size": "kernel", "padding": "padding", "stride": "stride"},
    "PixelShuffleBackward0": {"upscale_factor": "factor"},
    "PixelUnshuffleBackward0": {"downscale_factor": "factor"},
    "AffineGridGeneratorBackward0": {"align_corners": "align", "size": shown("size")},
    "ClampMinBackward0": {"min": "low", "self": "x"},
    "ClampMaxBackward0": {"max": "high", "self": "x"},
    "CdistBackward0": {"p": "p", "result": "out", "x1": "x", "x2": "y"},
    "CeluBackward0": {"alpha": "alpha", "self": "x"},
}
