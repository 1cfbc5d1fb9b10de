"""`fully_shard` in several processes: training, gradients, memory, states and what is refused."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import distributed as d
from retrograd import nn
from retrograd.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
)
from retrograd.distributed.device_mesh import init_device_mesh
from retrograd.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
    register_fsdp_forward_method,
)
from retrograd.distributed.fsdp._rooms import CAN_GIVE_BACK
from retrograd.distributed.fsdp.wrap import ModuleWrapPolicy
from retrograd.distributed.tensor import DTensor, Replicate, Shard
from retrograd.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from retrograd.utils.checkpoint import checkpoint
from tests.distributed.ranks import raised_by

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


class Block(nn.Module):
    """A block with a residual connection, a buffer and an input by name."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = (
            nn.LayerNorm(width),
            nn.Linear(width, width + 3),
            nn.Linear(width + 3, width),
        )
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Any, *, scale: Any = 1.0) -> Any:
        self.count += 1
        return {"out": x + self.outer(self.inner(self.norm(x)).tanh()) * scale}


class Net(nn.Module):
    """Blocks between two layers of the root's own."""

    def __init__(self, width: int = 5, depth: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.last = nn.Linear(width, 2, bias=False)
        self.double()

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for block in self.blocks:
            x = block(x, scale=0.5)["out"]
        return self.last(x)

    def features(self, x: Any) -> Any:
        return self.first(x)


def sharded(net: Any, **options: Any) -> Any:
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


def batches(size: int, steps: int) -> Any:
    return np.random.default_rng(4).standard_normal((steps, size, 4, 3))


def loss_of(model: Any, x: Any) -> Any:
    return (model(torch.tensor(x)) - 1).square().mean()


def assert_same(model: Any, expected: Any, **close: Any) -> None:
    for (name, one), (_, other) in zip(model.state_dict().items(), expected.state_dict().items(), strict=True):
        whole = one.full_tensor() if isinstance(one, DTensor) else one
        torch.testing.assert_close(whole, other, **(close or CLOSE), msg=lambda text, name=name: f"{name}: {text}")


def trained_alike(model: Any, plain: Any, rank: int, size: int, steps: int = 20, clip: float | None = None) -> None:
    """Train one process on the joined batches, and all on their own, and compare."""
    whole, divided = (torch.optim.Adam(one.parameters(), 0.02) for one in (plain, model))
    for x in batches(size, steps):
        norms = []
        for net, optimizer, batch in ((plain, whole, x.reshape(-1, 3)), (model, divided, x[rank])):
            optimizer.zero_grad()
            loss_of(net, batch).backward()
            if clip is not None:
                norms.append(nn.utils.clip_grad_norm_(net.parameters(), clip))
            optimizer.step()
        if clip is not None:
            torch.testing.assert_close(norms[1].full_tensor(), norms[0], **CLOSE)
    assert_same(model, plain)


def check_sharded_training_equals_unsharded(rank: int, size: int) -> None:
    for reshard in (None, True, False):
        trained_alike(sharded(Net(), reshard_after_forward=reshard), Net(), rank, size)
    trained_alike(fully_shard(Net()), Net(), rank, size, steps=3)


def check_large_layers_whose_memory_is_given_back(rank: int, size: int) -> None:
    plain, model = Net(151, 2), sharded(Net(151, 2))
    trained_alike(model, plain, rank, size, steps=4, clip=0.1)
    inner = next(one for one in model.blocks[0]._get_fsdp_state().parameters if one.shape == (154, 151))
    assert inner.sharded.to_local().shape[0] < 154
    if CAN_GIVE_BACK:
        assert not inner.room.array.any(), "the pages are the system's"


def check_parameters_are_shards_outside_of_their_module(rank: int, size: int) -> None:
    model = sharded(Net())
    assert isinstance(model, FSDPModule)
    assert type(model).__name__ == "FSDPNet"
    weight = model.blocks[0].inner.weight
    assert isinstance(weight, DTensor)
    assert isinstance(weight, nn.Parameter)
    assert weight.placements == (Shard(0),)
    assert weight.shape == (8, 5)
    expected = Net()
    assert torch.equal(weight.full_tensor(), expected.blocks[0].inner.weight)
    assert {type(one) for one in model.parameters()} == {DTensor}
    model.blocks[0].unshard()
    assert type(model.blocks[0].inner.weight) is nn.Parameter
    assert torch.equal(model.blocks[0].inner.weight, expected.blocks[0].inner.weight)
    assert type(model.blocks[1].inner.weight) is DTensor
    model.blocks[0].reshard()
    assert model.blocks[0].inner.weight is weight
    handle = model.blocks[0].unshard(async_op=True)
    assert handle is not None
    handle.wait()
    assert type(model.blocks[0].inner.weight) is nn.Parameter
    model(torch.ones(1, 3).double()).sum().backward()
    assert model.blocks[0].inner.weight is weight
    assert weight.grad.placements == (Shard(0),)
    with torch.no_grad():
        found = model(torch.ones(1, 3).double())
    torch.testing.assert_close(found, expected(torch.ones(1, 3).double()), **CLOSE)


def check_gradients_that_are_not_reduced_are_added_up(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())
    x = batches(size, 3)
    for at in range(3):
        model.set_requires_gradient_sync(at == 2)
        model.set_reshard_after_backward(at == 2)
        loss_of(model, x[at, rank]).backward()
        loss_of(plain, x[at].reshape(-1, 3)).backward()
        if at < 2:
            assert all(one.grad is None for one in model.parameters() if isinstance(one, DTensor))
    for (name, one), other in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad.full_tensor(), other.grad, **CLOSE, msg=name)
    loss_of(model, x[0, rank]).backward()
    loss_of(plain, x[0].reshape(-1, 3)).backward()
    torch.testing.assert_close(model.first.weight.grad.full_tensor(), plain.first.weight.grad, **CLOSE)


