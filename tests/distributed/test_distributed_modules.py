"""torch.distributed's meshes, distributed tensors, sharded modules and checkpoints, in a group of one process."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import distributed, nn
from retrograd.distributed import _functional_collectives, checkpoint
from retrograd.distributed import nn as functions
from retrograd.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
from retrograd.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from retrograd.distributed.device_mesh import init_device_mesh
from retrograd.distributed.fsdp import (
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from retrograd.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from retrograd.distributed.tensor.experimental import implicit_replication, local_map
from retrograd.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    distributed.init_process_group("gloo", init_method="tcp://localhost:1", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.fixture
def mesh() -> Any:
    return init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))


def small_net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


# ---- meshes ----
def test_a_mesh_has_parts_by_name() -> None:
    whole = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert (whole.ndim, whole.shape, whole.size(), whole.size(1)) == (2, (1, 1), 1, 1)
    assert whole["tp"].mesh_dim_names == ("tp",)
    assert whole._flatten("all") is whole["all"]
    assert whole.get_coordinate() == (0, 0)
    assert whole["dp"].get_group().size() == 1
    assert repr(whole) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))"
    with pytest.raises(KeyError, match="Invalid mesh_dim_names"):
        _ = whole["pp"]


def test_a_mesh_of_several_processes_is_refused() -> None:
    with pytest.raises(RuntimeError, match="bigger than default world size 1, but found 2 ranks"):
        init_device_mesh("cpu", (2,))


# ---- distributed tensors ----
def test_a_distributed_tensor_is_whole_on_one_process(mesh: Any) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    placed = distribute_tensor(values, mesh, [Shard(0)])
    assert isinstance(placed, DTensor)
    assert (placed.placements, placed.device_mesh) == ((Shard(0),), mesh)
    assert torch.equal(placed.to_local(), values)
    assert type(placed.full_tensor()) is torch.Tensor
    assert placed.redistribute(mesh, [Replicate()]).placements == (Replicate(),)
    doubled = placed * 2
    assert isinstance(doubled, DTensor)
    assert doubled.placements == (Shard(0),)
    assert torch.equal(doubled.to_local(), values * 2)
    assert DTensor.from_local(values, mesh, [Partial()]).placements[0].is_partial()


def test_plain_tensors_beside_distributed_ones_are_refused_unless_allowed(mesh: Any) -> None:
    placed = distribute_tensor(torch.ones(2), mesh)
    with pytest.raises(RuntimeError, match="got mixed torch"):
        placed + torch.ones(2)
    with implicit_replication():
        assert (placed + torch.ones(2)).to_local().tolist() == [2, 2]


def test_gradients_reach_distributed_parameters(mesh: Any) -> None:
    module = distribute_module(nn.Linear(3, 1, bias=False), mesh)
    assert isinstance(module.weight, nn.Parameter)
    assert isinstance(module.weight, DTensor)
    given = distribute_tensor(torch.tensor([[1.0, 2.0, 3.0]]), mesh)
    module(given).sum().backward()
    assert isinstance(module.weight.grad, DTensor)
    assert module.weight.grad.full_tensor().tolist() == [[1, 2, 3]]
    before = module.weight.full_tensor().detach().clone()
    torch.optim.SGD(module.parameters(), lr=0.5).step()
    moved = before - module.weight.full_tensor().detach()
    torch.testing.assert_close(moved, torch.tensor([[0.5, 1.0, 1.5]]))


def test_a_local_function_of_distributed_tensors(mesh: Any) -> None:
    placed = distribute_tensor(torch.ones(2), mesh, [Shard(0)])
    result = local_map(lambda one: one * 3, out_placements=[Shard(0)])(placed)
    assert isinstance(result, DTensor)
    assert result.to_local().tolist() == [3, 3]


def test_divided_layers_compute_what_whole_ones_do(mesh: Any) -> None:
    plain, divided = small_net(), small_net()
    parallelize_module(divided, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    given = torch.randn(5, 3)
    assert torch.equal(divided(given), plain(given))


def test_a_parameter_of_a_subclass_keeps_its_class() -> None:
    class Own(torch.Tensor):
        pass

    made = nn.Parameter(torch.ones(2).as_subclass(Own))
    assert type(made) is Own
    assert isinstance(made, nn.Parameter)
    assert made.requires_grad
    assert made.is_leaf


# ---- sharded modules ----
@pytest.mark.parametrize("policy", [None, ModuleWrapPolicy({nn.Linear}), size_based_auto_wrap_policy])
def test_a_sharded_module_trains_as_the_plain_one(policy: Any) -> None:
    plain, wrapped = small_net(), FullyShardedDataParallel(small_net(), auto_wrap_policy=policy)
    given = torch.randn(5, 3)
    for module in (plain, wrapped):
        optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
        module(given).square().sum().backward()
        optimizer.step()
    assert wrapped.sharding_strategy is ShardingStrategy.NO_SHARD
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    for name, value in plain.state_dict().items():
        assert torch.equal(wrapped.state_dict()[name], value)
    assert wrapped.load_state_dict(plain.state_dict()) == ([], [])


def test_the_optimizers_state_of_a_sharded_module_goes_by_names() -> None:
    wrapped = FullyShardedDataParallel(small_net(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    optimizer = torch.optim.Adam(wrapped.parameters())
    wrapped(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with FullyShardedDataParallel.state_dict_type(wrapped, StateDictType.SHARDED_STATE_DICT):
        assert FullyShardedDataParallel.get_state_dict_type(wrapped).state_dict_type is StateDictType.SHARDED_STATE_DICT
        state = FullyShardedDataParallel.optim_state_dict(wrapped, optimizer)
    assert FullyShardedDataParallel.get_state_dict_type(wrapped).state_dict_type is StateDictType.FULL_STATE_DICT
    assert list(state["state"]) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    other = torch.optim.Adam(wrapped.parameters())
    other.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(wrapped, other, state))
    assert torch.equal(other.state_dict()["state"][0]["exp_avg"], state["state"]["0.weight"]["exp_avg"])


def test_fully_shard_marks_the_module_itself() -> None:
    net = small_net()
    assert fully_shard(net) is net
    assert isinstance(net, FSDPModule)
    assert type(net).__name__ == "FSDPSequential"
    net.set_requires_gradient_sync(False)
    assert net(torch.ones(1, 3)).shape == (1, 2)


def test_mixed_precision_of_a_sharded_module_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="param_dtype"):
        FullyShardedDataParallel(small_net(), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))


# ---- activation checkpointing ----
@pytest.mark.parametrize("way", CheckpointImpl)
def test_a_checkpointed_module_gives_the_same_gradients_and_names(way: Any) -> None:
    plain, wrapped = small_net(), checkpoint_wrapper(small_net(), way)
    given = torch.randn(5, 3, requires_grad=True)
    for module in (plain, wrapped):
        module(given).square().sum().backward()
    assert [name for name, _ in wrapped.named_parameters()] == [name for name, _ in plain.named_parameters()]
    for (_, one), (_, other) in zip(wrapped.named_parameters(), plain.named_parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    assert wrapped.load_state_dict(plain.state_dict()) == ([], [])


def test_parts_are_wrapped_in_place() -> None:
    net = small_net()
    apply_activation_checkpointing(net, check_fn=lambda part: isinstance(part, nn.Linear))
    assert [isinstance(part, CheckpointWrapper) for part in net] == [True, False, True]


# ---- checkpoints ----
def states(seed: int) -> tuple[Any, Any]:
    torch.manual_seed(seed)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return net, optimizer


def test_a_program_continues_from_a_folder(tmp_path: Path) -> None:
    net, optimizer = states(0)
    of_net, of_optimizer = get_state_dict(net, optimizer)
    checkpoint.save({"net": of_net, "optimizer": of_optimizer, "epoch": 3}, checkpoint_id=tmp_path / "saved")

    other, its_optimizer = states(1)
    wanted, wanted_too = get_state_dict(other, its_optimizer)
    state = {"net": wanted, "optimizer": wanted_too, "epoch": 0}
    checkpoint.load(state, checkpoint_id=tmp_path / "saved")
    set_state_dict(other, its_optimizer, model_state_dict=state["net"], optim_state_dict=state["optimizer"])
    assert state["epoch"] == 3
    assert torch.equal(other.weight, net.weight)
    for number, held in optimizer.state_dict()["state"].items():
        for name, value in held.items():
            assert torch.equal(its_optimizer.state_dict()["state"][number][name], value)


def test_states_in_one_level_of_names_come_back() -> None:
    net, optimizer = states(0)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    of_net, of_optimizer = get_state_dict(net, optimizer, options=options)
    assert "state.weight.exp_avg" in of_optimizer
    other, its_optimizer = states(1)
    set_state_dict(other, its_optimizer, model_state_dict=of_net, optim_state_dict=of_optimizer, options=options)
    assert torch.equal(its_optimizer.state[other.weight]["exp_avg"], optimizer.state[net.weight]["exp_avg"])


def test_the_state_of_an_optimizer_without_a_step_changes_nothing() -> None:
    net = nn.Linear(3, 2)
    before = net.weight.detach().clone()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    _, state = get_state_dict(net, optimizer)
    assert state["state"]["weight"]["exp_avg"].count_nonzero() == 0
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert torch.equal(net.weight, before)
    assert net.weight.grad is None


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"b": 1}, "Missing key in checkpoint state_dict: b."),
        ({"a": torch.zeros(3)}, "Size mismatch between saved"),
    ],
)
def test_what_does_not_fit_a_folder_is_refused_before_anything_is_written(
    state: Any, text: str, tmp_path: Path
) -> None:
    checkpoint.save({"a": torch.ones(2), "z": torch.ones(1)}, checkpoint_id=tmp_path)
    untouched = torch.zeros(1)
    with pytest.raises(checkpoint.CheckpointException, match=text):
        checkpoint.load({"z": untouched, **state}, checkpoint_id=tmp_path)
    assert untouched.item() == 0


def test_an_error_of_a_checkpoint_shows_the_program_alone(tmp_path: Path) -> None:
    with pytest.raises(checkpoint.CheckpointException) as caught:
        checkpoint.load({"a": 1}, checkpoint_id=tmp_path / "nowhere")
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert files == [__file__]


@pytest.mark.filterwarnings("ignore:Detected an existing checkpoint")
def test_a_save_that_fails_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    checkpoint.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match="pickle"):
        checkpoint.save({"a": torch.zeros(2), "b": lambda: None}, checkpoint_id=tmp_path)
    state = {"a": torch.zeros(2)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["a"].tolist() == [1, 1]


def test_a_description_with_other_things_in_it_is_not_run(tmp_path: Path) -> None:
    checkpoint.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(checkpoint.CheckpointException, match="does not belong into the description"):
        checkpoint.load({"a": torch.ones(2)}, checkpoint_id=tmp_path)


PROGRAM = """
import sys
import torch
import torch.distributed.checkpoint as dcp
if sys.argv[1] == "save":
    dcp.save({"net": {"w": torch.arange(6.0).reshape(2, 3)}, "n": 5}, checkpoint_id=sys.argv[2], no_dist=True)
