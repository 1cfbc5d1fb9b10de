"""What the processes of a group do together with tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _errors
from .._public import set_all
from .._tracebacks import guard_listed as _guard_listed
from .._warnings import warn
from ..tensor import Tensor
from ._agreement import agreed
from ._buffers import joined, room_for, write_back
from ._groups import ProcessGroup, _rank_not_in_group, get_rank, need_group
from ._reductions import ReduceOp, need_op
from ._work import Work, work_in_background

Rank = int | None
# the name of what is done, the role of the process that has a list, and what the list is
GATHER = ("gather", "destination", "output")
SCATTER = ("scatter", "source", "input")


def run(
    group: ProcessGroup, what: str, issue: Callable[[], Any], written: list[Any], flat: Any, async_op: bool, **how: Any
) -> Work | None:
    """Start something on a row of numbers, which the tensors that are written get; wait unless it is asynchronous.

    `timeout` is another limit than the group's, `peer` the other process of a message. With
    `ordered=False` it does not wait for its turn: see Note [The order of collectives].
    `given` are the tensors that processes give, and `words` what else they must agree on: see Note [What processes agree on].
    """
    if group.comparisons and "given" in how:
        issue = agreed(group, what, how["given"], how.get("words", ""), issue)
    waiter = group.waiter(what, how.get("timeout"), how.get("peer"))
    if not async_op and group.line.is_idle():
        waiter.run(issue)
        write_back(written, flat)
        return None
    work = Work(issue, lambda: write_back(written, flat), written, waiter)
    group.line.start(work, how.get("ordered", True))
    if not async_op:
        work.wait()
        return None
    if not work._completed:
        work_in_background()
    return work


def is_outside(group: Any, what: str) -> bool:
    """Tell whether this process is not in a group, and warn as torch does."""
    if not _rank_not_in_group(group):
        return False
    warn(f"Running {what} on global rank {get_rank()} which does not belong to the given group.")
    return True


def need_tensor(value: Any, name: str) -> None:
    """Raise torch's error for anything but a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} "
            "instead."
        )


def _need_tensors(value: Any, name: str) -> None:
    if not isinstance(value, list) or not all(isinstance(one, Tensor) for one in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
            f"{type(value)} instead."
        )


def root_in(group: ProcessGroup, rank: Rank, in_group: Rank, default: Rank = None) -> int:
    """Return the number in the group of the process that is meant, which may be given among all processes or in the group."""
    if rank is not None and in_group is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if in_group is not None:
        return in_group
    number = default if rank is None else rank
    if number is None:
        raise ValueError("Must specify global_rank or group_rank")
    if number in group._ranks:
        return group._ranks.index(number)
    if len(group._ranks) < need_group(None).size():
        raise ValueError(f"Global rank {number} is not part of group {group}")
    return number


def need_root(group: ProcessGroup, root: int, name: str) -> None:
    """Raise torch's error for a process that does not exist."""
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {root}")


def need_list(group: ProcessGroup, values: Any, name: str, root: int, role: str, action: str) -> None:
    """Check what only one process has: the list from which all receive, or into which all give."""
    if root != group.rank():
        if values:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")
        need_root(group, root, action)
    elif not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")


def _need_count(values: Any, group: ProcessGroup, error: str) -> None:
    """Raise an error, which may tell how many there are and should be, unless there is one value for each process."""
    if len(values) != group.size():
        raise RuntimeError(error.format(len(values), size=group.size()))


def _need_same_dtype(expected: Any, found: Any) -> None:
    if expected.dtype is not found.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypesFound {expected.dtype} and  {found.dtype}")


def _need_alike(expected: Any, found: Any, name: str) -> None:
    """Check that all tensors of a list have one dtype and shape."""
    for at, one in enumerate(found):
        _need_same_dtype(expected, one)
        if expected.shape != one.shape:
            wanted, got = (_errors.sizes(tensor.shape)[1:-1] for tensor in (expected, one))
            sizes = f"expected ({wanted}), got ({got})"
            raise RuntimeError(f"ProcessGroupGloo::{name}: invalid tensor size at index {at} ({sizes})")


def _listed(
    tensor: Any, tensors: Any, roots: tuple[Rank, Rank], group: ProcessGroup, action: tuple[str, str, str]
) -> tuple[int, bool]:
    """Check a process's tensor and the list that only the root has; return the root, and whether it is this process."""
    name, role, side = action
    root = root_in(group, *roots, 0)
    need_list(group, tensors, f"{name}_list", root, role, name)
    need_root(group, root, name)
    here = root == group.rank()
    if here:
        _need_count(tensors, group, wrong_size(name, side))
        _need_alike(tensor, tensors, name)
    return root, here


