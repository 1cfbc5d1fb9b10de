"""Kernels on disk: only whole files of the user's own are loaded."""

from __future__ import annotations

import ctypes
import os

import pytest

from retrograd._native import cache, flat, machine

DIGEST = "ab" * 32
pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    where = tmp_path / "kernels"
    monkeypatch.setenv("RETROGRAD_CACHE", str(where))
    return where


def file_of(folder):
    (found,) = folder.iterdir()
    return found


def test_what_was_written_is_read(folder):
    assert cache.read(DIGEST) is None
    cache.write(DIGEST, b"code")
    assert cache.read(DIGEST) == b"code"
    assert file_of(folder).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("spoil", ["cut", "changed", "empty", "renamed"])
def test_a_corrupted_file_is_not_loaded(folder, spoil):
    cache.write(DIGEST, b"code that is long enough")
    file = file_of(folder)
    content = file.read_bytes()
    if spoil == "renamed":  # the code of another kernel
        file.rename(folder / ("cd" * 32 + ".kernel"))
        assert cache.read("cd" * 32) is None
        return
    file.write_bytes({"cut": content[:-1], "changed": content[:-1] + b"!", "empty": b""}[spoil])
    assert cache.read(DIGEST) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_not_loaded(folder, mode):
    cache.write(DIGEST, b"code")
    file_of(folder).chmod(mode)
    assert cache.read(DIGEST) is None


def test_a_folder_that_others_can_write_is_neither_read_nor_written(folder):
    cache.write(DIGEST, b"code")
    folder.chmod(0o777)
    assert cache.read(DIGEST) is None
    cache.write("cd" * 32, b"code")
    assert len(list(folder.iterdir())) == 1


def test_a_file_of_another_user_is_not_loaded(folder, monkeypatch):
    cache.write(DIGEST, b"code")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert cache.read(DIGEST) is None


def test_a_link_is_not_followed(folder, tmp_path):
    cache.write(DIGEST, b"code")
    file = file_of(folder)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.read(DIGEST) is None


def test_it_can_be_switched_off(folder, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CACHE", "0")
    cache.write(DIGEST, b"code")
    assert cache.read(DIGEST) is None
    assert not folder.exists()


def test_the_oldest_go_when_it_is_full(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 300)
    for k in range(5):
        cache.write(f"{k:064}", bytes(68))
        os.utime(folder / f"{k:064}.kernel", (k, k))
    cache.write("1" * 64, bytes(68))  # a digest by which nobody looks how much there is
    assert (folder / f"{4:064}.kernel").exists()
    assert len(list(folder.iterdir())) == 4
    assert not (folder / f"{0:064}.kernel").exists()


def test_files_of_the_user_in_the_same_folder_stay(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 100)
    folder.mkdir(mode=0o700)
    (folder / "thesis.tex").write_bytes(bytes(1000))
    os.utime(folder / "thesis.tex", (0, 0))
    cache.write(DIGEST, b"code")
    cache.write("cd" * 32, bytes(68))
    assert {file.name[:8] for file in folder.iterdir()} == {"thesis.t", "cdcdcdcd"}


def test_a_place_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RETROGRAD_CACHE", str(tmp_path / "file" / "kernels"))
    cache.write(DIGEST, b"code")
    assert cache.read(DIGEST) is None


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_not_loaded(folder, make):
    folder.mkdir(mode=0o700)
    make(folder / f"{DIGEST}.kernel")
    assert cache.read(DIGEST) is None


# ---- what a process loads: code in one piece and object files ----
NUMBER = """
define void @KERNEL(ptr %out, ptr %b, ptr %c, i64 %d, i64 %e) {
  store i8 VALUE, ptr %out
  ret void
}
"""
OURS, THEIRS = NUMBER.replace("VALUE", "42"), NUMBER.replace("VALUE", "7")


def answer(function):
    out = ctypes.create_string_buffer(1)
    function(out, None, None, 0, 0)
    return out.raw[0]


def loaded(monkeypatch):
    """Return the kernel as a new process finds it: what it computes, and whether it was compiled."""
    monkeypatch.setattr(machine, "_loaded", {})
    monkeypatch.setattr(machine._llvm(), "linker", None)  # which knows a name but once
    before = machine.Made.compiled
    return answer(machine.compiled(OURS)), machine.Made.compiled > before


def planted(name, content):
    """Return other code under the name of a kernel; as whole as a file can be."""
    digest = name.partition(".")[0]
    code = machine._llvm().machine_code(THEIRS, f"kernel_{digest[:32]}", as_it_is=False)
    assert code[:1] == content[32:33]
    cache.write(digest, code)


def another_owner(file, monkeypatch):
    if not os.getuid():  # only root can give files away
        os.chown(file, 12345, -1)
    else:
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)


