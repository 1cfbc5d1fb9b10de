"""torch's old file format, from before zip files: read and written, also from and to torch."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

import retrograd
from tests.tensor.test_saving import described, everything


def through_old_file(writer: Any, reader: Any, value: Any = None, **options: Any) -> Any:
    buffer = io.BytesIO()
    writer.save(everything(writer) if value is None else value, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    return reader.load(buffer, **options)


WAYS = {"own": (False, False), "to torch": (False, True), "from torch": (True, False)}


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.oracle) if "torch" in w else w for w in WAYS])
def test_everything_survives(way: str) -> None:
    writer, reader = (pytest.importorskip("torch") if is_torch else retrograd for is_torch in WAYS[way])
    result = through_old_file(writer, reader)
    assert described(result) == described(everything(retrograd))
    result["base"][0, 1] = 50
    assert result["view"][0, 0].item() == 50  # one memory still


def test_objects_one_after_the_other() -> None:
    buffer = io.BytesIO()
    for value in ([1], retrograd.arange(100), "text"):
        retrograd.save(value, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert retrograd.load(buffer) == [1]
    assert retrograd.load(buffer).sum().item() == 4950
    assert retrograd.load(buffer) == "text"
    with pytest.raises(EOFError):
        retrograd.load(buffer)


class Net(retrograd.nn.Module):
    """A module of the user."""


def test_modules_have_their_source() -> None:
    buffer = io.BytesIO()
    retrograd.save(Net(), buffer, _use_new_zipfile_serialization=False)
    assert b"A module of the user" in buffer.getvalue()
    assert isinstance(retrograd.load(io.BytesIO(buffer.getvalue()), weights_only=False), Net)
    changed = buffer.getvalue().replace(b"A module of the user", b"A module of the USER")
    with pytest.warns(retrograd.serialization.SourceChangeWarning, match="has changed"):
        retrograd.load(io.BytesIO(changed), weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match="Net was not an allowed global"):
        retrograd.load(io.BytesIO(buffer.getvalue()))
    with (
        retrograd.serialization.safe_globals([Net]),
        pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage is allowed"),
    ):
        retrograd.load(io.BytesIO(buffer.getvalue()))


def test_damaged_files() -> None:
    buffer = io.BytesIO()
    retrograd.save(retrograd.ones(3), buffer, _use_new_zipfile_serialization=False)
    whole = buffer.getvalue()
    for missing, text in [(4, "expected 4 more bytes"), (12, "expected 12 more bytes"), (16, "expected 4 more bytes")]:
        with pytest.raises(RuntimeError, match=text):
            retrograd.load(io.BytesIO(whole[:-missing]))
    with pytest.raises(RuntimeError, match="Invalid magic number"):
        retrograd.load(io.BytesIO(pickle.dumps([1, 2], 2)))
    number = retrograd.serialization.MAGIC_NUMBER
    with pytest.raises(RuntimeError, match="Invalid protocol version: 1000"):
        retrograd.load(io.BytesIO(pickle.dumps(number, 2) + pickle.dumps(1000, 2)))
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        retrograd.load(io.BytesIO(whole), mmap=True)


def test_a_part_of_a_storage() -> None:
    """Files from before torch 0.4 have storages that are parts of others."""
    buffer = io.BytesIO()
    retrograd.save(retrograd.arange(4.0), buffer, _use_new_zipfile_serialization=False)
    whole = buffer.getvalue()
    count_then_nothing = b"K\x04N"
    assert whole.count(count_then_nothing) == 1
    part = b"K\x04(X\x01\x00\x00\x00vK\x01K\x02t"  # of four elements, two from the second on
    changed = whole.replace(count_then_nothing, part).replace(b"K\x00K\x04\x85", b"K\x00K\x02\x85")
    assert retrograd.load(io.BytesIO(changed)).tolist() == [1, 2]