else:
    state = {"net": {"w": torch.zeros(2, 3)}, "n": 0}
    dcp.load(state, checkpoint_id=sys.argv[2], no_dist=True)
    print(state["net"]["w"].tolist(), state["n"])
"""


@pytest.mark.oracle
@pytest.mark.parametrize("writes", ["torch", "retrograd"])
def test_torch_and_retrograd_read_each_others_folders(writes: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    start = {"torch": [sys.executable], "retrograd": [sys.executable, "-m", "retrograd", "run"]}
    reads = "retrograd" if writes == "torch" else "torch"
    folder = str(tmp_path / "saved")
    subprocess.run([*start[writes], program, "save", folder], check=True, env=dict(os.environ))
    found = subprocess.run([*start[reads], program, "load", folder], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] 5"


# ---- the rest ----
def test_one_process_is_the_last_to_join() -> None:
    calls: list[bool] = []

    class Hook(JoinHook):
        def post_hook(self, is_last_joiner: bool) -> None:
            calls.append(is_last_joiner)

    class Counter(Joinable):
        def join_hook(self, **kwargs: Any) -> JoinHook:
            return Hook()

        @property
        def join_device(self) -> Any:
            return torch.device("cpu")

        @property
        def join_process_group(self) -> Any:
            return distributed.group.WORLD

    counter = Counter()
    with Join([counter]):
        Join.notify_join_context(counter)
    assert calls == [True]


def test_collectives_with_gradients_and_those_that_return() -> None:
    given = torch.ones(3, requires_grad=True)
    (only,) = functions.functional.all_gather(given)
    (only * 2 + functions.functional.all_reduce(given)).sum().backward()
    assert given.grad.tolist() == [3, 3, 3]
    assert _functional_collectives.all_reduce(given, "sum", distributed.group.WORLD).tolist() == [1, 1, 1]


def test_one_process_has_nobody_to_send_to() -> None:
    with pytest.raises(ValueError, match="should not be the same as the rank of the current process"):
        distributed.batch_isend_irecv([distributed.P2POp(distributed.isend, torch.ones(1), 0)])
    assert distributed.ReduceOp.RedOpType.SUM == distributed.ReduceOp.SUM
