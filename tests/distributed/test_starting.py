"""How processes start, find each other, and end: torchrun's command, `spawn`, addresses; a process that fails or dies."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from retrograd.distributed.run import free_port
from tests.distributed.programs import RUN, SECONDS, ran, ran_on_torch
from tests.distributed.ranks import MPIEXEC, needs_mpi

pytestmark = needs_mpi


# ---- torchrun ----
SAYS = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK".split()
every = [None] * dist.get_world_size()
dist.all_gather_object(every, [dist.get_rank(), *(int(os.environ[name]) for name in names)])
if dist.get_rank() == 0:
    print(every, bool(os.environ["MASTER_ADDR"]), os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.destroy_process_group()
"""


def test_processes_know_their_numbers(tmp_path: Path) -> None:
    expected = [[rank, rank, rank, 4, 4, 0] for rank in range(4)]
    assert ran(tmp_path, SAYS, "--nproc-per-node", "4") == (0, f"{expected} True 0\n", "")


def on_two_machines(folder: Path, program: str, count: int) -> list[tuple[int, str, str]]:
    """Run a program with two launchers, as on two machines; return what became of each."""
    (folder / "program.py").write_text(program)
    options = ["--nnodes", "2", "--nproc-per-node", str(count), "--master-addr", "127.0.0.1"]
    options += ["--master-port", str(free_port())]
    machines = [
        subprocess.Popen(
            [*RUN, *options, "--node-rank", str(number), "program.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    texts = [machine.communicate(timeout=SECONDS) for machine in machines]
    return [(machine.returncode, *text) for machine, text in zip(machines, texts, strict=True)]


def test_processes_of_two_machines_join(tmp_path: Path) -> None:
    ended = on_two_machines(tmp_path, SAYS, 2)
    assert [code for code, _, _ in ended] == [0, 0]
    texts = [text for _, text, _ in ended]
    expected = [[rank, rank, rank % 2, 4, 2, rank // 2] for rank in range(4)]
    assert texts == [f"{expected} True 0\n", ""]


FAILS = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    HOW
dist.barrier()
"""


@pytest.mark.parametrize(
    ("how", "code", "traceback", "words"),
    [
        ("raise ValueError('on purpose')", 1, "[rank1]: ValueError: on purpose", "failed with exit code 1"),
        ("os.kill(os.getpid(), 9)", 137, "", "was killed by SIGKILL"),
        ("sys.exit(7)", 7, "", "failed with exit code 7"),
    ],
)
def test_a_process_that_fails_ends_the_job(tmp_path: Path, how: str, code: int, traceback: str, words: str) -> None:
    status, _, text = ran(tmp_path, FAILS.replace("HOW", how), "--nproc-per-node", "3")
    assert status == code
    assert text.count("Traceback") == (1 if traceback else 0)
    *_, before, last = ["", *text.splitlines()]
    assert before == traceback
    assert last.startswith("torch.distributed.run: rank 1 (process ")
    assert last.endswith(words)


def test_a_process_that_dies_on_another_machine_is_named(tmp_path: Path) -> None:
    first, second = on_two_machines(tmp_path, FAILS.replace("HOW", "os.kill(os.getpid(), 9)"), 1)
    assert (first[0], second[0]) == (1, 137)
    assert first[2].endswith("failed with exit code 1: barrier: rank 1 died (group default_pg, ranks [0, 1])\n")
    assert second[2].endswith("was killed by SIGKILL\n")


def test_an_error_of_all_is_shown_once(tmp_path: Path) -> None:
    status, _, text = ran(tmp_path, "raise KeyError('everywhere')", "--nproc-per-node", "3")
    assert status == 1
    assert text.count("KeyError: 'everywhere'") == 1


def test_processes_start_again(tmp_path: Path) -> None:
    program = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if count < 2 and dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
total = torch.ones(1)
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(count, total.item())
dist.destroy_process_group()
"""
    status, out, text = ran(tmp_path, program, "--nproc-per-node", "2", "--max-restarts", "2")
    assert (status, out) == (0, "2 2.0\n")
    assert [line.partition("; ")[2] for line in text.splitlines()] == [
        "starting again, restart 1 of 2",
        "starting again, restart 2 of 2",
    ]


def test_what_processes_print_goes_to_files(tmp_path: Path) -> None:
    program = "import os, sys; print('out', os.environ['RANK']); print('err', file=sys.stderr)"
    assert ran(tmp_path, program, "--nproc-per-node=2", "--redirects=3", "--log-dir=logs") == (0, "", "")
    for rank in range(2):
        assert (tmp_path / "logs" / str(rank) / "stdout.log").read_text() == f"out {rank}\n"
        assert (tmp_path / "logs" / str(rank) / "stderr.log").read_text() == "err\n"


# ---- spawn ----
SPAWNS = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
from datetime import timedelta

def work(rank, size):
    torch.manual_seed(0)
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    said = []
    x = torch.arange(4.0) * (rank + 1)
    dist.all_reduce(x)
    said.append(x)
    half = torch.full((3,), rank + 0.5, dtype=torch.bfloat16)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    said.append(half)
    out = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(out, torch.full((2,), float(rank)))
    said.append(out)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    said.append(objects)
    group = dist.new_group([0, 2])
    said.append((dist.get_rank(group), dist.get_world_size(group)))
    y = torch.ones(2, 2) * rank
    if rank != 1:
        said.append(dist.all_reduce(y, op=dist.ReduceOp.MAX, group=group, async_op=True).wait())
    said.append(y)
    model = torch.nn.Linear(3, 2, dtype=torch.float64)  # its steps make much of last bits
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss = (model(torch.ones(2, 3, dtype=torch.float64) * (rank + step + 1)) ** 2).mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
        optimizer.step()
        dist.all_reduce(loss.detach())
    said.append([parameter.detach() for parameter in model.parameters()])
    words = []
    for wrong in (lambda: dist.broadcast(x, 9), lambda: dist.send(x, rank), lambda: dist.all_gather([x], x),
                  lambda: dist.all_reduce(x, dist.ReduceOp.BOR), lambda: dist.new_group([0, 0])):
        try:
            wrong()
        except Exception as error:
            words.append(f"{type(error).__name__}: {error}")
    said.append(words)
    for turn in range(size):
        dist.barrier()
        if turn == rank:
            print(rank, *said, sep="\\n", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (3,), 3)
"""


@pytest.mark.oracle
def test_a_program_that_spawns_prints_what_it_prints_on_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    own, theirs = ran(tmp_path, SPAWNS), ran_on_torch(tmp_path, SPAWNS)
    assert own[0] == theirs[0] == 0, (own, theirs)
    assert own[1] == theirs[1]
    assert own[2] == ""


DIES = """
import os, signal, sys, time, torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, size):
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        time.sleep(2)  # rank 0 has learnt of it by then, and has ended: no cause, and not to be named
    try:
        dist.all_reduce(torch.ones(1000))
    except dist.DistBackendError as error:
        sys.stdout.write(f"{rank} {str(error).splitlines()[0]}\\n")
        sys.stdout.flush()
        raise SystemExit(3)

if __name__ == "__main__":
    started = [mp.get_context("spawn").Process(target=work, args=(rank, 3)) for rank in range(3)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    print([one.exitcode for one in started])
"""


def test_others_learn_who_has_died(tmp_path: Path) -> None:
    status, out, text = ran(
        tmp_path, DIES
    )  # which ends it after minutes: not the 30 that processes may wait for each other
    assert (status, text) == (0, "")
    words = "all_reduce: rank 2 died (group default_pg, ranks [0, 1, 2])"
    assert sorted(out.splitlines()) == [f"0 {words}", f"1 {words}", "[3, 3, -9]"]


LEAVES = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.new_group([0, 1])
rank, ones = dist.get_rank(), torch.ones(2)
dist.barrier()
if sys.argv[1] == "early":
    if rank == 1:
        sys.exit()
    dist.recv(ones, 1) if rank == 0 else dist.all_reduce(ones)
elif rank == 1:  # it has done its part, and leaves; the others still wait for each other, and for what it has sent
    dist.reduce(ones, 0)
    dist.send(ones, 0)
elif rank == 2:
    time.sleep(4)
    dist.reduce(ones, 0)
    dist.send(ones * 2, 0)
else:
    dist.reduce(ones, 0)
    said = [ones.tolist()]
    for source in (2, 1):
        dist.recv(ones, source)
        said.append(ones.tolist())
    print(said)
"""


def test_others_learn_who_has_left(tmp_path: Path) -> None:
    status, _, text = ran(tmp_path, LEAVES, "--nproc-per-node", "3", arguments=("early",))
    assert status == 1
    assert text.count("Traceback") == 1
    assert ": rank 1 has left (group default_pg, ranks [0, 1, 2])\n" in text


LEAVES_EARLY = """
import os, sys, torch, torch.distributed as dist
dist_rank = int(os.environ["RANK"])

def leave():
    if dist_rank == 1:
        sys.exit()

if sys.argv[1] == "init_process_group":
    leave()
dist.init_process_group("gloo")
dist.barrier()
leave()
if sys.argv[1] == "new_group":
    dist.new_group()
dist.all_reduce(torch.ones(2))
"""
BY_MPIEXEC = (str(MPIEXEC), "-n", "3", *RUN)
BY_TORCHRUN = (*RUN, "--nproc-per-node", "3")


@pytest.mark.parametrize("by", [BY_TORCHRUN, BY_MPIEXEC], ids=["torchrun", "mpiexec"])
@pytest.mark.parametrize("what", ["init_process_group", "new_group", "all_reduce"])
def test_others_learn_who_has_left_before(what: str, by: tuple[str, ...], tmp_path: Path) -> None:
    status, _, text = ran(
        tmp_path, LEAVES_EARLY, python=by, arguments=(what,)
    )  # well before the 30 minutes of the limit
    assert status != 0
    assert re.search(rf"{what}: rank 1 (has )?left", text), text


DIFFERS = """
import torch.distributed as dist
dist.init_process_group("gloo")
try:
    dist.new_group([0, 1] if dist.get_rank() == 0 else [0, 1, 2])
except RuntimeError as error:
    print(str(error).splitlines()[0], flush=True)
    raise
"""


def test_processes_that_make_different_groups_are_told(tmp_path: Path) -> None:
    status, out, _ = ran(tmp_path, DIFFERS, "--nproc-per-node", "3")
    assert status == 1
    assert out.startswith(  # the processes write side by side
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: new_group([0, 1]), but Rank 1 is running "
        "collective: new_group([0, 1, 2])."
    )


def test_a_process_that_has_done_its_part_may_leave(tmp_path: Path) -> None:
    said = "[[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]\n"
    assert ran(tmp_path, LEAVES, "--nproc-per-node", "3", arguments=("late",)) == (0, said, "")


# ---- limits ----
LATE = """
import os, time, torch, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo")
hasty = dist.new_group(timeout=timedelta(seconds=1))
rank = dist.get_rank()
said = []
dist.barrier()  # a busy machine starts processes seconds apart
if rank == 1:
    while not os.path.exists("done"):
        time.sleep(0.05)
else:
    for call in (
        lambda: dist.all_reduce(torch.ones(2), group=hasty),
        lambda: dist.barrier(hasty, async_op=True).wait(timedelta(seconds=1)),
    ):
        try:
            call()
        except dist.DistBackendError as error:
            said.append(str(error).split(". ")[0])
    if rank == 0:
        try:
            dist.monitored_barrier(hasty, timeout=timedelta(seconds=1), wait_all_ranks=True)
        except RuntimeError as error:
            said.append(str(error).splitlines()[0])
        print(*said, sep="\\n", flush=True)
        open("done", "w").close()
"""


def test_a_process_that_is_late_is_named(tmp_path: Path) -> None:
    status, out, _ = ran(tmp_path, LATE, "--nproc-per-node", "3")
    late = "Timed out waiting 1000ms for {} operation to complete on rank 0\nHint: rank 1 did not reach it"
    assert status == 0
    assert out == "\n".join(
        [
            late.format("all_reduce"),
            late.format("barrier"),
            "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms\n",
        ]
    )


# ---- addresses ----
ADDRESSES = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, size, folder, ports):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=ports[0], RANK=str(rank), WORLD_SIZE=str(size))
    store = dist.TCPStore("127.0.0.1", int(ports[1]), size, rank == 0)
    ways = [{"init_method": f"file://{folder}/meeting"}, {"init_method": f"tcp://127.0.0.1:{ports[2]}"}, {}, {"store": store}]
    for how in ways[int(sys.argv[1]):] if len(sys.argv) > 1 else ways:
        numbers = {"rank": rank, "world_size": size} if how else {}
        dist.init_process_group("gloo", **how, **numbers)
        total = torch.full((1,), float(rank + 1))
        dist.all_reduce(total)
        assert total.item() == 3, total
        assert dist.get_rank() == rank
        dist.destroy_process_group()
    store.set(f"done{rank}", "yes")
    store.wait([f"done{other}" for other in range(size)])
    if rank == 0:
        print("joined", flush=True)

if __name__ == "__main__":
    mp.spawn(work, (2, os.getcwd(), PORTS), 2)
"""


def test_processes_meet_by_every_kind_of_address_and_again(tmp_path: Path) -> None:
    program = ADDRESSES.replace("PORTS", repr([str(free_port()) for _ in range(3)]))
    assert ran(tmp_path, program) == (0, "joined\n", "")


def test_an_end_below_python_is_told_from_one_of_the_program(tmp_path: Path) -> None:
    program = """
import os, sys
if os.environ["RANK"] == "1":
    os._exit(1) if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else sys.exit(1)
"""
    code, _, said = ran(tmp_path, program, "--nproc-per-node", "2", "--max-restarts", "1")
    first, hint, second = said.splitlines()
    assert code == 1
    assert first.endswith("failed with exit code 1; starting again, restart 1 of 1")
    assert hint.startswith("Hint: it showed no error of Python. MPI ends a process so")
    assert second.endswith("failed with exit code 1")
