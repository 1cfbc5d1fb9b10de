"""What a file read with `weights_only` cannot do: run code, or touch what is not its own."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import assert_same_answer, outcome


def archive_of(body: bytes) -> io.BytesIO:
    """Return a file as torch.save would write it, with a pickle of one's own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + body + b".")
        archive.writestr("a/byteorder", "little")
        archive.writestr("a/data/0", bytes(8))
        archive.writestr("a/version", "3\n")
    file.seek(0)
    return file


def reason(error: BaseException) -> str:
    """Return what an unpickler found wrong, without how to allow it."""
    found = str(error).partition("WeightsUnpickler error:")[2] or str(error).partition("trusted source.")[2]
    text = (found or str(error)).partition("\n\nCheck")[0]
    return text.replace("retrograd.tensor._base.TensorMeta", "torch._C._TensorMeta")


def loaded(library: Any, body: bytes) -> Any:
    return outcome(lambda: str(library.load(archive_of(body))), words=reason, ignore_warnings=False)


PICKLES = {
    "a function of os": b"cos\nsystem\n",
    "a function of posix": b"cposix\nsystem\n",
    "eval": b"c__builtin__\neval\n",
    "a class": b"csubprocess\nPopen\n",
    "a method": b"ctorch\nTensor.add\n",
    "a call of a dictionary": b"}(tR",
    "the state of a dictionary": b"}}b",
    "the state of a class": b"ctorch\nTensor\n}b",
    "the slots of a class": b"ctorch\nTensor\nN}X\x03\x00\x00\x00addK\x01s\x86b",
    "the state of a function": b"ctorch._utils\n_rebuild_tensor_v2\n}b",
    "an attribute of an OrderedDict": b"ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00aK\x01sb",
    "an instance of old": b"(i__builtin__\nset\n",
    "an object of old": b"(c__builtin__\nset\no",
    "an extension": b"\x82\x01",
    "a persistent id in words": b"Pfoo\n",
    "a persistent id that is text": b"X\x01\x00\x00\x00aQ",
    "the class of a module": b"(X\x06\x00\x00\x00modulectorch\nTensor\ntQ",
    "an element of a list": b"]K\x00K\x01s",
    "an element of a class": b"ctorch\nTensor\nK\x00K\x01s",
    "more of a set": b"c__builtin__\nset\n)RK\x01a",
    "a defaultdict": b"ccollections\ndefaultdict\n)R",
    "a set": b"c__builtin__\nset\n(tR",
    "a Counter": b"ccollections\nCounter\n)R",
    "bytes": b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x06\x00\x00\x00latin1\x86R",
}


@pytest.mark.oracle
@pytest.mark.parametrize("pickle_", PICKLES)
def test_answers_as_torch(pickle_: str) -> None:
    assert_same_answer(lambda library: loaded(library, PICKLES[pickle_]))


def storage(count: int) -> bytes:
    size = b"M" + count.to_bytes(2, "little")
    return b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + size + b"tQ"


def tensor_of(count: int, offset: bytes, size: bytes, stride: bytes) -> bytes:
    rest = storage(count) + offset + size + b"\x85" + stride + b"\x85\x89}"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + rest + b"tR"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (tensor_of(2, b"K\x00", b"K\x03", b"K\x01"), "out of bounds for storage of size 8"),
        (tensor_of(2, b"K\x00", b"K\x02", b"K\x09"), "out of bounds for storage of size 8"),
        (tensor_of(2, b"K\x02", b"K\x01", b"K\x01"), "out of bounds for storage of size 8"),
        (tensor_of(2, b"J\xff\xff\xff\xff", b"K\x01", b"K\x01"), "invalid storage offset -1"),
        (tensor_of(2, b"K\x01", b"K\x02", b"J\xff\xff\xff\xff"), "Storage size calculation overflowed"),
        (tensor_of(2, b"K\x00", b"G\x7f\xf8\x00\x00\x00\x00\x00\x00", b"K\x01"), "cannot be interpreted as an integer"),
        (tensor_of(900, b"K\x00", b"M\x84\x03", b"K\x01"), "it has 8 bytes where 3600 should be"),
        (b"(X\x07\x00\x00\x00storageccollections\nOrderedDict\n)RX\x01\x00\x00\x000NK\x02tQ", "class of a storage"),
    ],
)
def test_memory_outside_of_a_storage(body: bytes, text: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=text):
        retrograd.load(archive_of(body))