def check_replicas_of_shards(rank: int, size: int) -> None:
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = sharded(Net(), mesh=mesh)
    assert model.first.weight.placements == (Replicate(), Shard(0))
    trained_alike(model, Net(), rank, size, steps=5, clip=0.3)
    plain, model = Net(), sharded(Net(), mesh=mesh)
    for at, x in enumerate(batches(size, 2)):
        model.set_requires_all_reduce(at == 1)
        loss_of(model, x[rank]).backward()
        loss_of(plain, x.reshape(-1, 3)).backward()
    torch.testing.assert_close(model.first.weight.grad.full_tensor(), plain.first.weight.grad, **CLOSE)


class Mixed(nn.Module):
    """Small parameters of two dtypes, a large one, and one without elements."""

    def __init__(self, size: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.small = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 4))
        self.large = nn.Linear(4, 16384 * size, bias=False)
        self.wide, self.none = nn.Linear(4, 2).double(), nn.Parameter(torch.empty(0, 3))

    def forward(self, x: Any) -> Any:
        y = self.small(x)
        return self.large(y).square().mean() + self.wide(y.double()).square().sum() + self.none.sum()


def divided_twice(mesh: Any, *along: str, **options: Any) -> Any:
    net = Net(9)
    for block in net.blocks:
        parallelize_module(block, mesh["tp"], {"inner": ColwiseParallel(), "outer": RowwiseParallel()})
    return sharded(net, mesh=mesh[along], **options)


def check_tensor_parallel_layers_are_sharded(rank: int, size: int) -> None:
    for shape in ((2, 2),) if size == 4 else ((1, size), (size, 1)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
        for reshard in (None, False):
            plain, model = Net(9), divided_twice(mesh, "dp", reshard_after_forward=reshard)
            trained_alike(model, plain, mesh.get_local_rank("dp"), shape[0], steps=4)
        inner, outer = model.blocks[0].inner, model.blocks[0].outer
        assert inner.weight.shape == (12, 9)
        assert inner.weight.to_local().shape == (12 // size, 9)  # cut twice along one dimension
        assert inner.weight.placements == (Shard(0), Shard(0))
        assert outer.weight.placements == (Shard(1), Shard(0))
        assert outer.bias.placements == (Replicate(), Shard(0))
        whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
        torch.testing.assert_close(whole, dict(plain.state_dict()), **CLOSE)
        other = divided_twice(mesh, "dp")
        assert other.load_state_dict(whole) == ([], [])
        assert_same(other, plain)
    if size == 4:
        mesh = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("copies", "dp", "tp"))
        trained_alike(divided_twice(mesh, "copies", "dp"), Net(9), mesh.get_local_rank("copies"), 2, steps=2)
    layer = parallelize_module(nn.Linear(2, 12), mesh["tp"], ColwiseParallel())
    assert "have a dimension in common" in raised_by(lambda: fully_shard(layer, mesh=mesh["tp"]))
    assert "are not parts of one mesh" in raised_by(lambda: fully_shard(layer))


def check_a_sharded_module_takes_distributed_tensors(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 12), nn.Linear(12, 2)).double()
    model = copy.deepcopy(plain)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(use_local_output=False), "1": RowwiseParallel()})
    for layer in model:
        fully_shard(layer, mesh=mesh["dp"])
    trained_alike(fully_shard(model, mesh=mesh["dp"]), plain, 0, 1, steps=3)


