"""Saving, loading, pickling and copying: values, strides and shared memory survive, also from and to torch."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrograd


def everything(library: Any) -> dict[str, Any]:
    """Return containers with all kinds of tensors, some on one memory."""
    x = library.arange(6.0).reshape(2, 3)
    return {
        "base": x,
        "view": x.t()[1:],
        "sliced": x[:, ::2],
        "expanded": library.ones(3).expand(2, 3),
        "grad": x.clone().requires_grad_(),
        "half": [x.half(), x.bfloat16()],
        "whole": (x.long(), x.int(), x.bool(), x.byte()),
        "complex": library.tensor([1 + 2j]),
        "empty": library.zeros(0, 3),
        "scalar": library.tensor(3.0),
        "ordered": OrderedDict(k=x.double()),
        "others": [library.Size([1, 2]), library.float32, library.device("cpu"), 3, None, "text", {1, 2}],
    }


def described(value: Any) -> Any:
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        place = value.stride(), value.storage_offset()
        return str(value.dtype), tuple(value.shape), place, value.requires_grad, str(value.tolist())
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [described(one) for one in value]
    return str(value)


def through_file(writer: Any, reader: Any) -> Any:
    buffer = io.BytesIO()
    writer.save(everything(writer), buffer)
    buffer.seek(0)
    return reader.load(buffer)


WAYS: dict[str, Callable[[], Any]] = {
    "save": lambda: through_file(retrograd, retrograd),
    "deepcopy": lambda: copy.deepcopy(everything(retrograd)),
    "pickle": lambda: pickle.loads(pickle.dumps(everything(retrograd))),
    "to torch": lambda: through_file(retrograd, pytest.importorskip("torch")),
    "from torch": lambda: through_file(pytest.importorskip("torch"), retrograd),
}


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.oracle) if "torch" in w else w for w in WAYS])
def test_everything_survives(way: str) -> None:
    result = WAYS[way]()
    assert described(result) == described(everything(retrograd))
    result["base"][0, 1] = 50
    assert result["view"][0, 0].item() == 50  # one memory still


def test_parameters(tmp_path: Path) -> None:
    parameter = retrograd.Parameter(retrograd.ones(2))
    retrograd.save({"weight": parameter}, tmp_path / "model.pt")
    loaded = retrograd.load(tmp_path / "model.pt", map_location="cpu")["weight"]
    assert isinstance(loaded, retrograd.Parameter)
    assert loaded.requires_grad
    assert isinstance(copy.deepcopy(parameter), retrograd.Parameter)
    assert isinstance(pickle.loads(pickle.dumps(parameter)), retrograd.Parameter)


class Unsafe:
    """A class of the user."""


def test_weights_only() -> None:
    buffer = io.BytesIO()
    retrograd.save(Unsafe(), buffer)
    buffer.seek(0)
    name = f"{Unsafe.__module__}.Unsafe"
    with pytest.raises(pickle.UnpicklingError, match=f"Unsupported global: GLOBAL {name} was not an allowed global"):
        retrograd.load(buffer)
    buffer.seek(0)
    assert isinstance(retrograd.load(buffer, weights_only=False), Unsafe)
    buffer.seek(0)
    with retrograd.serialization.safe_globals([Unsafe]):
        assert isinstance(retrograd.load(buffer), Unsafe)


def test_refused_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not a ZIP archive"):
        retrograd.load(io.BytesIO(b"PK\x03\x04"))
    with pytest.raises(FileNotFoundError):
        retrograd.load(tmp_path / "missing.pt")
    with pytest.raises(AttributeError, match="seekable"):
        retrograd.load(5)
    with pytest.raises(AttributeError, match="file-like object with a 'write' attribute"):
        retrograd.save(retrograd.ones(2), 5)


def test_only_leaves_are_copied() -> None:
    y = retrograd.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)
    x = retrograd.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [3, 3]


def test_a_copied_array_is_an_array() -> None:
    array = retrograd.ones(2).numpy()
    tensor = retrograd.from_numpy(array)
    _, copied = copy.deepcopy([tensor, array])
    assert type(copied) is type(array)
