"""Worker processes: how they are started and ended, what they leave behind, how batches travel."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils.data import DataLoader, TensorDataset
from retrograd.utils.data._utils import channel as channels
from tests.utils.data.samples import Arrays, Drawing, Failing, Squares, Unreadable, as_they_are, give_unreadable

ROOT = Path(__file__).parents[3]


def pids(loader_iter: Any) -> list[int]:
    return [one.pid for one in loader_iter._workers]


def is_running(pid: int) -> bool:
    """Tell whether a process is there and not only waiting to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(numbers: list[int], within: float = 8.0) -> bool:
    limit = time.monotonic() + within
    while any(map(is_running, numbers)) and time.monotonic() < limit:
        time.sleep(0.02)
    return not any(map(is_running, numbers))


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# ---- starting ----
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_ways_to_start(method: str) -> None:
    retrograd.manual_seed(4)
    loader = DataLoader(Squares(6), 2, shuffle=True, num_workers=2, multiprocessing_context=method)
    ours = [[part.tolist() for part in batch] for batch in loader]
    retrograd.manual_seed(4)
    assert ours == [[part.tolist() for part in batch] for batch in DataLoader(Squares(6), 2, shuffle=True)]


def test_spawned_workers_draw_the_same_numbers() -> None:
    def drawn(context: Any) -> Any:
        retrograd.manual_seed(3)
        options = {"multiprocessing_context": context, "collate_fn": as_they_are}
        return list(DataLoader(Drawing(_Library()), 2, num_workers=2, **options))

    assert drawn(multiprocessing.get_context("spawn")) == drawn("fork")


class _Library:
    """Stands for the module, which cannot be pickled."""

    def rand(self, *shape: Any) -> Any:
        return retrograd.rand(*shape)


def test_what_cannot_be_sent_to_a_new_process() -> None:
    loader = DataLoader(Squares(6), num_workers=1, multiprocessing_context="spawn", collate_fn=lambda batch: batch)
    with pytest.warns(UserWarning, match="Got pickle error"), pytest.raises(Exception, match=r"lambda|local object"):
        iter(loader)


def test_no_batches_ahead() -> None:
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(DataLoader(Squares(6), num_workers=1, prefetch_factor=0))


def test_under_the_name_of_torch() -> None:
    """A program that imports torch loads with workers, and finds the paths that people import from."""
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import default_collate
from torch.utils.data._utils.collate import default_collate as same, default_convert
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import RandomSampler
class Own(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, index):
        import torch
        assert torch.utils.data.get_worker_info().num_workers == 2
        return torch.tensor([index])
assert same is default_collate
print(torch.cat(list(DataLoader(Own(), 2, num_workers=2))).tolist())
"""
    code = f"import retrograd; retrograd.as_torch(); exec({program!r}, {{'__name__': '__main__'}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("[[0], [1], [2], [3]]\n", "")


# ---- ending ----
def test_an_epoch_ends_its_workers() -> None:
    before = open_files()
    batches = iter(DataLoader(Squares(6), 2, num_workers=2))
    numbers = pids(batches)
    assert len(list(batches)) == 3
    assert not any(map(is_running, numbers))
    assert next(batches, "end") == "end"
    del batches
    assert open_files() == before


def test_an_iterator_left_early_leaves_nothing() -> None:
    before = open_files()
    batches = iter(DataLoader(Arrays(40, (1000, 100)), 2, num_workers=2))
    numbers = pids(batches)
    next(batches)
    start = time.monotonic()
    del batches
    assert gone(numbers)
    assert time.monotonic() - start < 4
    assert open_files() == before
    assert not [name for name in os.listdir("/dev/shm") if "retrograd" in name]


def test_an_exception_in_the_loop_leaves_nothing() -> None:
    numbers = []

    def train() -> None:
        batches = iter(DataLoader(Squares(100), 2, num_workers=2))
        numbers.extend(pids(batches))
        for _ in batches:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        train()
    assert gone(numbers)


def test_persistent_workers_stay_and_go() -> None:
    loader = DataLoader(Squares(6), 2, num_workers=2, persistent_workers=True)
    first = pids(iter(loader))
    for _ in range(2):
        batches = iter(loader)
        assert [batch[0].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
        assert pids(batches) == first
    del batches, loader
    assert gone(first)


def test_what_is_on_the_way_from_an_epoch_left_early_is_lost() -> None:
    order: list[int] = []
    loader = DataLoader(
        Squares(60), 1, sampler=order, num_workers=1, prefetch_factor=8, persistent_workers=True, collate_fn=as_they_are
    )
    for epoch in range(3):
        order[:] = range(20 * epoch, 20 * epoch + 20)
        batches = iter(loader)
        seen = [batch[0][0] for batch in itertools.islice(batches, 3)]
        assert seen == order[:3]
    assert [batch[0][0] for batch in batches] == order[3:]


def test_a_stuck_worker_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.utils.data.dataloader.CHECK_INTERVAL", 0.3)
    batches = iter(DataLoader(Failing("sleep"), 1, num_workers=1, sampler=[3]))
    numbers = pids(batches)
    time.sleep(0.2)
    del batches
    assert gone(numbers)


def test_the_timeout() -> None:
    batches = iter(DataLoader(Failing("sleep"), 1, num_workers=1, sampler=[0, 3], timeout=2))
    assert next(batches).tolist() == [0]
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 2 seconds"):
        next(batches)
    for number in pids(batches):
        os.kill(number, signal.SIGKILL)


CAUSES = {
    "kill": "DataLoader worker (pid N) is killed by signal: Killed. ",
    "exit": "DataLoader worker (pid N) exited unexpectedly with exit code 3. Details are lost due to multiprocessing. Rerunning "
    "with num_workers=0 may give better error trace.",
    "leave": "None",
}


@pytest.mark.parametrize("how", list(CAUSES))
def test_a_dead_worker_is_noticed_at_once(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts are torch's, which hangs itself now and then when a worker dies; the others go on if the caller does."""
    monkeypatch.setattr("retrograd.utils.data.dataloader.CHECK_INTERVAL", 60)  # a worker that is looked for comes later
    batches = iter(DataLoader(Failing(how), 2, num_workers=2))
    start, seen, errors = time.monotonic(), [], []
    while True:
        try:
            seen.append(next(batches).tolist())
        except RuntimeError as error:  # before the first batch, if that is slow
            errors.append(error)
            assert time.monotonic() - start < 50
        except StopIteration:
            break
    assert seen == [[0, 1], [4, 5]]
    assert [re.sub(r"\d{2,}", "N", str(error)) for error in errors] == [
        "DataLoader worker (pid(s) N) exited unexpectedly"
    ]
    assert re.sub(r"\d{2,}", "N", str(errors[0].__cause__)) == CAUSES[how]