def check_small_parameters_travel_together(rank: int, size: int) -> None:
    plain, model = Mixed(size), fully_shard(Mixed(size))
    x, before = torch.ones(2, 3), d.group.WORLD.called
    loss = model(x)
    assert d.group.WORLD.called - before == 3  # gatherings: small ones of float32 and of float64, the large one
    loss.backward()
    assert d.group.WORLD.called - before == 6
    plain(x).backward()
    torch.testing.assert_close(loss, plain(x))
    for name, one in model.named_parameters():
        torch.testing.assert_close(one.grad.full_tensor(), plain.get_parameter(name).grad)
    first, second = model.small[0].weight.grad.to_local(), model.small[0].bias.grad.to_local()
    second_before = second.clone()
    first.zero_()
    assert torch.equal(second, second_before)


def check_states_in_parts_and_whole(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    loss_of(model, batches(size, 1)[0, rank]).backward()
    optimizer.step()
    with torch.no_grad():
        model(torch.ones(1, 3).double())  # leaves the root's parameters whole
    state = model.state_dict()
    assert list(state) == list(plain.state_dict())
    assert type(state["first.weight"]) is DTensor
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert type(whole["first.weight"]) is torch.Tensor
    assert torch.equal(whole["blocks.1.inner.weight"], state["blocks.1.inner.weight"].full_tensor())
    moments = get_optimizer_state_dict(model, optimizer)["state"]["first.weight"]["exp_avg"]
    assert moments.placements == (Shard(0),)

    other = sharded(Net())
    assert other.load_state_dict(state) == ([], [])
    assert torch.equal(other.first.weight, model.first.weight)
    third = sharded(Net())
    set_model_state_dict(third, whole, options=StateDictOptions(full_state_dict=True))
    assert torch.equal(third.blocks[2].outer.bias, model.blocks[2].outer.bias)
    plain.load_state_dict(whole)
    assert_same(model, plain)
    fourth = sharded(Net())
    fourth(torch.ones(1, 3).double())
    for given in (state, whole):
        assert fourth.load_state_dict({key: one * 2 for key, one in given.items()}, assign=True) == ([], [])
        assert torch.equal(fourth.first.weight.full_tensor(), whole["first.weight"] * 2)
        plain.load_state_dict({key: one * 2 for key, one in whole.items()})
        x = torch.ones(1, 3).double()
        torch.testing.assert_close(fourth(x), plain(x))
    wrong = {**state, "last.weight": torch.zeros(3, 3)}
    assert "size mismatch for last.weight" in raised_by(lambda: other.load_state_dict(wrong))


class Odd(nn.Module):
    """Tied and frozen weights, one that is not used, a layer that is used twice, and parts that are computed again."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.inner, self.tied = nn.Linear(4, 4), nn.Linear(4, 4)
        self.tied.weight = self.inner.weight
        self.frozen, self.twice, self.unused = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(2, 2)
        self.frozen.requires_grad_(False)
        self.double()

    def forward(self, x: Any) -> Any:
        y = self.frozen(x)
        y = checkpoint(lambda one: self.inner(one).tanh(), y, use_reentrant=False)
        return self.tied(self.twice(self.twice(y).tanh()))


def check_tied_frozen_unused_and_repeated_layers(rank: int, size: int) -> None:
    for inner in ((), ("twice",), ("twice", "frozen", "unused")):
        plain, model = Odd(), Odd()
        for name in inner:
            fully_shard(getattr(model, name))
        fully_shard(model)
        assert model.tied.weight is model.inner.weight
        assert not model.frozen.weight.requires_grad
        for x in batches(size, 3):
            for net, given in ((plain, x.reshape(-1, 3)), (model, x[rank])):
                loss_of(net, given).backward()
        for (name, one), other in zip(model.named_parameters(), plain.parameters(), strict=True):
            if other.grad is None:
                assert one.grad is None, name
            else:
                torch.testing.assert_close(one.grad.full_tensor(), other.grad, **CLOSE, msg=name)


def check_a_whole_state_with_tied_weights_is_loaded(rank: int, size: int) -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    whole = {name: torch.full_like(one, 2.0) for name, one in model.state_dict().items()}
    fully_shard(model).load_state_dict(whole)
    assert first.weight is second.weight
    torch.testing.assert_close(first.weight.full_tensor(), whole["0.weight"])


def check_weights_tied_across_groups_are_refused(rank: int, size: int) -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    model = fully_shard(nn.Sequential(fully_shard(first), fully_shard(second)))
    for _ in range(2):
        assert raised_by(lambda: model(torch.ones(1, 4))).splitlines()[0] == (  # torch 2.13's words
            "ValueError: Parameter '1.weight' is shared with a parameter already managed by another FSDP group. For shared/tied "
            "parameters, use fully_shard([module_a, module_b]) to place them in the same FSDP group."
        )
    d.barrier()


def check_a_frozen_layer_below_a_trained_one(rank: int, size: int) -> None:
    """Its parameters are needed after all gradients of its module have come: for that of the input."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 300), nn.Linear(300, 300), nn.Linear(300, 1)).double()
    plain[1].requires_grad_(False)
    model = copy.deepcopy(plain)
    part = fully_shard(nn.Sequential(model[1], model[2]))
    given = torch.tensor(batches(size, 1)[0, rank])
    for net in (plain, nn.Sequential(model[0], part)):
        net(given).sum().backward()
    torch.testing.assert_close(model[0].weight.grad, plain[0].weight.grad, **CLOSE)


def check_two_losses_and_a_second_backward(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())
    x = batches(size, 2)
    for net, first, second in ((plain, x[0].reshape(-1, 3), x[1].reshape(-1, 3)), (model, x[0, rank], x[1, rank])):
        loss = loss_of(net, first) + loss_of(net, second)
        loss.backward(retain_graph=True)
        loss.backward()
    for (name, one), other in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad.full_tensor(), other.grad, **CLOSE, msg=name)


