"""Kernels on disk: only whole files of the user's own are loaded."""

from __future__ import annotations

import os

import pytest

from retrograd._native import cache

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
