"""Native threads that share the items of a kernel's call."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from retrograd import _thresholds
from retrograd._core.numpy_namespace import numpy_namespace as xp
from retrograd._native import machine, program, threads
from retrograd._native.program import formula

pytestmark = pytest.mark.skipif(
    not machine.is_available() or not threads.is_possible(), reason="needs llvmlite, Linux and x86-64"
)


@formula
def bent(xp, x):
    return x / (1 + xp.abs(x))


@formula
def summed(xp, x):
    return xp.sum(x * x, axis=(0,), keepdims=True)


@pytest.fixture
def use(monkeypatch):
    """Let calls of any size be shared among a number of threads."""
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)

    def use(count: int) -> None:
        for module in (program, threads):
            monkeypatch.setattr(module, "get_num_threads", lambda: count)

    return use


def test_every_item_is_done_once(use):
    """Many calls in a row, for which workers come early, late or not at all."""
    rng = np.random.default_rng(0)
    for count in (2, 5, 3, 1, 4):
        use(count)
        for size in rng.integers(2, 70_000, 60):
            x = rng.standard_normal(size).astype(np.float32)
            np.testing.assert_array_equal(bent.large(xp, [x], {}), x / (1 + np.abs(x)))
    assert len(threads._pool.workers) >= 4  # other tests may have asked for more


def test_sums_have_the_same_bits_whoever_takes_which_part(use):
    use(3)
    x = np.random.default_rng(0).standard_normal((3000, 70)).astype(np.float32)
    found = {summed.large(xp, [x], {}).tobytes() for _ in range(50)}
    assert len(found) == 1


@pytest.mark.parametrize("count", [2, 3, 7])
def test_chunks_begin_where_those_of_one_thread_do(use, count):
    """Partial sums have a row for each chunk, which is found by where the chunk begins."""
    use(count)
    done = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def function(cells, sizes, numbers, low, high):
        done.append((low, high))

    function.address = ctypes.cast(function, ctypes.c_void_p).value
    for low, high, chunk in [(0, 16, 1), (0, 17, 3), (5, 100, 7), (3, 5, 1), (0, 10, 100), (4, 4, 0), (0, 1, 1)]:
        done.clear()
        threads.share(function, b"", b"", None, low, high, chunk)
        assert sorted(done) == [(at, min(at + chunk, high)) for at in range(low, high, chunk or 1)]


def test_more_threads_are_asked_for_than_work_on_one_call():
    code = """
import ctypes
import retrograd as torch
from retrograd._native import threads
x = torch.randn(1 << 21)
torch.set_num_threads(1)
expected = x.sigmoid(), x.reshape(1 << 11, 1 << 10).sum(0)
torch.set_num_threads(300)
for _ in range(3):
    assert torch.equal(x.sigmoid(), expected[0])
    torch.testing.assert_close(x.reshape(1 << 11, 1 << 10).sum(0), expected[1])
assert not threads.together(None, 0, 300)
print(len(threads._pool.workers))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert 2 <= int(ended.stdout) < threads._MOST


def test_threads_of_the_user_do_not_wait_for_each_other(use):
    use(2)
    wrong = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal(50_000).astype(np.float32)
        wrong.extend(not np.array_equal(bent.large(xp, [x], {}), x / (1 + np.abs(x))) for _ in range(100))

    users = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(wrong) == 400
    assert not any(wrong)


def test_workers_sleep_when_there_is_nothing_to_do(use):
    use(2)
    bent.large(xp, [np.ones(50_000, np.float32)], {})
    state = Path(f"/proc/self/task/{threads._pool.workers[0].native_id}/stat")
    for _ in range(200):
        if state.read_text().rpartition(")")[2].split()[0] == "S":
            break
        time.sleep(0.05)
    else:
        pytest.fail("a worker never sleeps")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own(use):
    use(2)
    x = np.linspace(-3, 3, 50_000, dtype=np.float32)
    expected = bent.large(xp, [x], {})
    child = os.fork()
    if not child:
        same = threads._pool is None and np.array_equal(bent.large(xp, [x], {}), expected)
        os._exit(0 if same and threads._pool is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_process_ends_while_workers_look_for_work():
    code = """
import atexit
import retrograd as torch
torch.set_num_threads(3)
x = torch.ones(1 << 20)
atexit.register(lambda: print(torch.equal(x.sigmoid(), y)))
y = x.sigmoid()
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_without_native_workers_threads_of_python_share_a_call(use, monkeypatch):
    use(2)
    monkeypatch.setattr(threads, "is_possible", lambda: False)
    x = np.linspace(-3, 3, 70_001, dtype=np.float32)
    np.testing.assert_array_equal(bent.large(xp, [x], {}), x / (1 + np.abs(x)))