def check_prefetching_changes_nothing(rank: int, size: int) -> None:
    model = sharded(Net())
    blocks = list(model.blocks)
    model.set_modules_to_forward_prefetch(blocks[:2])
    blocks[0].set_modules_to_forward_prefetch([blocks[1], blocks[2]])
    blocks[2].set_modules_to_backward_prefetch([blocks[1], blocks[0]])
    blocks[1].set_modules_to_backward_prefetch([])
    trained_alike(model, Net(), rank, size, steps=3)
    assert "Expects FSDPModule" in raised_by(lambda: model.set_modules_to_forward_prefetch([nn.Linear(1, 1)]))


def check_other_methods_ignored_parameters_and_several_modules(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())
    register_fsdp_forward_method(model, "features")
    given = torch.tensor(batches(size, 1)[0, rank])
    torch.testing.assert_close(model.features(given), plain.features(given), **CLOSE)
    model = Net()
    kept = model.first.weight
    fully_shard(model, ignored_params={kept})
    assert model.first.weight is kept
    assert type(model.first.bias) is DTensor
    model = Net()
    fully_shard([model.first, model.last], reshard_after_forward=True)
    fully_shard(model)
    assert model.first._get_fsdp_state() is model.last._get_fsdp_state()
    trained_alike(model, Net(), rank, size, steps=3)


def check_cuts_along_another_dimension(rank: int, size: int) -> None:
    def choose(parameter: Any) -> Any:
        return Shard(1) if parameter.ndim == 2 and parameter.shape[1] % size == 0 else None

    model = sharded(Net(12), shard_placement_fn=choose)
    assert model.blocks[0].inner.weight.placements == (Shard(1),)
    trained_alike(model, Net(12), rank, size, steps=4)


