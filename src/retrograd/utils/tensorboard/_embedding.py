"""Points in a space of many dimensions, for TensorBoard's projector: files beside the events."""

from __future__ import annotations

import math
import os
from importlib import import_module
from typing import Any

import numpy as np

from ._summaries import _grid, as_array


def write(folder: str, points: Any, labels: Any, images: Any, header: Any) -> None:
    """Write the points, their labels and their pictures into a folder."""
    if labels is not None:
        if len(points) != len(labels):
            raise AssertionError("#labels should equal with #data points")
        _lines(folder, "metadata.tsv", _rows(labels, header))
    if images is not None:
        if len(points) != images.shape[0]:
            raise AssertionError("#images should equal with #data points")
        _sprite(folder, images)
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    _lines(folder, "tensors.tsv", ["\t".join(str(value.item()) for value in row) for row in points])


def _rows(labels: Any, header: Any) -> list[str]:
    if not header:
        return [str(label) for label in labels]
    if len(header) != len(labels[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    return ["\t".join(map(str, row)) for row in [header, *labels]]


def _lines(folder: str, name: str, lines: list[str]) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
        file.write("\n".join(lines) + "\n")


def _sprite(folder: str, images: Any) -> None:
    """Write all pictures as one, a square."""
    array = as_array(images)
    array = np.repeat(array, 3, axis=1) if array.shape[1] == 1 else array
    rows = _grid(array.transpose(0, 2, 3, 1), math.ceil(len(array) ** 0.5))
    sheet = np.zeros((rows.shape[1], rows.shape[1], 3))
    sheet[: rows.shape[0]] = rows
    pillow = import_module("PIL.Image")
    pillow.fromarray(np.uint8((sheet * 255).clip(0, 255))).save(os.path.join(folder, "sprite.png"), format="PNG")


def entry(tag: str, step: Any, place: str, labels: Any, images: Any) -> Any:
    """Return what the projector's list of points says of them."""
    made = import_module("tensorboard.plugins.projector.projector_config_pb2").EmbeddingInfo()
    made.tensor_name = f"{tag}:{str(step).zfill(5)}"
    made.tensor_path = os.path.join(place, "tensors.tsv")
    if labels is not None:
        made.metadata_path = os.path.join(place, "metadata.tsv")
    if images is not None:
        made.sprite.image_path = os.path.join(place, "sprite.png")
        made.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
    return made
