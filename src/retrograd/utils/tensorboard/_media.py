"""What TensorBoard shows besides numbers and pictures: boxes, videos, sounds, curves, meshes, tensors, layouts of charts."""

from __future__ import annotations

import io
import json
import math
import struct
import wave
from importlib import import_module
from typing import Any

import numpy as np

from ...tensor import Tensor
from ._summaries import Metadata, Summary, _by_rows, _of_plugin, _one, _proto, _shapes, _tensors, as_array

# By dtype: the name in the file, and the field of a tensor that holds its numbers.
KINDS = {
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"),
    "uint8": ("DT_UINT8", "uint32_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
    "bool": ("DT_BOOL", "bool_val"),
}
MOST_THRESHOLDS = 127  # more do not fit into a byte of the file


def _shape(sizes: Any) -> Any:
    return _shapes.TensorShapeProto(dim=[_shapes.TensorShapeProto.Dim(size=int(n)) for n in sizes])


def tensor(tag: str, value: Any) -> Any:
    """Return a tensor under a tag."""
    kind = str(value.dtype).removeprefix("torch.")
    if kind not in KINDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {value.dtype}")
    name, field = KINDS[kind]
    numbers = value.detach().cpu().flatten()
    if field == "half_val":  # the bits of the number as a float32
        held: Any = [struct.unpack("i", struct.pack("f", each))[0] for each in numbers.tolist()]
    elif "complex" in kind:
        held = [part for each in numbers.tolist() for part in (each.real, each.imag)]
    else:
        held = numbers.tolist()
    shape = _shape(value.shape)
    written = _tensors.TensorProto(**{"dtype": name, "tensor_shape": shape, field: held})
    return _one(tag, tensor=written, metadata=_of_plugin("tensor"))


def raw_histogram(tag: str, limits: Any, counts: Any, **facts: Any) -> Any:
    """Return a histogram whose bins are known."""
    as_list = [one.tolist() if hasattr(one, "tolist") else list(one) for one in (limits, counts)]
    return _one(tag, histo=_proto.HistogramProto(**facts, bucket_limit=as_list[0], bucket=as_list[1]))


def boxes(tag: str, picture: Any, corners: Any, rescale: float, order: str, labels: Any) -> Any:
    """Return a picture with a red frame around each box, and its label in it."""
    array = as_array(picture)
    scale = 1 if array.dtype == np.uint8 else 255
    pixels = (_by_rows(array, order.upper()).astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = pixels.shape
    pillow, drawing, fonts = [import_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont")]
    image, font = pillow.fromarray(pixels), fonts.load_default()
    draw = drawing.Draw(image)
    for i, (left, top, right, bottom) in enumerate(as_array(corners)):
        frame = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(frame, width=2, fill="Red")
        if labels is not None and labels[i]:
            ends = font.getbbox(labels[i])
            wide, high = ends[2] - ends[0], ends[3] - ends[1]
            margin = math.ceil(0.05 * high)
            draw.rectangle([(left, bottom - high - 2 * margin), (left + wide, bottom)], fill="Red")
            draw.text((left + margin, bottom - high - margin), labels[i], fill="black", font=font)
    image = image.resize((int(width * rescale), int(height * rescale)), pillow.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return _one(
        tag,
        image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()),
    )


def video(tag: str, films: Any, fps: float) -> Any:
    """Return films of dimensions NTCHW, side by side, as a moving GIF."""
    array = as_array(films)
    count, frames, channels, height, width = array.shape
    array = array / 255.0 if array.dtype == np.uint8 else array
    places = 1 << (count - 1).bit_length() if count & (count - 1) else count
    padded = np.zeros((places, frames, channels, height, width), array.dtype)
    padded[:count] = array
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = places // rows
    sheet = padded.reshape(rows, columns, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    sheet = sheet.reshape(frames, rows * height, columns * width, channels)
    pixels = (sheet.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    pillow = import_module("PIL.Image")
    first, *others = [pillow.fromarray(frame[..., 0] if channels == 1 else frame) for frame in pixels]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    _, high, wide, depth = pixels.shape
    return _one(
        tag, image=Summary.Image(height=high, width=wide, colorspace=depth, encoded_image_string=file.getvalue())
    )


def audio(tag: str, sound: Any, sample_rate: int) -> Any:
    """Return a sound, numbers from -1 to 1, as a WAV file."""
    array = as_array(sound).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    array = (array * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(array.data)
    held = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=array.shape[-1],
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _one(tag, audio=held)


def layout(charts: dict[str, Any]) -> Any:
    """Return which charts are drawn of which numbers."""
    pb = import_module("tensorboard.plugins.custom_scalar.layout_pb2")
    categories = []
    for category, named in charts.items():
        made = []
        for title, (kind, tags) in named.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                series = pb.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(pb.Chart(title=title, margin=pb.MarginChartContent(series=[series])))
            else:
                made.append(pb.Chart(title=title, multiline=pb.MultilineChartContent(tag=tags)))
        categories.append(pb.Category(title=category, chart=made))
    held = _tensors.TensorProto(
        dtype="DT_STRING",
        string_val=[pb.Layout(category=categories).SerializeToString()],
        tensor_shape=_shapes.TensorShapeProto(),
    )
    return _one("custom_scalars__config__", tensor=held, metadata=_of_plugin("custom_scalars"))


def raw_curve(tag: str, parts: Any, thresholds: int) -> Any:
    """Return a curve of precision over recall: six rows of numbers, one column for each threshold."""
    data = np.stack([as_array(one) for one in parts])
    pb = import_module("tensorboard.plugins.pr_curve.plugin_data_pb2")
    count = min(thresholds, MOST_THRESHOLDS)
    content = pb.PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    held = _tensors.TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(data.shape))
    return _one(tag, tensor=held, metadata=_of_plugin("pr_curves", content))


def curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> Any:
    """Return a curve of precision over recall: what is found at each threshold, and what is missed."""
    count = min(thresholds, MOST_THRESHOLDS)
    truth = as_array(labels).astype(np.float64)
    heavy = 1.0 if weights is None else weights
    bins = np.int32(np.floor(as_array(predictions) * (count - 1)))

    def at_least(share: Any) -> Any:
        counts, _ = np.histogram(bins, bins=count, range=(0, count - 1), weights=share * heavy)
        return np.cumsum(counts[::-1])[::-1]

    found, wrong = at_least(truth), at_least(1.0 - truth)
    missed, rejected = found[0] - found, wrong[0] - wrong
    precision = found / np.maximum(1e-7, found + wrong)
    recall = found / np.maximum(1e-7, found + missed)
    return raw_curve(tag, (found, wrong, rejected, missed, precision, recall), count)


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> Any:
    """Return bodies: their corners, and the colors and triangles that are given."""
    metadata = import_module("tensorboard.plugins.mesh.metadata")
    kinds = import_module("tensorboard.plugins.mesh.plugin_data_pb2").MeshPluginData
    given = [(vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR)]
    given = [(value, kind) for value, kind in given if value is not None]
    parts = metadata.get_components_bitmask([kind for _, kind in given])
    words = "{}" if config is None else json.dumps(config, sort_keys=True)
    values = []
    for value, kind in given:
        array = np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)
        facts: Metadata = metadata.create_summary_metadata(tag, None, kind, parts, array.shape, None, json_config=words)
        held = _tensors.TensorProto(
            dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=_shape(array.shape[:3])
        )
        values.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=held, metadata=facts))
    return Summary(value=values)