def check_lower_precision_while_computing(rank: int, size: int) -> None:
    single, double = torch.float32, torch.float64
    model = Net()
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(param_dtype=single, reduce_dtype=double))
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=single, output_dtype=double))
    seen = []
    model.blocks[0].inner.register_forward_hook(
        lambda module, args, out: seen.append((module.weight.dtype, args[0].dtype, out.dtype))
    )
    found = model(torch.ones(2, 3).double())
    assert found.dtype is torch.float64
    assert seen[0] == (torch.float32,) * 3
    found.sum().backward()
    assert model.first.weight.dtype is model.first.weight.grad.dtype is torch.float64
    plain = Net().float()
    plain(torch.ones(2, 3)).sum().backward()
    torch.testing.assert_close(
        model.first.weight.grad.full_tensor(), plain.first.weight.grad.double(), rtol=1e-5, atol=1e-5
    )


def check_modules_without_memory_and_casts(rank: int, size: int) -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    fully_shard(model)
    assert model[0].weight.is_meta
    assert "materialized from meta device" in raised_by(lambda: model(torch.ones(1, 3)))
    model.to_empty(device="cpu")
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    model.load_state_dict(plain.state_dict())
    torch.testing.assert_close(model(torch.ones(1, 3)), plain(torch.ones(1, 3)))
    model.double()
    assert model[0].weight.dtype is torch.float64
    assert type(model[0].weight) is DTensor
    found = model(torch.ones(1, 3).double())
    torch.testing.assert_close(found, plain.double()(torch.ones(1, 3).double()))
    found.sum().backward()
    assert model[0].weight.grad.dtype is torch.float64


def check_optimizers_inside_of_backward(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())
    optimizers = {one: torch.optim.SGD([one], 0.1) for one in model.parameters()}

    def update(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for one in model.parameters():
        one.register_post_accumulate_grad_hook(update)
    whole = torch.optim.SGD(plain.parameters(), 0.1)
    for x in batches(size, 3):
        whole.zero_grad()
        loss_of(plain, x.reshape(-1, 3)).backward()
        whole.step()
        loss_of(model, x[rank]).backward()
        assert model.first.weight.grad is None
    assert_same(model, plain)


def check_an_error_in_the_middle_is_forgotten(rank: int, size: int) -> None:
    plain, model = Net(), sharded(Net())

    def fail(*_: Any) -> None:
        raise ArithmeticError("in the middle")

    handle = model.blocks[1].register_forward_pre_hook(fail)
    assert "in the middle" in raised_by(lambda: loss_of(model, batches(size, 1)[0, rank]))
    handle.remove()
    model.reset_iter_state()
    assert type(model.first.weight) is DTensor
    handle = model.first.register_full_backward_pre_hook(fail)  # when the gradients of blocks are under way
    assert "in the middle" in raised_by(lambda: loss_of(model, batches(size, 1)[0, rank]).backward())
    handle.remove()
    model.reset_iter_state()
    model.zero_grad()
    for block in model.blocks:
        block.count.zero_()
    trained_alike(model, plain, rank, size, steps=2)


def check_shards_are_saved_and_loaded(rank: int, size: int) -> None:
    model = sharded(Net())
    optimizer = torch.optim.Adam(model.parameters())
    loss_of(model, batches(size, 1)[0, rank]).backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)
    other = sharded(Net())
    its = torch.optim.Adam(other.parameters())
    other.load_state_dict(state["model"])
    its.load_state_dict(state["optimizer"])
    for net, chosen in ((model, optimizer), (other, its)):
        chosen.zero_grad()
        loss_of(net, batches(size, 1)[0, rank]).backward()
        chosen.step()
    assert torch.equal(model.first.weight, other.first.weight)


def check_shards_that_were_loaded_know_their_processes(rank: int, size: int) -> None:
    model = fully_shard(Net())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=False)
    torch.testing.assert_close(state["first.weight"].full_tensor(), Net().first.weight, **CLOSE)
    assert state["first.weight"].device_mesh == model.first.weight.device_mesh


def check_the_largest_gradient_where_a_process_has_none(rank: int, size: int) -> None:
    model = fully_shard(
        nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
    )  # of whose last layer the last process has nothing
    model(torch.ones(2, 4)).sum().backward()
    sizes = torch.cat([one.grad.full_tensor().abs().flatten() for one in model.parameters()])
    for order, expected in ((float("inf"), sizes.max()), (float("-inf"), sizes.min())):
        found = nn.utils.get_total_norm([one.grad for one in model.parameters()], order)
        torch.testing.assert_close(found.full_tensor(), expected, **CLOSE)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=float("inf"))