def wrong_size(name: str, side: str) -> str:
    """Return torch's sentence for a list that has not a value for each process."""
    rule = f"{side.capitalize()} list size should be {{size}}, same as size of the process group."
    return f"ProcessGroupGloo::{name}: Incorrect {side} list size {{}}. {rule}"


def _check_list(tensor: Any, tensors: Any, name: str) -> None:
    need_tensor(tensor, "tensor")
    if tensors:
        _need_tensors(tensors, name)
        for one in tensors:
            _need_same_dtype(tensor, one)


# ---- reductions ----
def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the sum over the processes, or what else is wanted, into every process's tensor.

    Args:
        tensor: what this process gives; the result is written into it
        op: a `ReduceOp`
        group: which processes; all unless it is given
        async_op: return a handle to wait for, at once

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> mine = torch.tensor([1.0, 2.0])
        >>> torch.distributed.all_reduce(mine)
        >>> mine  # of one process: its own
        tensor([1., 2.])
        >>> torch.distributed.destroy_process_group()
    """
    need_tensor(tensor, "tensor")
    if is_outside(group, "all_reduce"):
        return None
    group = need_group(group)
    need_op(tensor, op, group._config, "all_reduce")
    engine = group.engine_for(tensor)
    flat = room_for([tensor], engine.on_host)
    return run(
        group, "all_reduce", lambda: engine.all_reduce(flat, op), [tensor], flat, async_op, given=[tensor], words=op
    )


def reduce(
    tensor: Any,
    dst: Rank = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: Rank = None,
) -> Work | None:
    """Put the sum over the processes into the tensor of one of them."""
    need_tensor(tensor, "tensor")
    if is_outside(group, "reduce"):
        return None
    group = need_group(group)
    root = root_in(group, dst, group_dst)
    need_root(group, root, "reduce")
    need_op(tensor, op, group._config, "reduce")
    engine = group.engine_for(tensor)
    flat = room_for([tensor], engine.on_host)
    written = [tensor] if root == group.rank() else []
    return run(
        group,
        "reduce",
        lambda: engine.reduce(flat, root, op),
        written,
        flat,
        async_op,
        given=[tensor],
        words=(op, root),
    )


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Add up the lists of all processes; each gets one of the sums."""
    need_tensor(output, "output")
    _need_tensors(input_list, "input_list")
    if is_outside(group, "reduce_scatter"):
        return None
    group = need_group(group)
    _need_count(input_list, group, "invalid input tensor list size, must be world size")
    need_op(output, op, group._config, "reduce_scatter")
    _need_alike(output, input_list, "reduce_scatter")
    return _reduce_scatter(output, input_list, op, group, async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Add up the tensors of all processes; each gets a part of the sum."""
    need_tensor(output, "output")
    need_tensor(input, "input")
    if is_outside(group, "reduce_scatter_tensor"):
        return None
    group = need_group(group)
    need_op(output, op, group._config, "reduce_scatter_tensor")
    _need_same_dtype(output, input)
    if output.numel() * group.size() != input.numel():
        raise RuntimeError(
            "input tensor must be the same size as output size times world size\n"
            f"Hint: {tuple(input.shape)} is not {group.size()} times {tuple(output.shape)}."
        )
    return _reduce_scatter(output, [input], op, group, async_op)


def _reduce_scatter(output: Any, inputs: list[Any], op: Any, group: ProcessGroup, async_op: bool) -> Work | None:
    engine = group.engine_for(output)
    given, flat = joined(inputs, engine.on_host), room_for([output], engine.on_host)
    return run(
        group,
        "reduce_scatter",
        lambda: engine.reduce_scatter(flat, given, op),
        [output],
        flat,
        async_op,
        given=inputs,
        words=op,
    )


# ---- moves ----
def broadcast(
    tensor: Any, src: Rank = None, group: Any = None, async_op: bool = False, group_src: Rank = None
) -> Work | None:
    """Put the tensor of one process into that of every one.

    Args:
        tensor: what is sent, or where it is written
        src: the rank of the process that sends
        group: which processes; all unless it is given
        async_op: return a handle to wait for, at once
        group_src: the sender's number within the group, instead of `src`

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> weights = torch.ones(2)
        >>> torch.distributed.broadcast(weights, src=0)
        >>> weights
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    need_tensor(tensor, "tensor")
    if is_outside(group, "broadcast"):
        return None
    group = need_group(group)
    root = root_in(group, src, group_src)
    need_root(group, root, "broadcast")
    engine = group.engine_for(tensor)
    flat = room_for([tensor], engine.on_host)
    written = [] if root == group.rank() else [tensor]
    return run(
        group, "broadcast", lambda: engine.broadcast(flat, root), written, flat, async_op, given=[tensor], words=root
    )


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the tensors of all processes into every one's list.

    Args:
        tensor_list: a tensor for each process, into which its own is written
        tensor: what this process gives
        group: which processes; all unless it is given
        async_op: return a handle to wait for, at once

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> parts = [torch.zeros(2)]
        >>> torch.distributed.all_gather(parts, torch.ones(2))
        >>> parts
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    _need_tensors(tensor_list, "tensor_list")
    need_tensor(tensor, "tensor")
    for one in tensor_list:
        _need_same_dtype(one, tensor)
    if is_outside(group, "all_gather"):
        return None
    group = need_group(group)
    count = "(expected length {size}, got {})"
    _need_count(tensor_list, group, f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 {count}")
    _need_alike(tensor, tensor_list, "allgather")
    return _all_gather(tensor_list, tensor, group, async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes one after the other into every one's tensor."""
    need_tensor(input_tensor, "input_tensor")
    need_tensor(output_tensor, "output_tensor")
    if is_outside(group, "all_gather_into_tensor"):
        return None
    group = need_group(group)
    if group.size() == 1:
        _need_alike(input_tensor, [output_tensor], "allgather")
    _need_same_dtype(input_tensor, output_tensor)
    if output_tensor.numel() != group.size() * input_tensor.numel():
        raise ValueError(
            "output tensor size must be equal to world_size times input tensor size\n"
            f"Hint: {tuple(output_tensor.shape)} is not {group.size()} times {tuple(input_tensor.shape)}."
        )
    return _all_gather([output_tensor], input_tensor, group, async_op)


def _all_gather(outputs: list[Any], tensor: Any, group: ProcessGroup, async_op: bool) -> Work | None:
    engine = group.engine_for(tensor)
    given, flat = joined([tensor], engine.on_host), room_for(outputs, engine.on_host)
    return run(group, "all_gather", lambda: engine.all_gather(flat, given), outputs, flat, async_op, given=[tensor])


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: Rank = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: Rank = None,
) -> Work | None:
    """Put the tensors of all processes into one's list."""
    _check_list(tensor, gather_list, "gather_list")
    if is_outside(group, "gather"):
        return None
    group = need_group(group)
    root, here = _listed(tensor, gather_list, (dst, group_dst), group, GATHER)
    engine = group.engine_for(tensor)
    given = joined([tensor], engine.on_host)
    flat = room_for(gather_list, engine.on_host) if here else None
    written = gather_list if here else []
    return run(
        group, "gather", lambda: engine.gather(flat, given, root), written, flat, async_op, given=[tensor], words=root
    )


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: Rank = None,
    group: Any = None,
    async_op: bool = False,
    group_src: Rank = None,
) -> Work | None:
    """Put each tensor of one process's list into the tensor of one process."""
    _check_list(tensor, scatter_list, "scatter_list")
    if is_outside(group, "scatter"):
        return None
    group = need_group(group)
    root, here = _listed(tensor, scatter_list, (src, group_src), group, SCATTER)
    engine = group.engine_for(tensor)
    given = joined(scatter_list, engine.on_host) if here else None
    flat = room_for([tensor], engine.on_host)
    return run(
        group,
        "scatter",
        lambda: engine.scatter(flat, given, root),
        [tensor],
        flat,
        async_op,
        given=[tensor],
        words=root,
    )


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Send each tensor of a list to one process, and get one from each."""
    _need_tensors(output_tensor_list, "output_tensor_list")
    _need_tensors(input_tensor_list, "input_tensor_list")
    if is_outside(group, "all_to_all"):
        return None
    group = need_group(group)
    for side, tensors in (("input", input_tensor_list), ("output", output_tensor_list)):
        error = f"ProcessGroupGloo::alltoall: {side} tensor list size {{}} does not match world size {{size}}"
        _need_count(tensors, group, error)
    for one in (*input_tensor_list, *output_tensor_list):
        _need_same_dtype(input_tensor_list[0], one)
    if group.size() == 1:
        _need_alike(input_tensor_list[0], output_tensor_list, "alltoall")
    counts, given_counts = ([one.numel() for one in some] for some in (output_tensor_list, input_tensor_list))
    return _all_to_all(output_tensor_list, counts, input_tensor_list, given_counts, group, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each part of a tensor to one process, and get a part from each."""
    need_tensor(output, "output")
    need_tensor(input, "input")
    if is_outside(group, "all_to_all_single"):
        return None
    group = need_group(group)
    _need_same_dtype(output, input)
    counts = _part_counts(output, output_split_sizes, group)
    given_counts = _part_counts(input, input_split_sizes, group)
    if group.size() == 1 and counts != given_counts:
        _need_alike(input, [output], "alltoall")
    return _all_to_all([output], counts, [input], given_counts, group, async_op)


def _part_counts(tensor: Any, sizes: Any, group: ProcessGroup) -> list[int]:
    """Return how many numbers of a tensor each process sends or gets; parts are cut along the first dimension."""
    length = tensor.shape[0] if tensor.ndim else 1
    if sizes:
        _need_count(sizes, group, "Number of tensor splits not equal to group size")
        if sum(sizes) != length:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    elif length % group.size():
        raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
    else:
        sizes = [length // group.size()] * group.size()
    row = tensor.numel() // length if length else 0
    return [size * row for size in sizes]


def _all_to_all(
    outputs: list[Any],
    counts: list[int],
    inputs: list[Any],
    given_counts: list[int],
    group: ProcessGroup,
    async_op: bool,
) -> Work | None:
    engine = group.engine_for(outputs[0])
    given, flat = joined(inputs, engine.on_host), room_for(outputs, engine.on_host)
    return run(
        group,
        "all_to_all",
        lambda: engine.all_to_all(flat, counts, given, given_counts),
        outputs,
        flat,
        async_op,
        given=[],
    )


# ---- being there ----
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here.

    Args:
        group: which processes; all unless it is given
        async_op: return a handle to wait for, at once
        device_ids: accepted

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if is_outside(group, "barrier"):
        return None
    group = need_group(group)
    return run(group, "barrier", group._engine.barrier, [], None, async_op, given=[])


# ---- several at once ----
def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce several tensors over all processes, as one row of numbers."""
    given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    for one in given:
        need_tensor(one, "tensor")
    if is_outside(group, "all_reduce_coalesced"):
        return None
    group = need_group(group)
    if not given:
        return None
    for one in given:
        _need_same_dtype(given[0], one)
    need_op(given[0], op, group._config, "all_reduce")
    engine = group.engine_for(given[0])
    flat = joined(given, engine.on_host)
    return run(
        group, "all_reduce", lambda: engine.all_reduce(flat, op), list(given), flat, async_op, given=given, words=op
    )


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather several tensors of all processes."""
    if is_outside(group, "all_gather_coalesced"):
        return None
    need_group(group)
    outputs = list(zip(*output_tensor_lists, strict=True))
    done = [all_gather(list(out), one, group, async_op) for out, one in zip(outputs, input_tensor_list, strict=True)]
    return done[-1] if done else None


def _broadcast_coalesced(group: Any, tensors: list[Any], buffer_size: int, src: int = 0) -> None:
    """Give all processes several tensors of one, in rows of at most so many bytes."""
    group = need_group(group)
    need_root(group, src, "broadcast")
    row: list[Any] = []
    for tensor in tensors:
        full = row and sum(one.numel() * one.element_size() for one in row) >= buffer_size
        if row and (full or tensor.dtype is not row[0].dtype):
            _broadcast_row(group, row, src)
            row = []
        row.append(tensor)
    if row:
        _broadcast_row(group, row, src)


def _broadcast_row(group: ProcessGroup, tensors: list[Any], root: int) -> None:
    engine = group.engine_for(tensors[0])
    flat = joined(tensors, engine.on_host)
    written = [] if root == group.rank() else tensors
    run(group, "broadcast", lambda: engine.broadcast(flat, root), written, flat, False, given=tensors, words=root)


_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


set_all(
    globals(),
    but="run is_outside need_tensor root_in need_root need_list wrong_size all_reduce_coalesced all_gather_coalesced "
    "all_gather_single reduce_scatter_single",
)
_guard_listed(globals())
