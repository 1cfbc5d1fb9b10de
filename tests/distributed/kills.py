"""Kill processes while they write checkpoints together, and look at what is left.

    python -m tests.distributed.kills 100

In each round two, three or four processes read the checkpoint that the round before has left, and write one after the other over it; a
random one is killed (`kill -9`) at a random moment. What the folder has then must be whole, and no older than the last from which a
`save` has returned.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.distributed.programs import RUN, SECONDS

PARTS = 12  # values that the processes divide among them, in each round in another way
PROGRAM = f"""
import os, pathlib, warnings, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
warnings.simplefilter("ignore")  # that the checkpoint before is overwritten: that is what this is about
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
values = {{f"of all {{at}}": torch.zeros(300, 100) for at in range(3)}}
values |= {{f"part {{at}}": torch.zeros(20000) for at in range({PARTS}) if at % size == rank}}
state = {{"values": values, "step": 0}}
if os.path.exists("saved/.metadata"):
    dcp.load(state, checkpoint_id="saved")
    assert all((one == state["step"]).all() for one in values.values())
step = state["step"]
pathlib.Path("saved.log").touch()
dcp.save(state, checkpoint_id="first")  # what a first call loads is loaded
pathlib.Path(f"process{{rank}}.tmp").write_text(str(os.getpid()))
os.replace(f"process{{rank}}.tmp", f"process{{rank}}")
while True:
    step += 1
    for one in values.values():
        one.fill_(step)
    state["step"] = step
    dcp.save(state, checkpoint_id="saved")
    if rank == 0:
        with open("saved.log", "a") as log:
            log.write(f"{{step}}\\n")
"""


def kill_one(folder: Path, chance: random.Random) -> tuple[int, int]:
    """Start processes that write checkpoints, kill one, and return the last step that was saved for certain and the one that is there."""
    count, seconds = chance.randint(2, 4), chance.uniform(0, 0.4)
    victim = chance.randrange(count)
    for path in folder.glob("process*"):
        path.unlink()
    (folder / "program.py").write_text(PROGRAM)
    command = [*RUN, "--nproc-per-node", str(count), "program.py"]
    job = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    while not (folder / f"process{victim}").exists():
        assert job.poll() is None, job.communicate()[1]
        assert time.monotonic() - began < SECONDS
        time.sleep(0.01)
    time.sleep(seconds)
    os.kill(int((folder / f"process{victim}").read_text()), signal.SIGKILL)
    said = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 137, said
    assert f"rank {victim} (process " in said, said
    lines = (folder / "saved.log").read_text().split()
    return int(lines[-1]) if lines else 0, step_of(folder / "saved")


def step_of(checkpoint: Path) -> int:
    """Return the step of a checkpoint, all of which must be of that step; 0 if there is none yet."""
    from retrograd.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

    if not (checkpoint / ".metadata").exists():
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = _load_state_dict_from_keys(checkpoint_id=checkpoint)
    step: int = state["step"]
    assert len(state["values"]) == PARTS + 3
    for name, value in state["values"].items():
        assert (value == step).all(), (name, step)
    return step


def main() -> None:
    """Kill as often as the command line says."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for at in range(int(sys.argv[1])):
            certain, found = kill_one(Path(folder), chance)
            print(f"kill {at + 1}: saved {certain}, found {found}", flush=True)
            assert found >= certain


if __name__ == "__main__":
    main()