def check_the_wrapper_trains_as_one_process(rank: int, size: int) -> None:
    for strategy in (None, ShardingStrategy.SHARD_GRAD_OP):
        plain, inside = Net(), Net()
        if rank:
            with torch.no_grad():
                inside.first.weight.zero_()
        policy = ModuleWrapPolicy({Block})
        model = FullyShardedDataParallel(inside, None, strategy, auto_wrap_policy=policy, sync_module_states=True)
        assert len(FullyShardedDataParallel.fsdp_modules(model)) == 4
        whole, divided = (torch.optim.Adam(one.parameters(), 0.02) for one in (plain, model))
        for x in batches(size, 5):
            for net, optimizer, batch in ((plain, whole, x.reshape(-1, 3)), (model, divided, x[rank])):
                optimizer.zero_grad()
                loss_of(net, batch).backward()
            norm = model.clip_grad_norm_(0.3)
            torch.testing.assert_close(norm, nn.utils.clip_grad_norm_(plain.parameters(), 0.3), **CLOSE)
            whole.step()
            divided.step()
        state = model.state_dict()
        assert list(state) == list(plain.state_dict())
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(state[name], value, **CLOSE)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            assert type(model.state_dict()["first.weight"]) is DTensor
        config = FullStateDictConfig(rank0_only=True)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
            assert (len(model.state_dict()) > 0) == (rank == 0)
        with torch.no_grad(), FullyShardedDataParallel.summon_full_params(model):
            assert type(model.module.first.weight) is nn.Parameter
            model.module.first.weight.fill_(3.0)
        assert model.module.first.weight.full_tensor().tolist() == [[3.0] * 3] * 5
        model.load_state_dict(plain.state_dict())
        torch.testing.assert_close(model.module.first.weight.full_tensor(), plain.first.weight.detach(), **CLOSE)
    given = batches(size, 2)
    plain.zero_grad()
    model.zero_grad()
    with model.no_sync():
        loss_of(model, given[0, rank]).backward()
    loss_of(model, given[1, rank]).backward()
    for one in given:
        loss_of(plain, one.reshape(-1, 3)).backward()
    torch.testing.assert_close(model.module.first.weight.grad.full_tensor(), plain.first.weight.grad, **CLOSE)
    single = FullyShardedDataParallel(Net(), mixed_precision=MixedPrecision(param_dtype=torch.float32))
    assert single(torch.tensor(given[0, rank])).dtype is torch.float32
    said = raised_by(lambda: FullyShardedDataParallel(Net(), sharding_strategy=ShardingStrategy.NO_SHARD))
    assert "use DistributedDataParallel" in said


def check_what_is_refused(rank: int, size: int) -> None:
    assert "containers that do not implement forward" in raised_by(lambda: fully_shard(nn.ModuleList([])))
    assert raised_by(lambda: fully_shard(3)) == "TypeError: 'int' object is not iterable"
    scalar = nn.Module()
    scalar.register_parameter("s", nn.Parameter(torch.zeros(())))
    assert "doesn't support scalar parameters. Change s" in raised_by(lambda: fully_shard(scalar))
    assert "does not support deepcopy" in raised_by(lambda: copy.deepcopy(fully_shard(Net())))
    assert f"factor of {size}, not {size + 1}" in raised_by(lambda: fully_shard(Net(), reshard_after_forward=size + 1))
    assert "bool or an int" in raised_by(lambda: fully_shard(Net(), reshard_after_forward="x"))
    assert isinstance(fully_shard(Net(), offload_policy=CPUOffloadPolicy()), FSDPModule)
    again = fully_shard(nn.Linear(2, 2))
    assert "has been applied" in raised_by(lambda: fully_shard(again))
    uneven = nn.Linear(size * 2 + 1, 2)
    choose = lambda one: Shard(one.ndim - 1)  # noqa: E731
    assert "uneven sharding on dim 1" in raised_by(lambda: fully_shard(uneven, shard_placement_fn=choose))
    d.barrier()
