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

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Write a graph, and what is known of its run."""
        graph, _ = graph_profile
        self.add_event(_events.Event(graph_def=graph.SerializeToString()), None, walltime)

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
        self._projector_config: Any = None
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

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a tensor."""
        self._add(_media().tensor(tag, tensor), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write how numbers are distributed, given their bins."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        facts = {"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares}
        self._add(_media().raw_histogram(tag, bucket_limits, bucket_counts, **facts), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Write an image with boxes in it: left, top, right and bottom of each."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._add(_media().boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Write films of dimensions NTCHW."""
        self._add(_media().video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write a sound: numbers from -1 to 1."""
        self._add(_media().audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the graph of a model: what it computes with an example."""
        from . import _graph

        self._get_file_writer().add_graph((_graph.graph(model, input_to_model, verbose), None))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Refuse: ONNX comes later."""
        raise NotImplementedError(
            "SummaryWriter.add_onnx_graph: retrograd does not read ONNX yet; add_graph writes a model"
        )

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Write points in a space of many dimensions, with their labels and pictures, for the projector."""
        from . import _embedding

        step = 0 if global_step is None else global_step
        place = f"{str(step).zfill(5)}/{_as_file_name(tag)}"
        home = self._get_file_writer().get_logdir()
        folder = os.path.join(home, place)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        os.makedirs(folder, exist_ok=True)
        _embedding.write(folder, _summaries.as_array(mat), metadata, label_img, metadata_header)
        if self._projector_config is None:
            pb = import_module("tensorboard.plugins.projector.projector_config_pb2")
            self._projector_config = pb.ProjectorConfig()
        self._projector_config.embeddings.extend([_embedding.entry(tag, step, place, metadata, label_img)])
        with open(os.path.join(home, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(import_module("google.protobuf.text_format").MessageToString(self._projector_config))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision over recall, of truths and of how likely they were said to be."""
        self._add(_media().curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision over recall, which are known."""
        parts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        self._add(_media().raw_curve(tag, (*parts, precision, recall), num_thresholds), global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Let several numbers be drawn in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Let a number be drawn between two others."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Say which charts are drawn of which numbers."""
        self._add(_media().layout(layout), None, None)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write bodies: corners, colors and triangles, each of dimensions (bodies, how many, 3)."""
        self._add(_media().mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def _add(self, summary: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

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


def _media() -> Any:
    return import_module("._media", __package__)  # few programs need it


def _as_file_name(tag: str) -> str:
    for sign in "%/\\":
        tag = tag.replace(sign, f"%{ord(sign):02x}")
    return tag


def _bins() -> list[float]:
    """Return the limits of bins that grow by a tenth, on both sides of 0."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [-one for one in reversed(limits)] + [0.0] + limits


def _stacked(images: list[Any]) -> Any:
    return _summaries.np.stack([_summaries.as_array(one) for one in images])