def test_an_object_that_looks_like_a_storage() -> None:
    fake = b"ccollections\nOrderedDict\n)R}(X\x05\x00\x00\x00dtypectorch\nfloat32\nX\x07\x00\x00\x00untypedc__builtin__\nset\nub"
    with pytest.raises(AttributeError, match="has no attribute 'dtype'"):
        retrograd.load(
            archive_of(b"ctorch._utils\n_rebuild_tensor_v2\n(" + fake + b"K\x00)){}tR".replace(b"{}", b"\x89}"))
        )


def test_attributes_that_numpy_would_believe() -> None:
    interface = {"data": (1 << 20, False), "shape": (8,), "typestr": "<f4", "version": 3}
    tensor = retrograd.ones(2)
    tensor.__dict__["__array_interface__"] = interface
    buffer = io.BytesIO()
    retrograd.save(tensor, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="__array_interface__"):
        retrograd.load(buffer)


def test_attributes_leave_memory_alone() -> None:
    tensor = retrograd.ones(2)
    tensor.__dict__["_array"] = np.zeros(1).tolist()
    buffer = io.BytesIO()
    retrograd.save(tensor, buffer)
    buffer.seek(0)
    assert retrograd.load(buffer).tolist() == [1, 1]


# ---- who decides ----
class Traitor:
    """Runs code where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


@pytest.fixture
def traitor(tmp_path: Path) -> tuple[io.BytesIO, Path]:
    file, path = io.BytesIO(), tmp_path / "made"
    retrograd.save(Traitor(path), file)
    file.seek(0)
    return file, path


def test_the_environment_forces_safety(traitor: tuple[io.BytesIO, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    file, path = traitor
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="whose module posix is blocked"):
        retrograd.load(file, weights_only=False)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        retrograd.load(file, weights_only=False, pickle_module=pickle)
    assert not path.exists()
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD`"):
        retrograd.load(file)
    assert not path.exists()


def test_the_environment_waives_safety(traitor: tuple[io.BytesIO, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    file, path = traitor
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        retrograd.load(file, weights_only=True)
    assert not path.exists()
    file.seek(0)
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        retrograd.load(file)
    assert path.exists()


def test_a_pickle_module_is_not_safe(traitor: tuple[io.BytesIO, Path]) -> None:
    file, path = traitor
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        retrograd.load(file, pickle_module=pickle, weights_only=True)
    with pytest.raises(pickle.UnpicklingError):
        retrograd.load(file)
    assert not path.exists()
    file.seek(0)
    retrograd.load(file, pickle_module=pickle)  # as torch: who names a module trusts the file
    assert path.exists()


def test_names_in_files() -> None:
    before = retrograd.serialization.get_safe_globals()  # distributed tensors add theirs
    buffer = io.BytesIO()
    retrograd.save([argparse.Namespace(a=1), retrograd.ones(1)], buffer)
    buffer.seek(0)
    assert retrograd.serialization.get_unsafe_globals_in_checkpoint(buffer) == ["argparse.Namespace"]
    with retrograd.serialization.safe_globals([argparse.Namespace]):
        buffer.seek(0)
        assert retrograd.load(buffer)[0] == argparse.Namespace(a=1)
    with retrograd.serialization.safe_globals([(argparse.Namespace, "x.Y")]):
        assert retrograd.load(archive_of(b"cx\nY\n)\x81")) == argparse.Namespace()
    assert retrograd.serialization.get_safe_globals() == before
    with pytest.raises(ValueError, match="Expected either a global or a tuple"):
        retrograd.serialization.add_safe_globals([(1, 2)])


def test_arguments_of_the_unpickler() -> None:
    buffer = io.BytesIO()
    retrograd.save(1, buffer)
    buffer.seek(0)
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        assert retrograd.load(buffer, encoding="latin1") == 1


@pytest.mark.parametrize("value", [range(3), int, {"a": slice(1, 2)}, Exception("x")])
def test_names_of_python_2_are_mapped_back(value: Any) -> None:
    kinds = [int, range, slice, Exception]
    file = io.BytesIO()
    retrograd.save(value, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[(int|range|slice|Exception)\]\)"):
        retrograd.load(file)
    file.seek(0)
    with retrograd.serialization.safe_globals(kinds):
        assert repr(retrograd.load(file)) == repr(value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"garbage", "Unsupported operand 103"),
        (b"<html>404</html>", "Unsupported operand 60"),
        (b"I1\n.", "Unsupported operand 73"),
        (b"hello world\n", "Memo value not found at index 101"),
    ],
)
def test_what_is_no_checkpoint(content: bytes, why: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=f"^Weights only load failed(.|\n)*{why}"):
        retrograd.load(io.BytesIO(content))
