"""Checkpoints that several processes write together, and read in other numbers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import retrograd as torch
from retrograd import distributed as d
from retrograd import nn
from retrograd.distributed import checkpoint
from retrograd.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from retrograd.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from retrograd.distributed.device_mesh import DeviceMesh, init_device_mesh
from retrograd.distributed.fsdp import fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.tensor import Replicate, Shard, distribute_tensor
from retrograd.nn.parallel import DistributedDataParallel
from tests.distributed.ranks import raised_by


@contextmanager
def common_folder(rank: int) -> Iterator[Path]:
    """Give all processes one new folder, which the first removes when all are done with it."""
    name = [tempfile.mkdtemp() if rank == 0 else None]
    d.broadcast_object_list(name)
    yield Path(str(name[0]))
    d.barrier()
    if rank == 0:
        shutil.rmtree(str(name[0]))


def net(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def data_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".distcp")


def check_every_process_writes_its_part(rank: int, size: int) -> None:
    state = {f"value {at}": torch.full((10,), float(at)) for at in range(2 * size)}
    with common_folder(rank) as folder:
        made = checkpoint.save(
            {**state, f"of rank {rank}": torch.full((3,), float(rank)), "step": 7}, checkpoint_id=folder
        )
        d.barrier()
        assert data_files(folder) == [f"__{one}_0.distcp" for one in range(size)]
        assert sorted(made.state_dict_metadata) == sorted([*state, *(f"of rank {at}" for at in range(size)), "step"])
        sizes = [(folder / name).stat().st_size for name in data_files(folder)]
        assert max(sizes) < 2 * min(sizes), sizes
        wanted = {f"of rank {(rank + 1) % size}": torch.zeros(3), "step": 0, "value 1": torch.zeros(10)}
        checkpoint.load(wanted, checkpoint_id=folder)
        assert wanted[f"of rank {(rank + 1) % size}"].tolist() == [(rank + 1) % size] * 3
        assert wanted["step"] == 7
        assert wanted["value 1"].tolist() == [1.0] * 10


def check_another_number_of_processes_reads_it(rank: int, size: int) -> None:
    half = d.new_group(range(size - 1)) if size > 2 else None
    with common_folder(rank) as folder:
        if rank < size - 1 or size == 2:
            checkpoint.save({"a": torch.arange(5.0), "n": size}, checkpoint_id=folder / "few", process_group=half)
        checkpoint.save({"a": torch.arange(5.0), "n": size}, checkpoint_id=folder / "all")
        d.barrier()
        for name in ("few", "all"):
            state = {"a": torch.zeros(5), "n": 0}
            if name == "few" or rank == 0:  # written by some and read by all; written by all and read by one
                checkpoint.load(state, checkpoint_id=folder / name, process_group=None, no_dist=name == "all")
                assert (state["a"].tolist(), state["n"]) == ([0, 1, 2, 3, 4], size)


def check_the_checkpoint_before_is_replaced_when_the_new_one_is_whole(rank: int, size: int) -> None:
    with common_folder(rank) as folder:
        for step in range(4):
            checkpoint.save({"a": torch.full((4,), float(step))}, checkpoint_id=folder)
            state = {"a": torch.zeros(4)}
            checkpoint.load(state, checkpoint_id=folder)
            assert state["a"].tolist() == [step] * 4
            d.barrier()
            assert len(data_files(folder)) == 1, data_files(folder)
        if rank == 0:
            before = sorted(folder.iterdir())
        wrong = {"a": torch.zeros(4), f"of rank {rank}": (lambda: 0) if rank == size - 1 else 0}
        said = raised_by(lambda: checkpoint.save(wrong, checkpoint_id=folder))
        assert said.startswith("CheckpointException")
        assert f"(RANK {size - 1})" in said, said
        assert "pickle" in said
        checkpoint.load(state, checkpoint_id=folder)
        assert state["a"].tolist() == [3.0] * 4
        d.barrier()
        if rank == 0:
            assert set(before) <= set(folder.iterdir())
        d.barrier()
        checkpoint.save({"a": torch.ones(4)}, checkpoint_id=folder)
        d.barrier()
        assert len(data_files(folder)) == 1, data_files(folder)  # what the failed one left is gone


def check_what_all_learn_of_a_failure(rank: int, size: int) -> None:
    with common_folder(rank) as folder:
        checkpoint.save({"a": torch.ones(2)}, checkpoint_id=folder)
        names = {"a": torch.zeros(2)} | ({"b": 1} if rank == 1 else {})
        said = raised_by(lambda: checkpoint.load(names, checkpoint_id=folder))
        assert "ranks:dict_keys([1])" in said, said
        assert "Missing key in checkpoint state_dict: b." in said
        said = raised_by(lambda: checkpoint.save({"own": torch.zeros(rank + 1)}, checkpoint_id=folder / "two"))
        assert "key:own differs by process: torch.float32 [1] from [0] on rank 0, torch.float32 [2]" in said, said
        unwritable = folder / "file" / "below"
        if rank == 0:
            (folder / "file").write_text("no folder")
        d.barrier()
        said = raised_by(lambda: checkpoint.save({"own": torch.zeros(1)}, checkpoint_id=unwritable))
        assert said.startswith("CheckpointException"), said


def check_each_process_on_its_own(rank: int, size: int) -> None:
    with common_folder(rank) as folder:
        checkpoint.save({"a": torch.full((2,), float(rank))}, checkpoint_id=folder, use_collectives=False)
        assert (folder / f"__{rank}.metadata").exists()
        state = {"a": torch.zeros(2)}
        checkpoint.load(state, checkpoint_id=folder)
        assert state["a"].tolist() == [rank, rank]


def check_a_checkpoint_in_the_background(rank: int, size: int) -> None:
    with common_folder(rank) as folder:
        values = torch.zeros(1000)
        saves = []
        for step in range(3):
            values.fill_(float(step))
            saves.append(checkpoint.async_save({"a": values, "step": step}, checkpoint_id=folder / str(step)))
            values.fill_(-1.0)  # what is written is a copy
            total = torch.ones(1)
            d.all_reduce(total)  # and the program's collectives are not disturbed
            assert total.item() == size
        for step, one in enumerate(saves):
            assert one.result().state_dict_metadata.keys() == {"a", "step"}
            state = {"a": torch.zeros(1000), "step": -1}
            checkpoint.load(state, checkpoint_id=folder / str(step))
            assert (state["step"], state["a"].unique().tolist()) == (step, [step])


def check_several_files_and_threads(rank: int, size: int) -> None:
    state = {f"value {at}": torch.full((at + 1,), float(at)) for at in range(10)}
    with common_folder(rank) as folder:
        for options in ({"thread_count": 3}, {"single_file_per_rank": False}, {}):
            writer = checkpoint.FileSystemWriter(folder, **options)  # type: ignore[arg-type]
            for _ in range(2):
                checkpoint.save(state, storage_writer=writer)
            found = _load_state_dict_from_keys(checkpoint_id=folder)
            assert all(torch.equal(found[name], value) for name, value in state.items())
            d.barrier()
        assert len(data_files(folder)) == size
        refuses = checkpoint.FileSystemWriter(folder, overwrite=False)
        assert "Checkpoint already exists" in raised_by(lambda: checkpoint.save(state, storage_writer=refuses))


def train(model: Any, optimizer: Any, steps: range, rank: int) -> None:
    for at in steps:
        optimizer.zero_grad()
        x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).mul(at + 1).add(rank).sin()
        (model(x) - 1).square().mean().backward()
        optimizer.step()


def divided(model: Any, group: Any = None) -> Any:
    return ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, group, lr=0.05)


def check_divided_states_are_read_by_another_number_of_processes(rank: int, size: int) -> None:
    """All train and save; fewer, with another division of the states, and one without any go on from there."""
    model = DistributedDataParallel(net())
    optimizer = divided(model)
    train(model, optimizer, range(5), rank=0)  # the same batches everywhere: any number of processes trains the same
    with common_folder(rank) as folder:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        own = {name for name, held in of_optimizer["state"].items() if held}
        assert len(own) < 4
        checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=folder)
        train(model, optimizer, range(5, 10), rank=0)
        expected = [one.detach().clone() for one in model.parameters()]

        few = d.new_group(range(max(1, size - 1)))
        for make in (lambda model: divided(model, few), lambda model: torch.optim.Adam(model.parameters(), lr=0.5)):
            if rank >= max(1, size - 1):
                continue
            again = DistributedDataParallel(net(1), process_group=few) if size > 2 else net(1)
            its_optimizer = make(again)
            its_model, its_states = get_state_dict(again, its_optimizer)
            state = {"model": its_model, "optimizer": its_states}
            checkpoint.load(state, checkpoint_id=folder, process_group=few)
            set_state_dict(again, its_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            train(again, its_optimizer, range(5, 10), rank=0)
            for one, other in zip(again.parameters(), expected, strict=True):
                torch.testing.assert_close(one.detach(), other, rtol=1e-12, atol=1e-12)


def meshes(size: int) -> list[Any]:
    """Return meshes of all processes, and of one."""
    found = [init_device_mesh("cpu", (size,)), DeviceMesh("cpu", [0])]
    return [*found, init_device_mesh("cpu", (2, size // 2))] if size % 2 == 0 else found


def check_parts_of_tensors_are_read_however_they_are_cut(rank: int, size: int) -> None:
    whole = torch.arange(7 * 5.0).reshape(7, 5)
    every = meshes(size)
    ways = [(mesh, [cut] * mesh.ndim) for mesh in every for cut in (Shard(0), Shard(1), Replicate())]
    with common_folder(rank) as folder:
        for at, (mesh, cut) in enumerate(ways):
            given = distribute_tensor(whole, mesh, cut) if mesh.get_coordinate() is not None else None
            checkpoint.save({} if given is None else {"a": given}, checkpoint_id=folder / str(at))
            for its_mesh, its_cut in ways:
                read = None
                if its_mesh.get_coordinate() is not None:
                    read = distribute_tensor(torch.zeros(7, 5), its_mesh, its_cut)
                checkpoint.load({} if read is None else {"a": read}, checkpoint_id=folder / str(at))
                if read is not None:
                    assert torch.equal(read.full_tensor(), whole), (cut, its_cut)
            plain = {"a": torch.zeros(7, 5)}
            checkpoint.load(plain, checkpoint_id=folder / str(at))
            assert torch.equal(plain["a"], whole)


def check_a_sharded_module_goes_on_in_another_number_of_processes(rank: int, size: int) -> None:
    model = net()
    for part in (*model, model):
        fully_shard(part)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    train(model, optimizer, range(5), rank=0)
    with common_folder(rank) as folder:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        saved = checkpoint.async_save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=folder)
        train(model, optimizer, range(5, 10), rank=0)
        saved.result()
        assert len(data_files(folder)) == size
        expected = [one.full_tensor().detach() for one in model.parameters()]
        if rank == 0:
            again = net(1)
            its_optimizer = torch.optim.Adam(again.parameters(), lr=0.5)
            its_model, its_states = get_state_dict(again, its_optimizer)
            state = {"model": its_model, "optimizer": its_states}
            checkpoint.load(state, checkpoint_id=folder, no_dist=True)
            set_state_dict(again, its_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            train(again, its_optimizer, range(5, 10), rank=0)
            for one, other in zip(again.parameters(), expected, strict=True):
                torch.testing.assert_close(one.detach(), other, rtol=1e-12, atol=1e-12)


def check_whole_states_are_handed_out(rank: int, size: int) -> None:
    """A state that one process has whole, or all have, is taken over by modules that are sharded or not."""
    plain = net()
    whole = torch.optim.Adam(plain.parameters(), lr=0.05)
    train(plain, whole, range(5), rank=0)
    of_plain, of_whole = get_state_dict(plain, whole)
    for sent in (True, False):
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=sent)
        for is_sharded in (True, False):
            model, expected = net(1), net()
            if is_sharded:
                for part in (*model, model):
                    fully_shard(part)
            optimizer, its_optimizer = (torch.optim.Adam(one.parameters(), lr=0.5) for one in (model, expected))
            expected.load_state_dict(plain.state_dict())
            its_optimizer.load_state_dict(whole.state_dict())
            has_it = rank == 0 or not sent
            set_state_dict(
                model,
                optimizer,
                model_state_dict=dict(of_plain) if has_it else {},
                optim_state_dict=deepcopy(of_whole) if has_it else {},
                options=options,
            )
            train(model, optimizer, range(5, 8), rank=0)
            train(expected, its_optimizer, range(5, 8), rank=0)
            for one, other in zip(model.parameters(), expected.parameters(), strict=True):
                found = one.full_tensor() if is_sharded else one
                torch.testing.assert_close(found.detach(), other.detach(), rtol=1e-12, atol=1e-12)
    refused = raised_by(lambda: set_model_state_dict(plain, {}, options=StateDictOptions(broadcast_from_rank0=True)))
    assert refused == "ValueError: full_state_dict must be True when broadcast_from_rank0 is True."
    in_memory = StateDictOptions(full_state_dict=True, cpu_offload=True)
    assert bool(get_model_state_dict(plain, options=in_memory)) == (rank == 0)


def check_no_file_is_left_open(rank: int, size: int) -> None:
    with common_folder(rank) as folder:
        checkpoint.save({"a": torch.ones(2)}, checkpoint_id=folder)
        before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        for _ in range(5):
            checkpoint.save({"a": torch.ones(2)}, checkpoint_id=folder)
            checkpoint.load({"a": torch.ones(2)}, checkpoint_id=folder)
        after = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        assert after == before
