"""Files made to do harm: what torch refuses is refused, and a small file neither takes long nor asks for much memory."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd.tensor._files.safe_pickles import TAKEN
from tests.oracle import Raised
from tests.tensor.test_safe_loading import archive_of, loaded, storage

TERABYTE = b"\x8a\x06" + (1 << 40).to_bytes(6, "little")  # a number


def global_(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def with_opcode(code: int) -> bytes:
    return b"K\x01" + bytes([code]) + bytes(8)


def test_opcodes_that_torch_does_not_take() -> None:
    for code in {*range(256)} - {getattr(pickle, name)[0] for name in TAKEN}:
        assert loaded(retrograd, with_opcode(code)).words.strip() == f"Unsupported operand {code}"


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_every_opcode_as_torch() -> None:
    torch = pytest.importorskip("torch")
    for code in range(256):
        own, theirs = loaded(retrograd, with_opcode(code)), loaded(torch, with_opcode(code))
        # slips of torch, whose texts say nothing
        if isinstance(theirs, Raised) and theirs.kind in ("KeyError", "AssertionError", "IndexError"):
            assert own.kind in ("UnpicklingError", "IndexError"), code
        else:
            assert own == theirs, code


@pytest.mark.oracle
@pytest.mark.parametrize(
    "body",
    [
        global_("torch", "FloatStorage") + TERABYTE + b"\x85R",
        global_("torch", "FloatStorage") + b")R",
        global_("torch", "FloatStorage") + TERABYTE + b"\x85\x81",
        b"}(t\x81",
        b"](K\x01K\x01u",
        b"}(K\x01e",
    ],
)
def test_refused_in_torchs_words(body: bytes) -> None:
    torch = pytest.importorskip("torch")
    own, theirs = loaded(retrograd, body), loaded(torch, body)
    assert (own.kind, own.words.partition("\nHint")[0]) == (theirs.kind, theirs.words)


# ---- memory ----
@pytest.mark.parametrize(
    "name",
    ["__builtin__ bytearray", "torch.storage UntypedStorage", "torch.storage TypedStorage", "torch Tensor"],
)
@pytest.mark.parametrize("call", [b"R", b"\x81"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_number_is_not_memory(name: str, call: bytes, inside: bool) -> None:
    kind = global_(*name.split())
    body = kind + TERABYTE + b"\x85" + call
    if inside:
        body = global_("torch._tensor", "_rebuild_from_type_v2") + b"(" + kind + kind + TERABYTE + b"\x85NtR"
    with pytest.raises(pickle.UnpicklingError, match="asks for 1099511627776 elements"):
        retrograd.load(archive_of(body))


def announced(size: int, compress: bool = False) -> io.BytesIO:
    """Return an archive whose table says that a record is larger than the file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        archive.writestr(
            "a/data.pkl", b"\x80\x02" + storage(2).replace(b"M\x02\x00", b"J" + struct.pack("<i", size // 4)) + b"."
        )
        archive.writestr("a/byteorder", "little")
        archive.writestr("a/data/0", bytes(8))
        archive.infolist()[-1].file_size = size
        if not compress:
            archive.infolist()[-1].compress_size = size
    file.seek(0)
    return file


@pytest.mark.parametrize("compress", [False, True])
def test_a_record_is_not_larger_than_the_file(compress: bool) -> None:
    with pytest.raises(RuntimeError, match="4000000000 bytes are announced where"):
        retrograd.load(announced(4_000_000_000, compress))


def test_a_storage_of_the_old_format_is_not_larger_than_the_file() -> None:
    file = io.BytesIO()
    retrograd.save(retrograd.ones(3), file, _use_new_zipfile_serialization=False)
    count = file.getvalue().index(b"K\x03", file.getvalue().index(b"cpu"))
    hostile = file.getvalue()[:count] + TERABYTE + file.getvalue()[count + 2 :]
    with pytest.raises(
        RuntimeError, match=r"unexpected EOF, expected 439804\d+ more bytes. The file might be corrupted."
    ):
        retrograd.load(io.BytesIO(hostile))


def test_a_text_is_not_longer_than_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"\x80\x02X\xff\xff\xff\xffabc")
    with pytest.raises(EOFError, match="Ran out of input"):
        retrograd.load(path)


def test_the_state_of_a_tensor_is_inside_its_storage() -> None:
    body = global_("torch", "Tensor") + b")R(" + storage(2) + b"K\x00" + TERABYTE + b"\x85K\x01\x85tb"
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        retrograd.load(archive_of(body))


# ---- time ----
def doubled(times: int) -> bytes:
    """Return the pickle of a pair of a pair of a pair..., each twice."""
    return b"K\x01" + b"q\x00h\x00\x86" * times


LOADING = """
import pickle, retrograd, sys
try:
    retrograd.load(sys.argv[1])
except pickle.UnpicklingError as error:
    print("refused", len(str(error)))
"""
PAIRS = doubled(60)
DEEP = b"K\x01" + b"\x85" * 1_000_000
BOMBS = {
    "a key": b"}" + PAIRS + b"K\x01s",
    "keys": b"}(" + PAIRS + b"K\x01u",
    "a deep key": b"}" + DEEP + b"K\x01s",
    "an element of a set": global_("__builtin__", "set") + b"](" + PAIRS + b"e\x85R",
    "a function": PAIRS + b")R",
    "a class": PAIRS + b")\x81",
    "a persistent id": b"(" + b"X\x07\x00\x00\x00storage" + global_("torch", "FloatStorage") + PAIRS + b"NK\x02tQ",
    "copies": b"](" + b"K\x01" * 20_000 + b"eq\x01" + (global_("__builtin__", "set") + b"h\x01\x85R") * 20_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_does_not_take_long(bomb: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    path.write_bytes(archive_of(BOMBS[bomb]).getvalue())
    done = subprocess.run([sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("refused"), done.stderr[-300:]


def test_what_is_large_and_honest(tmp_path: Path) -> None:
    shared = tuple(range(300))
    honest: dict[Any, Any] = {(k, "a", (k, k)): {shared, k} for k in range(2_000)}
    honest["text"] = "long" * 50_000
    honest["bytes"] = bytes(100_000)
    retrograd.save(honest, tmp_path / "x.pt")
    assert retrograd.load(tmp_path / "x.pt") == honest
