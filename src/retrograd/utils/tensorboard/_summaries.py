"""What TensorBoard's files say, made of tensors, arrays and numbers."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np

from ..._dtypes import bfloat16, float16
from ...tensor import Tensor

_proto = import_module("tensorboard.compat.proto.summary_pb2")
_tensors = import_module("tensorboard.compat.proto.tensor_pb2")
_shapes = import_module("tensorboard.compat.proto.tensor_shape_pb2")
Summary, Metadata = _proto.Summary, _proto.SummaryMetadata


def as_array(value: Any) -> Any:
    """Return a tensor, an array or a number as an array."""
    if isinstance(value, np.ndarray):
        return value
    if np.isscalar(value):
        return np.array([value])
    if isinstance(value, Tensor):
        value = value.to(float16) if value.dtype is bfloat16 else value
        return value.detach().cpu().numpy()
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def scalar(tag: str, value: Any, new_style: bool, double_precision: bool) -> Any:
    """Return a number under a tag."""
    array = as_array(value).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {array.ndim} dimensions."
        )
    number = float(array)
    if not new_style:
        return _one(tag, simple_value=number)
    held = (
        {"double_val": [number], "dtype": "DT_DOUBLE"}
        if double_precision
        else {"float_val": [number], "dtype": "DT_FLOAT"}
    )
    return _one(tag, tensor=_tensors.TensorProto(**held), metadata=_of_plugin("scalars"))


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None) -> Any:
    """Return how many numbers are in each bin, without the empty bins at both ends."""
    numbers = as_array(values).astype(float).reshape(-1)
    if not numbers.size:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(numbers, bins=bins)
    together = 1 if max_bins is None or len(counts) <= max_bins else len(counts) // max_bins
    if together > 1:
        counts = np.add.reduceat(counts, np.arange(0, len(counts), together))
        edges = np.append(edges[:-1][::together], edges[-1])
    filled = np.flatnonzero(counts)
    if not len(filled):
        raise ValueError("The histogram is empty.")
    first, last = int(filled[0]), int(filled[-1])
    # One empty bin before the first: TensorBoard draws from its limit on.
    shown = counts[first - 1 : last + 1] if first else np.append([0], counts[: last + 1])
    histo = _proto.HistogramProto(
        min=numbers.min(),
        max=numbers.max(),
        num=len(numbers),
        sum=numbers.sum(),
        sum_squares=numbers.dot(numbers),
        bucket_limit=edges[first : last + 2].tolist(),
        bucket=shown.tolist(),
    )
    return _one(tag, histo=histo)


def image(tag: str, picture: Any, order: str) -> Any:
    """Return a picture, whose dimensions `order` names, as a PNG; several stand in a grid."""
    array = as_array(picture)
    scale = 1 if array.dtype == np.uint8 else 255
    pixels = (_by_rows(array, order.upper()).astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = pixels.shape
    file = io.BytesIO()
    pillow = import_module("PIL.Image")
    pillow.fromarray(pixels).save(file, format="PNG")
    encoded = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return _one(tag, image=encoded)


def _by_rows(array: Any, order: str) -> Any:
    if len(set(order)) != len(order) or array.ndim != len(order) or not {"H", "W"} <= set(order) <= set("NCHW"):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {order}"
        )
    array = array.transpose([order.index(letter) for letter in "NHWC" if letter in order])
    array = array if "C" in order else array[..., None]
    array = np.repeat(array, 3, axis=-1) if array.shape[-1] == 1 else array
    return _grid(array) if "N" in order else array


def _grid(images: Any, in_a_row: int = 8) -> Any:
    """Put images side by side."""
    count, height, width, channels = images.shape
    columns = min(count, in_a_row)
    rows = -(-count // columns)
    sheet = np.zeros((rows * columns, height, width, channels), images.dtype)
    sheet[:count] = images
    return (
        sheet.reshape(rows, columns, height, width, channels)
        .swapaxes(1, 2)
        .reshape(rows * height, columns * width, channels)
    )


def figure(figures: Any, close: bool) -> Any:
    """Return what Matplotlib draws, as an image of dimensions CHW; several as NCHW."""
    if isinstance(figures, list):
        return np.stack([figure(one, close) for one in figures])
    canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].transpose(2, 0, 1)
    if close:
        import_module("matplotlib.pyplot").close(figures)
    return pixels


def text(tag: str, words: str) -> Any:
    """Return a text under a tag."""
    shape = _shapes.TensorShapeProto(dim=[_shapes.TensorShapeProto.Dim(size=1)])
    content = import_module("tensorboard.plugins.text.plugin_data_pb2").TextPluginData(version=0).SerializeToString()
    held = _tensors.TensorProto(dtype="DT_STRING", string_val=[words.encode("utf_8")], tensor_shape=shape)
    return _one(f"{tag}/text_summary", tensor=held, metadata=_of_plugin("text", content))


def hyperparameters(values: Any, metrics: Any, domains: Any) -> list[Any]:
    """Return the three parts of a run: which hyperparameters and metrics there are, their values, and that it ended well."""
    api, tags, data = [
        import_module(f"tensorboard.plugins.hparams.{name}") for name in ("api_pb2", "metadata", "plugin_data_pb2")
    ]
    if not isinstance(values, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    if not isinstance(domains or {}, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, choices in (domains or {}).items():
        if (
            name not in values
            or not isinstance(choices, list)
            or not all(isinstance(v, type(values[name])) for v in choices)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    start, infos = data.SessionStartInfo(), []
    for name, value in values.items():
        if value is None:
            continue
        value = as_array(value).item() if isinstance(value, Tensor) else value
        kind = next((kind for types, kind in _KINDS if isinstance(value, types)), None)
        if kind is None:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        field, type_name = kind
        setattr(start.hparams[name], field, value)
        info = api.HParamInfo(name=name, type=api.DataType.Value(type_name))
        for choice in (domains or {}).get(name, ()):
            setattr(info.domain_discrete.values.add(), field, choice)
        infos.append(info)
    names = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metrics]
    parts = (
        (tags.EXPERIMENT_TAG, {"experiment": api.Experiment(hparam_infos=infos, metric_infos=names)}),
        (tags.SESSION_START_INFO_TAG, {"session_start_info": start}),
        (
            tags.SESSION_END_INFO_TAG,
            {"session_end_info": data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))},
        ),
    )
    contents = [(tag, data.HParamsPluginData(version=tags.PLUGIN_DATA_VERSION, **part)) for tag, part in parts]
    return [_one(tag, metadata=_of_plugin(tags.PLUGIN_NAME, content.SerializeToString())) for tag, content in contents]


# A bool is a number here, as in torch: the first that fits is taken.
_KINDS: tuple[tuple[Any, tuple[str, str]], ...] = (
    ((int, float), ("number_value", "DATA_TYPE_FLOAT64")),
    (str, ("string_value", "DATA_TYPE_STRING")),
)


def _one(tag: str, **what: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **what)])


def _of_plugin(name: str, content: bytes = b"") -> Any:
    return Metadata(plugin_data=Metadata.PluginData(plugin_name=name, content=content))
