"""torch.utils.tensorboard: files for TensorBoard, written with the package `tensorboard`, which must be installed.

Numbers, histograms, images, figures, texts and hyperparameters are there; graphs, videos, sounds, embeddings, curves and
meshes are not.
"""

from __future__ import annotations

from importlib import import_module

import_module("tensorboard")  # says by itself that it is missing

from .writer import FileWriter, RecordWriter, SummaryWriter  # noqa: E402 - it needs the package

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
