"""torch.utils.tensorboard: without the package `tensorboard` it says so, with it the files are those that torch writes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HAS_PACKAGE = importlib.util.find_spec("tensorboard") is not None
needs_package = pytest.mark.skipif(not HAS_PACKAGE, reason="the package tensorboard is not installed")

WRITES = """
import glob, json, os, sys
import numpy as np, torch
from torch.utils.tensorboard import SummaryWriter

folder = sys.argv[1]
torch.manual_seed(0)
with SummaryWriter(folder, purge_step=3) as w:
    w.add_scalar("loss", 0.5, 1)
    w.add_scalar("loss", torch.tensor([0.25], requires_grad=True), 2, walltime=3.0)
    w.add_scalar("new", np.float64(0.1), 2, new_style=True)
    w.add_scalar("double", 0.1, 2, new_style=True, double_precision=True)
    w.add_scalars("run/all", {"a": 1, "b": torch.tensor(2)}, 3)
    w.add_histogram("weights", torch.randn(100), 4)
    w.add_histogram("few", np.arange(10), 4, bins=50, max_bins=5)
    w.add_histogram("auto", torch.arange(30) / 8, 4, bins="auto")
    w.add_histogram("ends", torch.tensor([-1e25, 1.0]), 4, bins=[0.0, 2.0, 3.0])
    w.add_image("image", torch.linspace(0, 1, 12).reshape(3, 2, 2), 5)
    w.add_image("gray", np.eye(4, dtype=np.uint8) * 200, 5, dataformats="HW")
    w.add_image("one", torch.rand(1, 4, 4), 5)
    w.add_images("grid", torch.rand(11, 3, 2, 2), 6)
    w.add_text("words", "hello, world", 7)
    for kind in "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 complex64 complex128 bool".split():
        w.add_tensor("tensor/" + kind, torch.tensor([[0, 1], [2, 3]]).to(getattr(torch, kind)), 8)
    w.add_tensor("number", torch.tensor(2.5), 8)
    w.add_histogram_raw("raw", 0, 4, 5, 10.0, 30.0, [1.0, 2.0, 4.0], [1, 2, 2], 8)
    w.add_image_with_boxes("boxes", torch.zeros(3, 20, 30), torch.tensor([[2, 2, 12, 15], [5, 6, 25, 18]]), 8, labels=["a", ""])
    w.add_audio("sound", torch.arange(-16, 17) / 16, 9, sample_rate=8000)
    w.add_audio("loud", torch.arange(-48, 49) / 16, 9)
    truth, likely = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.1, 0.4, 0.8, 0.6, 0.99])
    w.add_pr_curve("curve", truth, likely, 10, num_thresholds=7)
    w.add_pr_curve("weighed", truth.numpy(), likely.numpy(), 10, weights=np.array([1.0, 2.0, 1.0, 0.5, 1.0]))
    w.add_pr_curve_raw("known", *np.arange(24.0).reshape(6, 4), 10, num_thresholds=4)
    w.add_custom_scalars_multilinechart(["a", "b"])
    w.add_custom_scalars_marginchart(["a", "b", "c"], "group", "title")
    w.add_custom_scalars({"one": {"x": ["Multiline", ["a"]], "y": ["Margin", ["a", "b", "c"]]}})
    corners = torch.tensor([[[1.0, 1, 1], [-1, -1, 1], [1, -1, -1]]])
    w.add_mesh("body", corners, torch.tensor([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]), torch.tensor([[[0, 1, 2]]]), {"camera": 1}, 11)
    w.add_mesh("points", corners)
    pictures = torch.linspace(0, 1, 5 * 3 * 4).reshape(5, 3, 2, 2)
    w.add_embedding(torch.arange(10.0).reshape(5, 2), list("abcde"), pictures, 3, "a/b")
    w.add_embedding(np.arange(6.0).reshape(3, 2), [[1, 2], [3, 4], [5, 6]], metadata_header=["x", "y"])
    w.add_hparams({"lr": 0.1, "name": "x", "on": True, "t": torch.tensor([2.0]), "none": None}, {"acc": 0.5}, {"lr": [0.1, 0.2]}, "run1")
