"""Writers of TensorBoard's files."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from importlib import import_module
from typing import Any, Self

from . import _summaries

_events = import_module("tensorboard.compat.proto.event_pb2")
RecordWriter: Any = import_module("tensorboard.summary.writer.record_writer").RecordWriter


class FileWriter:
    """Writes the events of one folder, in the background."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        kind = import_module("tensorboard.summary.writer.event_file_writer").EventFileWriter
        self.event_writer = kind(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event, at a step and a time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write what is known at a step."""
        self.add_event(_events.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write to the disk what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and end."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begin another file."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes what a training program tells of its progress into a folder, by default one of this minute in `runs`."""

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = _bins()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """Return the writer of the folder, which is made again after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._writer_at(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                start = _events.SessionLog(status=_events.SessionLog.START)
                self.file_writer.add_event(_events.Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(_events.Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _writer_at(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> Any:
        """Return the folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number."""
        summary = _summaries.scalar(tag, scalar_value, new_style, double_precision)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Write several numbers that are drawn together, each into a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        writers = self.all_writers or {}
        for tag, value in tag_scalar_dict.items():
            place = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if place not in writers:
                writers[place] = self._writer_at(place)
            writers[place].add_summary(_summaries.scalar(main_tag, value, False, False), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write how numbers are distributed."""
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._get_file_writer().add_summary(_summaries.histogram(tag, values, edges, max_bins), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image: numbers from 0 to 1, or bytes."""
        self._get_file_writer().add_summary(_summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write several images, in a grid."""
        if isinstance(img_tensor, list):
            img_tensor, dataformats = _stacked(img_tensor), f"N{dataformats.replace('N', '')}"
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write what Matplotlib draws."""
        order = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, _summaries.figure(figure, close), global_step, walltime, order)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a text."""
        self._get_file_writer().add_summary(_summaries.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Write the hyperparameters of a run and what came of them, into a folder of its own."""
        parts = _summaries.hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as inner:
            for part in parts:
                inner._get_file_writer().add_summary(part, global_step)
            for tag, value in metric_dict.items():
                inner.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Write to the disk what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and end; a later call opens another file."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add_"):
            raise NotImplementedError(f"SummaryWriter.{name}: retrograd writes {_THERE}")
        raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")


_THERE = "numbers, histograms, images, figures, texts and hyperparameters"


def _bins() -> list[float]:
    """Return the limits of bins that grow by a tenth, on both sides of 0."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [-one for one in reversed(limits)] + [0.0] + limits


def _stacked(images: list[Any]) -> Any:
    return _summaries.np.stack([_summaries.as_array(one) for one in images])


__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
