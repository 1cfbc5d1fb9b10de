"""torch.utils.tensorboard: files for TensorBoard, written with the package `tensorboard`, which must be installed.

All of `SummaryWriter` is there but for graphs of ONNX. Videos need no package but Pillow; graphs are a recording of a run.
"""

from __future__ import annotations

from importlib import import_module

import_module("tensorboard")  # says by itself that it is missing

from .writer import FileWriter, RecordWriter, SummaryWriter  # noqa: E402 - it needs the package

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
