"""Files that cannot be written or read, where storages go, archives in the middle of files, and mapped files."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd


def saved(value: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    retrograd.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


def test_errors_of_save(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .*no does not exist\."):
        retrograd.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(RuntimeError, match="open file failed with strerror: Is a directory"):
        retrograd.save(1, tmp_path)
    with pytest.raises(FileNotFoundError):
        retrograd.save(1, tmp_path / "no" / "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        retrograd.save(lambda x: x, io.BytesIO())
    with pytest.raises(TypeError, match="cannot pickle 'module' object"):
        retrograd.save(io, io.BytesIO())
    with pytest.raises(TypeError, match="string argument expected"):
        retrograd.save(1, io.StringIO())


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    retrograd.save([1], path)
    for new in (True, False):
        with pytest.raises(AttributeError):
            retrograd.save([lambda x: x], path, _use_new_zipfile_serialization=new)
    assert retrograd.load(path) == [1]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")  # as torch warns
def test_errors_of_load(tmp_path: Path) -> None:
    whole = saved({"a": 1}).getvalue()
    cases: list[tuple[bytes, type[Exception], str]] = [
        (b"", EOFError, "Ran out of input"),
        (b"PK\x03\x04", RuntimeError, "not a ZIP archive"),
        (whole[: len(whole) // 2], RuntimeError, "failed finding central directory"),
        (pickle.dumps([1, 2], 4), pickle.UnpicklingError, "Unsupported operand 149"),
        (pickle.dumps([1, 2], 2), RuntimeError, "Invalid magic number"),
    ]
    for content, kind, text in cases:
        with pytest.raises(kind, match=text):
            retrograd.load(io.BytesIO(content))
    with pytest.raises(IsADirectoryError):
        retrograd.load(tmp_path)
    (tmp_path / "text").write_text("text")
    with open(tmp_path / "text") as file, pytest.raises(TypeError, match="must be str, not bytes"):
        retrograd.load(file)
    for name, text in [("a", "file in archive is not in a subdirectory: a"), ("a/b", "locating file data.pkl")]:
        bare = io.BytesIO()
        with zipfile.ZipFile(bare, "w") as archive:
            archive.writestr(name, "b")
        bare.seek(0)
        with pytest.raises(RuntimeError, match=text):
            retrograd.load(bare)


# ---- where storages go ----
def test_map_location() -> None:
    file = saved({"w": retrograd.ones(2)})

    def load(place: Any) -> Any:
        file.seek(0)
        return retrograd.load(file, map_location=place)["w"]

    asked = []
    for place in (None, "cpu", retrograd.device("cpu"), {"cuda:0": "cpu"}, lambda storage, tag: None):
        assert load(place).tolist() == [1, 1]
    load(lambda storage, tag: asked.append((tag, storage.nbytes(), type(storage).__name__)))
    assert asked == [("cpu", 8, "UntypedStorage")]
    with pytest.raises(
        RuntimeError, match=r"restore data location of torch\.storage\.UntypedStorage \(tagged with foo\)"
    ):
        load("foo")
    with pytest.raises(TypeError, match="'wrap_storage' must be UntypedStorage, but got <class 'int'>"):
        load(lambda storage, tag: 5)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        load(5)


@pytest.mark.skipif(retrograd.cuda.is_available(), reason="there is a CUDA device")
def test_a_file_from_a_gpu_needs_a_place() -> None:
    there = saved(retrograd.ones(2)).getvalue().replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
    moved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(retrograd.ones(2)).getvalue())) as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            content = old.read(name).replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(name, content)
    assert there
    for options in ({}, {"map_location": "cuda"}, {"map_location": retrograd.device("cuda", 0)}):
        moved.seek(0)
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            retrograd.load(moved, **options)
    moved.seek(0)
    assert retrograd.load(moved, map_location="cpu").tolist() == [1, 1]


def test_places_of_the_user() -> None:
    from retrograd.tensor._files import locations as _locations

    before = list(_locations._registered)
    try:
        retrograd.serialization.register_package(
            5, lambda storage: "mars", lambda storage, tag: storage.fill_(0) if tag == "mars" else None
        )
        file = saved(retrograd.ones(2))
        assert b"mars" in file.getvalue()
        assert retrograd.load(file).tolist() == [0, 0]
    finally:
        _locations._registered[:] = before
    assert retrograd.serialization.location_tag(retrograd.ones(1).untyped_storage()) == "cpu"


# ---- archives in files ----
def test_two_objects_in_one_file() -> None:
    """Read at the beginning, torch finds the first if both archives have one size; the second is read where it begins."""
    for second, works in (([2], True), (list(range(100)), False)):
        file = io.BytesIO()
        retrograd.save([1], file)
        between = file.tell()
        retrograd.save(second, file)
        file.seek(between)
        assert retrograd.load(file) == second
        file.seek(0)
        if works:
            assert retrograd.load(file) == [1]
        else:
            with pytest.raises(RuntimeError, match="invalid header or archive is corrupted"):
                retrograd.load(file)


@pytest.mark.oracle
def test_an_archive_in_the_middle_of_a_file() -> None:
    torch = pytest.importorskip("torch")
    for writer in (torch, retrograd):
        for reader in (torch, retrograd):
            file = io.BytesIO()
            file.write(b"hello")
            writer.save(writer.arange(3), file)
            file.seek(5)
            assert reader.load(file).tolist() == [0, 1, 2]


class OnlyWrites:
    """A stream that can neither seek nor tell."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: Any) -> int:
        self.content += bytes(data)
        return len(bytes(data))