def link(file):
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


SPOILED = {
    "written by others": lambda file, old, patch: file.chmod(0o602),
    "written by the group": lambda file, old, patch: file.chmod(0o620),
    "of another user": lambda file, old, patch: another_owner(file, patch),
    "a link": lambda file, old, patch: link(file),
    "in a folder that others write": lambda file, old, patch: file.parent.chmod(0o777),
    "with another checksum": lambda file, old, patch: file.write_bytes(old[:32] + file.read_bytes()[32:]),
    "cut": lambda file, old, patch: file.write_bytes(file.read_bytes()[:-1]),
    "cut within the checksum": lambda file, old, patch: file.write_bytes(file.read_bytes()[:20]),
    "of another processor": lambda file, old, patch: patch.setattr(machine, "_identity", lambda: "another one"),
    "of another kind": lambda file, old, patch: cache.write(file.stem, b"X" + file.read_bytes()[33:]),
    "of no kind": lambda file, old, patch: cache.write(file.stem, b""),
}


@pytest.fixture(params=["F", "O"], ids=["in one piece", "object file"])
def kind(request, monkeypatch):
    if not machine.is_available() or (request.param == "F" and not flat.is_possible()):
        pytest.skip("not made here")
    if request.param == "O":
        monkeypatch.setattr(flat, "is_possible", lambda: False)
    return request.param.encode()


def test_code_of_the_cache_runs(folder, monkeypatch, kind):
    assert loaded(monkeypatch) == (42, True)
    assert loaded(monkeypatch) == (42, False)
    file = file_of(folder)
    assert file.read_bytes()[32:33] == kind
    planted(file.name, file.read_bytes())
    assert loaded(monkeypatch) == (7, False)  # so that the test below can see it


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_code_never_runs(folder, monkeypatch, kind, how):
    loaded(monkeypatch)
    file = file_of(folder)
    content = file.read_bytes()
    planted(file.name, content)
    SPOILED[how](file, content, monkeypatch)
    assert loaded(monkeypatch) == (42, True)


def test_code_in_one_piece_is_compiled_anew_where_it_may_not_run(folder, monkeypatch):
    if not machine.is_available() or not flat.is_possible():
        pytest.skip("not made here")
    loaded(monkeypatch)
    monkeypatch.setattr(flat, "is_possible", lambda: False)
    assert loaded(monkeypatch) == (42, True)
    assert file_of(folder).read_bytes()[32:33] == b"O"


def test_the_identity_tells_processors_and_versions_apart(monkeypatch):
    """Whatever decides which instructions LLVM writes, or how code is called, is part of a kernel's name."""
    if not machine.is_available():
        pytest.skip("no kernels here")
    identity = machine._identity.__wrapped__
    here = identity()
    assert identity() == here
    features = dict(machine._multiarray_umath.__cpu_features__)
    some = next(name for name, has in features.items() if has)
    changes = [
        (machine, "_processor", lambda: "vendor_id : another"),
        (machine.sys, "platform", "another"),
        (machine._multiarray_umath, "__cpu_features__", features | {some: False}),
        (machine, "__file__", flat.__file__),
    ]
    found = {here}
    for owner, name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            found.add(identity())
    monkeypatch.setenv("RETROGRAD_NATIVE_CPU", "haswell")
    found.add(identity())
    assert len(found) == len(changes) + 2
