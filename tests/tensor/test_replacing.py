"""A save that is cut off leaves the old file; one that is not leaves the new one as the old one was: links, permissions, places."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import retrograd
from retrograd.tensor._files.replacing import Replacement

KILLING = """
import os, random, retrograd, signal, sys, time
path, new, kills = sys.argv[1], bool(int(sys.argv[2])), int(sys.argv[3])

def save(number):
    retrograd.save(retrograd.full((200_000,), float(number)), path, _use_new_zipfile_serialization=new)

begin = time.perf_counter()
save(0)
taken = time.perf_counter() - begin
lost = 0
for kill in range(1, kills + 1):
    child = os.fork()
    if not child:
        while True:
            save(kill)
    time.sleep(random.Random(kill).uniform(0, 3 * taken))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found = retrograd.load(path)
        lost += not bool((found == found[0]).all()) or found.shape != (200_000,)
    except Exception:
        lost += 1
        save(0)
print(lost, len(os.listdir(os.path.dirname(path))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of Unix")
@pytest.mark.parametrize("new", [True, False])
def test_killed_during_a_save(new: bool, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLING, str(tmp_path / "x.pt"), str(int(new)), "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lost, files = map(int, done.stdout.split())
    assert lost == 0
    if hasattr(os, "O_TMPFILE"):
        assert files < 20  # all but a few leave nothing behind


def write_half(path: Path, failure: type[BaseException], beside: int) -> None:
    with Replacement(path) as file:
        file.write(b"half")
        assert len(os.listdir(path.parent)) == 1 + beside
        raise failure("half")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without names of Linux")
def test_a_failed_block_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    retrograd.save([1], path)
    for failure in (ValueError, KeyboardInterrupt):
        with pytest.raises(failure):
            write_half(path, failure, beside=0)
    assert retrograd.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_without_unnamed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["retrograd.tensor._files.replacing"], "_UNNAMED", None)
    path = tmp_path / "x.pt"
    for value in ([1], [2]):
        retrograd.save(value, path)
        assert retrograd.load(path) == value
    with pytest.raises(ValueError, match="half"):
        write_half(path, ValueError, beside=1)
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    mask = os.umask(0o027)
    try:
        retrograd.save([1], path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640  # as of any new file
        path.chmod(0o604)
        retrograd.save([2], path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604  # as it was
    finally:
        os.umask(mask)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_where_nothing_may_be_written(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    retrograd.save([2], path)
    path.chmod(0o400)
    with pytest.raises(RuntimeError, match="open file failed with strerror: Permission denied"):
        retrograd.save([3], path)
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        retrograd.save([4], path)  # nothing new can be made here
        assert retrograd.load(path) == [4]
        with pytest.raises(RuntimeError, match="open file failed with strerror: Permission denied"):
            retrograd.save([4], tmp_path / "y.pt")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="links of Unix")
def test_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path, link, nowhere = tmp_path / "folder" / "x.pt", tmp_path / "link.pt", tmp_path / "nowhere.pt"
    retrograd.save([1], path)
    link.symlink_to(path)
    retrograd.save([2], link)
    assert link.is_symlink()
    assert retrograd.load(path) == [2]
    nowhere.symlink_to(tmp_path / "folder" / "new.pt")
    retrograd.save([3], nowhere)
    assert retrograd.load(tmp_path / "folder" / "new.pt") == [3]
    other = tmp_path / "other.pt"
    other.hardlink_to(path)
    retrograd.save([4], path)
    assert retrograd.load(path) == [4]
    assert retrograd.load(other) == [2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    retrograd.save([1], path)
    reader.join()
    assert retrograd.load(io.BytesIO(found[0])) == [1]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="a name that Unix has")
def test_the_output_of_a_process(tmp_path: Path) -> None:
    program = "import retrograd; retrograd.save([1], '/dev/stdout')"
    piped = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert retrograd.load(io.BytesIO(piped.stdout)) == [1]
    path = tmp_path / "x.pt"
    with path.open("wb") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
        assert os.fstat(file.fileno()).st_ino == path.stat().st_ino
    assert retrograd.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_mapped_file_is_replaced_while_tensors_lie_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    retrograd.save(retrograd.arange(10_000.0), path)
    mapped = retrograd.load(path, mmap=True)
    retrograd.save(retrograd.zeros(2), path)
    assert mapped[-1].item() == 9_999
    retrograd.save(mapped, path)
    assert retrograd.load(path)[-1].item() == 9_999
