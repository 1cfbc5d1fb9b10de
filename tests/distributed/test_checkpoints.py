"""Checkpoints of several processes: torch's folders, and what `kill -9` leaves. See `checks_checkpoints.py` for the rest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.distributed.kills import kill_one
from tests.distributed.programs import RUN, TORCH, ran
from tests.distributed.ranks import needs_mpi

pytestmark = needs_mpi

# ---- torch's folders ----
EXCHANGES = """
import os, sys, warnings, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

def made(seed):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2, dtype=torch.float32))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1 + seed)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return net, optimizer

def cut(size, dim, values):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    return distribute_tensor(values, init_device_mesh("cpu", (size,)), [Shard(dim)])

def work(rank, size, action, folder):
    warnings.simplefilter("ignore")
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    net, optimizer = made(0 if action == "save" else 1)
    of_net, of_optimizer = get_state_dict(net, optimizer)
    state = {"net": of_net, "optimizer": of_optimizer, "notes": [1, "two"]}
    state |= {"half": torch.zeros(3, dtype=torch.bfloat16), "flag": torch.tensor(False)}
    grid = torch.arange(35.0).reshape(7, 5)
    state["cut"] = cut(size, 0, grid) if action == "save" else cut(size, 1, torch.zeros(7, 5))
    if action == "save":
        state["half"] += torch.arange(3)
        state["flag"].fill_(True)
        state[f"rank {rank} of 2"] = torch.full((2, 2), float(rank), dtype=torch.float64)
        dcp.save(state, checkpoint_id=folder)
    else:
        state |= {f"rank {at} of 2": torch.zeros(2, 2, dtype=torch.float64) for at in range(2)} | {"notes": None}
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(net, optimizer, model_state_dict=state["net"], optim_state_dict=state["optimizer"])
        expected, its_optimizer = made(0)
        for one, other in zip(net.parameters(), expected.parameters()):
            torch.testing.assert_close(one, other)  # the step before is that of the other library
            for key, value in optimizer.state[one].items():
                torch.testing.assert_close(value, its_optimizer.state[other][key])
        assert optimizer.param_groups[0]["lr"] == 0.1
        assert torch.equal(state["cut"].full_tensor(), grid)
        assert state["half"].tolist() == [0, 1, 2] and state["flag"].item() and state["notes"] == [1, "two"]
        assert [state[f"rank {at} of 2"].unique().tolist() for at in range(2)] == [[0], [1]]
    dist.barrier()
    if rank == 0:
        print(action, "by", size)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (int(sys.argv[2]), sys.argv[1], "saved"), int(sys.argv[2]))
"""


@pytest.mark.oracle
@pytest.mark.parametrize(("writes", "reads"), [(TORCH, RUN), (RUN, TORCH)], ids=["torch's", "retrograd's"])
def test_a_checkpoint_of_two_processes_is_read_by_three_of_the_other_library(
    writes: tuple[str, ...], reads: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    assert ran(tmp_path, EXCHANGES, python=writes, arguments=("save", "2"))[:2] == (0, "save by 2\n")
    code, out, text = ran(tmp_path, EXCHANGES, python=reads, arguments=("load", "3"))
    assert (code, out) == (0, "load by 3\n"), text


# ---- kill -9 ----
def test_killed_processes_leave_a_whole_checkpoint(tmp_path: Path) -> None:
    chance = random.Random(0)
    for _ in range(3):  # `python -m tests.distributed.kills 100` does it more often
        certain, found = kill_one(tmp_path, chance)
        assert found >= certain


TRAINS = """
import os, signal, sys, warnings, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.optim import ZeroRedundancyOptimizer
warnings.simplefilter("ignore")
dist.init_process_group("gloo")
rank, size, restart = dist.get_rank(), dist.get_world_size(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Tanh(), nn.Linear(16, 1)))
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

def current(step):
    of_model, of_optimizer = get_state_dict(model, optimizer)
    random = {f"random numbers of rank {rank}": torch.get_rng_state()}
    return {"model": of_model, "optimizer": of_optimizer, "schedule": schedule, "step": step, **random}

step = 0
if os.path.exists("saved/.metadata"):
    state = current(0)
    dcp.load(state, checkpoint_id="saved")
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    torch.set_rng_state(state[f"random numbers of rank {rank}"])
    step = state["step"]
while step < 12:
    if [4, 7, None][restart] == step and rank == 1 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.zero_grad()
    loss = (model(torch.randn(4, 8)) - 1).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step()
    step += 1
    dist.all_reduce(loss.detach())
    if rank == 0:
        with open("losses", "a") as file:
            file.write(f"{step} {loss.item().hex()} {schedule.get_last_lr()[0].hex()}\\n")
    if step % 3 == 0:
        dcp.save(current(step), checkpoint_id="saved")
"""


def test_a_killed_training_goes_on_bit_for_bit(tmp_path: Path) -> None:
    losses = {}
    for how in ("go on", "kill"):
        folder = tmp_path / how
        folder.mkdir()
        options = ("--nproc-per-node", "3", "--max-restarts", "2")
        code, _, text = ran(folder, TRAINS, *options, arguments=(how,))
        assert code == 0, text
        assert text.count("rank 1 (process ") == (2 if how == "kill" else 0), text
        losses[how] = (folder / "losses").read_text().splitlines()
    assert [line.split()[0] for line in losses["go on"]] == [str(step) for step in range(1, 13)]
    assert losses["kill"][:4] == losses["go on"][:4]
    assert losses["kill"][4:] == [*losses["go on"][3:7], *losses["go on"][6:]]  # after steps 3 and 6, which were saved