w.add_scalar("after", 1.0)
w.close()
errors = []
for call in (lambda: w.add_scalar("a", torch.ones(2)), lambda: w.add_histogram("a", torch.ones(0)), lambda: w.add_scalar("a", [1]),
             lambda: w.add_hparams([], {}), lambda: w.add_hparams({}, {}, [1]),
             lambda: w.add_hparams({"a": 1}, {}, {"b": [1]}), lambda: w.add_hparams({"a": []}, {}),
             lambda: w.add_histogram_raw("a", 0, 1, 1, 1, 1, [1.0], [1, 2]), lambda: w.add_audio("a", torch.zeros(2, 2)),
             lambda: w.add_custom_scalars_marginchart(["a"]), lambda: w.add_embedding(torch.ones(2, 2), ["a"]),
             lambda: w.add_embedding(torch.ones(2), global_step=4),
             lambda: w.add_embedding(torch.ones(2, 2), [[1]] * 2, metadata_header=["x", "y"])):
    try:
        call()
    except Exception as error:
        errors.append([type(error).__name__, " ".join(str(error).split())])

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

found = {}
for path in sorted(glob.glob(folder + "/**/events*", recursive=True)):
    events = []
    for raw in RawEventFileLoader(path).Load():
        event = Event.FromString(raw)
        event.wall_time = 0
        event.ClearField("source_metadata")
        for value in event.summary.value:
            held = value.metadata.plugin_data
            if held.plugin_name == "hparams":  # written in any order
                events.append(str(HParamsPluginData.FromString(held.content)))
                held.content = b""
        events.append(str(event))
    found.setdefault(os.path.relpath(os.path.dirname(path), folder), []).extend(events)
beside = {}
for path in sorted(glob.glob(folder + "/**/*", recursive=True)):
    if os.path.isfile(path) and "events" not in path:
        beside[os.path.relpath(path, folder)] = open(path, "rb").read().hex()
print(json.dumps([found, errors, beside]))
"""


def written(folder: Path, *command: str) -> object:
    folder.mkdir()
    (folder / "program.py").write_text(WRITES)
    ran = subprocess.run(
        [sys.executable, *command, "program.py", "log"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@needs_package
@pytest.mark.oracle
def test_files_are_those_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert written(tmp_path / "ours", "-m", "retrograd", "run") == written(tmp_path / "theirs")


@needs_package
def test_a_graph_has_the_modules_as_boxes(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    import retrograd as torch
    from retrograd.utils.tensorboard import SummaryWriter

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, torch.ones(4, 3))
    assert model.training
    (events,) = tmp_path.glob("events*")
    (held,) = [event.graph_def for event in EventFileLoader(str(events)).Load() if event.graph_def]
    graph = GraphDef.FromString(held)
    names = [node.name for node in graph.node]
    assert "input/input_1" in names
    assert any(name.startswith("Sequential/Linear[0]/linear") for name in names)
    assert names[-1] == "output/output.1"
    shapes = {node.name: node.attr["_output_shapes"].list.shape[0].dim for node in graph.node if "relu" in node.name}
    assert [[d.size for d in dims] for dims in shapes.values()] == [[4, 2]]
    known = set(names)
    assert all(each in known for node in graph.node for each in node.input)


@needs_package
def test_films_are_side_by_side(tmp_path: Path) -> None:
    import io

    from PIL import Image
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    import retrograd as torch
    from retrograd.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_video("film", torch.rand(3, 5, 3, 4, 6), fps=10)
        with pytest.raises(NotImplementedError, match="ONNX"):
            writer.add_onnx_graph("file")
    (events,) = tmp_path.glob("events*")
    pictures = [v.image for raw in RawEventFileLoader(str(events)).Load() for v in Event.FromString(raw).summary.value]
    shown = Image.open(io.BytesIO(pictures[0].encoded_image_string))
    assert (pictures[0].height, pictures[0].width, shown.size, shown.n_frames) == (4, 24, (24, 4), 5)


@pytest.mark.skipif(HAS_PACKAGE, reason="the package tensorboard is installed")
@pytest.mark.parametrize(
    "line", ["from torch.utils.tensorboard import SummaryWriter", "import torch.utils.tensorboard"]
)
def test_the_package_is_named_if_it_is_missing(line: str) -> None:
    command = [sys.executable, "-m", "retrograd", "run", "-c", line]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'tensorboard'"