@pytest.mark.oracle
def test_a_stream() -> None:
    torch = pytest.importorskip("torch")
    stream = OnlyWrites()
    retrograd.save(retrograd.arange(3), stream)
    assert retrograd.load(io.BytesIO(stream.content)).tolist() == [0, 1, 2]
    assert torch.load(io.BytesIO(stream.content)).tolist() == [0, 1, 2]


# ---- mapped files ----
def test_mapped(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    base = retrograd.arange(6.0)
    retrograd.save([base, base[2:], retrograd.empty(0), retrograd.ones(3, dtype=retrograd.bfloat16)], path)
    first, part, empty, half = retrograd.load(path, mmap=True)
    first[3] = 50  # stays in this process
    assert part.tolist() == [2, 50, 4, 5]
    assert (empty.numel(), half.tolist()) == (0, [1, 1, 1])
    assert first.data_ptr() % 64 == 0
    assert retrograd.load(path)[0].tolist() == [0, 1, 2, 3, 4, 5]
    with retrograd.serialization.set_default_mmap_options(1):
        retrograd.load(path, mmap=True)[0].fill_(7)
    assert retrograd.load(path)[0].tolist() == [7] * 6
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        retrograd.load(saved(1), mmap=True)


@pytest.mark.oracle
def test_torch_maps_what_retrograd_wrote(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    retrograd.save(retrograd.arange(6.0), tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", mmap=True)
    assert loaded.tolist() == [0, 1, 2, 3, 4, 5]
    assert loaded.data_ptr() % 64 == 0


def test_other_byte_orders() -> None:
    plain = saved(retrograd.arange(3.0))
    swapped = io.BytesIO()
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(swapped, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("data/0"):
                content = np.frombuffer(content, "<f4").astype(">f4").tobytes()
            new.writestr(name, b"big" if name.endswith("byteorder") else content)
    swapped.seek(0)
    assert retrograd.load(swapped).tolist() == [0, 1, 2]


def test_without_memories() -> None:
    with retrograd.serialization.skip_data():
        file = saved(retrograd.ones(3))
    assert retrograd.load(file).tolist() == [0, 0, 0]
    file.seek(0)
    with retrograd.serialization.skip_data():
        assert retrograd.load(file).shape == (3,)
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True"):
            saved(1, _use_new_zipfile_serialization=False)


@pytest.mark.oracle
def test_public_names() -> None:
    torch = pytest.importorskip("torch")
    missing = [name for name in torch.serialization.__all__ if not hasattr(retrograd.serialization, name)]
    assert missing == []
