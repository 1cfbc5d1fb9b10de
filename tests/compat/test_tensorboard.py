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
    w.add_hparams({"lr": 0.1, "name": "x", "on": True, "t": torch.tensor([2.0]), "none": None}, {"acc": 0.5}, {"lr": [0.1, 0.2]}, "run1")
w.add_scalar("after", 1.0)
w.close()
errors = []
for call in (lambda: w.add_scalar("a", torch.ones(2)), lambda: w.add_histogram("a", torch.ones(0)), lambda: w.add_scalar("a", [1]),
             lambda: w.add_hparams([], {}), lambda: w.add_hparams({}, {}, [1]),
             lambda: w.add_hparams({"a": 1}, {}, {"b": [1]}), lambda: w.add_hparams({"a": []}, {})):
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
print(json.dumps([found, errors]))
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
    return json.loads(ran.stdout)


@needs_package
@pytest.mark.oracle
def test_files_are_those_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert written(tmp_path / "ours", "-m", "retrograd", "run") == written(tmp_path / "theirs")


@needs_package
def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    from retrograd.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(NotImplementedError, match=r"SummaryWriter.add_graph: retrograd writes numbers, histograms"):
            writer.add_graph(None)
        assert not hasattr(writer, "nothing")


@pytest.mark.skipif(HAS_PACKAGE, reason="the package tensorboard is installed")
@pytest.mark.parametrize(
    "line", ["from torch.utils.tensorboard import SummaryWriter", "import torch.utils.tensorboard"]
)
def test_the_package_is_named_if_it_is_missing(line: str) -> None:
    command = [sys.executable, "-m", "retrograd", "run", "-c", line]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'tensorboard'"