def test_a_worker_killed_while_it_waits() -> None:
    loader = DataLoader(Squares(6), 2, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 3
    os.kill(pids(loader._iterator)[1], signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(loader)


def test_errors_that_cannot_be_pickled() -> None:
    def error(how: str) -> str:
        batches = DataLoader(Failing(how), 1, num_workers=1, sampler=[3], collate_fn=as_they_are)
        with pytest.raises(Exception, match="Caught") as caught:
            list(batches)
        return f"{type(caught.value).__name__}: {caught.value}"

    assert re.match(
        r"(PicklingError|AttributeError): Caught .* in DataLoader worker process 0.\nOriginal Traceback",
        error("unpicklable"),
    )
    text = error("local")
    assert text.startswith("RuntimeError: Caught LocalError in DataLoader worker process 0.")
    assert text.rstrip().endswith("LocalError: here")


def test_errors_on_the_way() -> None:
    """What cannot be read is an error of its batch, on either side, and the epoch goes on."""
    for place in ("collate_fn", "sampler"):
        options: dict[str, Any] = {"sampler": [0, 1, 2], "collate_fn": as_they_are} | {
            place: give_unreadable if place == "collate_fn" else [0, Unreadable(), 2]
        }
        batches = iter(DataLoader(Squares(3), None, num_workers=1, **options))
        seen = []
        for _ in range(3):
            try:
                seen.append(next(batches)[0])
            except EOFError as error:
                seen.append(str(error).splitlines()[0])
        assert seen == [0, "Caught EOFError while reading what a DataLoader process had sent.", 2]


def test_tensors_with_a_history_stay() -> None:
    x = retrograd.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader([x], num_workers=1, collate_fn=as_they_are))


SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs the tests in the background has it ignored
from retrograd.utils.data import DataLoader
from tests.utils.data.samples import Arrays
batches = iter(DataLoader(Arrays(400, (1000, 100)), 2, num_workers=2, multiprocessing_context={method!r}))
next(batches)
try:
    print(*[one.pid for one in batches._workers], flush=True)
    {last}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def start(last: str, method: str = "fork") -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(last=last, method=method)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, [int(one) for one in process.stdout.readline().split()]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_end_when_the_main_process_is_killed(method: str) -> None:
    process, numbers = start("time.sleep(60)", method)
    assert len(numbers) == 2
    process.kill()
    process.communicate()
    assert gone(numbers)


def test_workers_end_when_the_program_ends() -> None:
    process, numbers = start("sys.exit(0)")
    _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")
    assert gone(numbers)


def test_keyboard_interrupt() -> None:
    """The whole group is interrupted, as a terminal does; nothing but the main process says so."""
    process, numbers = start("list(batches); print('waiting', flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert (
        process.stdout.readline() == "waiting\n"
    )  # before that an interrupt may fall into a destructor, where Python ignores it
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=20)
    assert (printed, said, process.returncode) == ("interrupted\n", "", 0)
    assert gone(numbers)


