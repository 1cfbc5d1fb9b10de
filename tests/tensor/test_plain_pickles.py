"""Plain pickles: torch's are read while `import torch` means retrograd, and then what is pickled is for torch, too."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd

OBJECTS = """
import pickle, sys, torch
from torch import nn
base = torch.arange(6.0)
attributed = torch.ones(2)
attributed.foo = 1
parameter = nn.Parameter(torch.ones(2))
parameter.foo = 2
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
optimizer = torch.optim.Adam(net.parameters())
objects = {
    "views": [base, base[2:], base.view(2, 3).t()],
    "attributed": attributed,
    "parameter": parameter,
    "buffer": nn.Buffer(torch.ones(1)),
    "dtypes": [torch.ones(1, dtype=d) for d in (torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64)],
    "others": [torch.float32, torch.Size([1, 2]), torch.device("cpu"), torch.bool],
    "version": torch.__version__.split("+")[0],
    "state": net.state_dict(),
    "net": net,
    "optimizer": optimizer,
    "schedule": torch.optim.lr_scheduler.StepLR(optimizer, 3),
    "attention": nn.MultiheadAttention(2, 1),
    "cell": nn.GRUCell(1, 1),
    "encoder": nn.TransformerEncoderLayer(2, 1, 2),
    "lazy": nn.parameter.UninitializedParameter(),
    "named": torch.max(torch.ones(2, 2), 0),
    "scaler": torch.amp.GradScaler("cpu"),
    "empty": torch.empty(0, 3),
}


def shown(value):
    if type(value).__name__ == "UninitializedParameter":
        return repr(value)
    if isinstance(value, torch.Tensor):
        marks = getattr(value, "foo", None), getattr(value, "_is_buffer", None)
        return type(value).__name__, str(value.dtype), value.stride(), value.requires_grad, value.tolist(), marks
    if isinstance(value, dict):
        return type(value).__name__, {key: shown(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(one) for one in value]
    if isinstance(value, (nn.Module, torch.optim.Optimizer, torch.amp.GradScaler, torch.optim.lr_scheduler.StepLR)):
        return repr(value).partition("0x")[0] if isinstance(value, nn.Module) else "", shown(value.state_dict())
    return str(value)
"""
NAMES = OBJECTS + "for v in objects.values():\n    assert b'retrograd' not in pickle.dumps(v), v\n"
WRITE = OBJECTS + "pickle.dump({k: pickle.dumps(v) for k, v in objects.items()}, open(sys.argv[1], 'wb'))\n"
READ = OBJECTS + "print({k: shown(pickle.loads(v)) for k, v in pickle.load(open(sys.argv[1], 'rb')).items()})\n"


def run(library: str, program: str, tmp_path: Path, *args: Any) -> str:
    path = tmp_path / "program.py"
    path.write_text(program)
    alias = ["-m", "retrograd", "run"] if library == "retrograd" else []
    done = subprocess.run(
        [sys.executable, *alias, str(path), *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.oracle
@pytest.mark.parametrize("writer", ["torch", "retrograd"])
def test_each_library_reads_the_other(writer: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "pickles"
    run(writer, WRITE, tmp_path, file)
    by_torch, by_retrograd = (run(reader, READ, tmp_path, file) for reader in ("torch", "retrograd"))
    assert by_retrograd == by_torch
    assert "'foo'" not in by_torch
    assert "lr" in by_torch


def test_names_are_torch_s_under_the_alias(tmp_path: Path) -> None:
    run("retrograd", NAMES, tmp_path)


def test_names_are_given_back(tmp_path: Path) -> None:
    program = """
import retrograd
from retrograd.optim.lr_scheduler import StepLR
before = StepLR.__module__
with retrograd.as_torch():
    print(StepLR.__module__, retrograd.nn.MultiheadAttention.__module__)
assert StepLR.__module__ == before and retrograd.nn.MultiheadAttention.__module__ == "retrograd.nn.modules.activation"
"""
    assert run("torch", program, tmp_path) == "torch.optim.lr_scheduler torch.nn.modules.activation\n"


def test_sharing_survives_under_the_alias(tmp_path: Path) -> None:
    program = """
import pickle, torch
base = torch.arange(4.0)
base, part = pickle.loads(pickle.dumps([base, base[2:]]))
base[3] = 50
print(part.tolist(), type(base).__module__)
"""
    assert run("retrograd", program, tmp_path) == "[2.0, 50.0] torch\n"


def test_memory_goes_beside_the_pickle() -> None:
    tensor = retrograd.arange(1000.0)
    beside: list[Any] = []
    text = pickle.dumps(tensor, 5, buffer_callback=beside.append)
    assert len(text) < 1000
    assert [each.raw().nbytes for each in beside] == [4000]
    assert pickle.loads(text, buffers=beside).equal(tensor)


@pytest.mark.parametrize(
    "value", [retrograd.max(retrograd.ones(2, 2), 0), retrograd.float32, retrograd.uint64, retrograd.bool]
)
def test_results_and_dtypes(value: Any) -> None:
    for made in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert type(made) is type(value)
        assert str(made) == str(value)


def test_helpers_of_torch_utils() -> None:
    from retrograd import _utils

    tensors = [retrograd.ones(2), retrograd.zeros(2, 2)]
    flat = _utils._flatten_dense_tensors(tensors)
    parts = _utils._unflatten_dense_tensors(flat, tensors)
    assert flat.tolist() == [1, 1, 0, 0, 0, 0]
    assert [tuple(part.shape) for part in parts] == [(2,), (2, 2)]
    assert parts[0].data_ptr() == flat.data_ptr()
    mixed = [retrograd.ones(2), retrograd.ones(2).double(), retrograd.ones(3)]
    groups = list(_utils._take_tensors(mixed, 8))
    assert [[(str(one.dtype), one.numel()) for one in group] for group in groups] == [
        [("torch.float32", 2)],
        [("torch.float32", 3)],
        [("torch.float64", 2)],
    ]
    made = _utils._rebuild_tensor_v2(flat._typed_storage(), 2, (2, 2), (2, 1), True, None)
    assert made.requires_grad
    assert made.data_ptr() == flat.data_ptr() + 8
    assert _utils._get_device_index("cuda:1") == 1
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        _utils._get_device_index("cpu")