def test_loaders_in_loaders_and_threads() -> None:
    outer = DataLoader(Squares(4), 2, num_workers=1)
    found: list[Any] = []

    def run() -> None:
        found.append([batch[0].tolist() for batch in DataLoader(Squares(4), 2, num_workers=1)])

    for _ in outer:
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == [[[0, 1], [2, 3]]] * 4


# ---- the order ----
class Slow(Squares):
    """The first batch comes after a file does: when the other worker is at its second batch, or when the program says so."""

    def __init__(self, length: int, begun: Path, told: bool) -> None:
        super().__init__(length)
        self.begun, self.told = begun, told

    def __getitem__(self, index: int) -> Any:
        if index == 3 and not self.told:
            self.begun.touch()
        while index == 0 and not self.begun.exists():
            time.sleep(0.01)
        return index


def test_order_of_arrival(tmp_path: Path) -> None:
    waiting = DataLoader(Slow(6, tmp_path / "waiting", told=False), 1, num_workers=2)
    assert [batch.item() for batch in waiting] == list(range(6))
    batches = iter(DataLoader(Slow(6, tmp_path / "hurrying", told=True), 1, num_workers=2, in_order=False))
    hurrying = [next(batches).item()]
    (tmp_path / "hurrying").touch()
    hurrying += [batch.item() for batch in batches]
    assert hurrying[0] == 1
    assert sorted(hurrying) == list(range(6))


def test_far_more_ahead_than_a_socket_holds() -> None:
    """Tasks that the socket has no room for wait in the main process, which never waits for them to be read."""
    loader = DataLoader(Squares(3000), 1, num_workers=1, prefetch_factor=2500)
    batches = iter(loader)
    assert batches._waiting[0]  # type: ignore[attr-defined]
    assert [batch[0].item() for batch in batches] == list(range(3000))


# ---- batches between processes ----
@pytest.mark.parametrize("in_memory", [True, False])
def test_large_batches_and_large_tasks(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "HAS_FILES_IN_MEMORY", in_memory and channels.HAS_FILES_IN_MEMORY)
    monkeypatch.setattr("retrograd.utils.data.dataloader.HAS_FILES_IN_MEMORY", in_memory)
    rows = retrograd.arange(300000.0).reshape(100000, 3)
    loader = DataLoader(TensorDataset(rows), 20000, shuffle=True, num_workers=2)
    batches = [batch[0] for batch in loader]
    assert retrograd.equal(retrograd.cat(batches).sort(0).values, rows)
    batches[0].add_(1)  # a batch may be written to


def test_a_batch_outlives_its_loader() -> None:
    batches = list(DataLoader(Arrays(4, (100, 100)), 2, num_workers=1))
    gc.collect()
    assert [batch.mean().item() for batch in batches] == [0.5, 2.5]
    assert batches[0].is_contiguous()
    assert batches[0]._array.ctypes.data % 64 == 0


def through(message: Any) -> Any:
    one, other = multiprocessing.Pipe(duplex=True)
    try:
        channels.Channel(one).send(channels.Packed(5, message))
        number, content = channels.Channel(other).receive()
    finally:
        one.close()
        other.close()
    assert number == 5
    return content


def test_of_a_view_only_what_it_shows_is_sent() -> None:
    whole = retrograd.arange(1_000_000.0)
    packed = channels.Packed(0, (whole[3:5], whole[::2][:3], whole[7]))
    assert packed.is_small
    first, second, third = through((whole[3:5], whole[::2][:3], whole[7]))
    assert (first.tolist(), second.tolist(), third.item()) == ([3, 4], [0, 2, 4], 7)
    assert third.shape == ()


@pytest.mark.parametrize("size", [3, 30000])
def test_what_travels(size: int) -> None:
    message = {
        "array": np.arange(size),
        "turned": np.ones((size, 2)).T,
        "half": retrograd.ones(size, dtype=retrograd.bfloat16),
        "leaf": retrograd.zeros(size, requires_grad=True),
        "weight": retrograd.nn.Parameter(retrograd.ones(size)),
        "text": ["a"] * size,
        "nothing": np.zeros(0),
    }
    arrived = through(message)
    assert arrived["array"].flags.writeable
    np.testing.assert_array_equal(arrived["array"], message["array"])
    np.testing.assert_array_equal(arrived["turned"], message["turned"])
    assert arrived["half"].dtype is retrograd.bfloat16
    assert arrived["half"].sum() == retrograd.ones(size, dtype=retrograd.bfloat16).sum()
    assert arrived["leaf"].requires_grad
    assert type(arrived["weight"]) is retrograd.nn.Parameter
    assert arrived["text"] == message["text"]
    assert arrived["nothing"].shape == (0,)
    arrived["leaf"].detach().add_(1)
