"""torch.distributed.checkpoint.default_planner: every value is written once, and each process reads what its own parts need."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from math import prod
from typing import Any

from ..._warnings import warn
from ...tensor import Tensor
from ...tensor._functions.creation import empty, empty_like
from ..tensor import DTensor
from ._nesting import Place, put, taken_apart
from .metadata import BytesStorageMetadata, Metadata, StorageMeta, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import _boxed, _create_read_items, _create_write_items, _overlapping, _part_of

PACKAGE = __name__.partition(".")[0]


# ---- writing ----
class DefaultSavePlanner(SavePlanner):
    """Writes every value once: what several processes have goes to the one that has least to write.

    `enable_plan_caching` changes nothing: plans are made anew for each checkpoint.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, Place] = {}
        if dedup_replicated_tensors is not None:
            warn(
                "DefaultSavePlanner's `dedup_replicated_tensors` argument is being deprecated, and no longer has any effect. "
                "Please remove this argument from your call."
            )

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state that is to be written."""
        if self.flatten_state_dict:
            state_dict, self.mappings, _ = taken_apart(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Return what this process could write."""
        self.plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            self.plan = replace(self.plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return what each process does write, and what there is in all."""
        once = _each_once(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, self.metadata = create_default_global_save_plan(once)
        if self.flatten_state_dict:
            merged = {name: place for plan in reversed(all_plans) for name, place in plan.planner_data.items()}
            self.metadata = replace(self.metadata, planner_data=merged)
        _need_whole(self.metadata, several=len(all_plans) > 1)
        return self.global_plan, self.metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take the plan that the first process has made for this one."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        """Return the tensor, or the bytes, of what is written."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: Any) -> Any:
        """Return the value that an index names, or this process's part of it."""
        return _part_of(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return a value as it is written: tensors as they are, others as bytes."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        content = io.BytesIO()
        import_module(f"{PACKAGE}.serialization").save(object, content)
        return content


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Return what a process could write: its parts of every value."""
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


def _each_once(plans: list[SavePlan], to_lowest: bool) -> list[SavePlan]:
    """Leave each thing to one of the processes that could write it: the one that has least so far, or the first."""
    owners: dict[Any, list[int]] = defaultdict(list)
    first: dict[Any, WriteItem] = {}
    for at, plan in enumerate(plans):
        for item in plan.items:
            owners[item.index].append(at)
            other = first.setdefault(item.index, item)
            if other.type is not item.type or _form(other) != _form(item):
                raise ValueError(
                    f"Failed to validate global plan: key:{item.index.fqn} differs by process: {_form(other)} on rank "
                    f"{owners[item.index][0]}, {_form(item)} on rank {at}\n"
                    "Hint: give what processes have of their own names of its own, or make it a DTensor."
                )
    sizes, kept = [0] * len(plans), {}
    for index, ranks in owners.items():
        chosen = min(ranks) if to_lowest else min(ranks, key=lambda rank: sizes[rank])
        sizes[chosen] += first[index].tensor_storage_size() or 1
        kept[index] = chosen
    return [
        replace(plan, items=[item for item in plan.items if kept[item.index] == at]) for at, plan in enumerate(plans)
    ]


def _form(item: WriteItem) -> str:
    data = item.tensor_data
    return "no tensor" if data is None else f"{data.properties.dtype} {list(data.size)} from {list(data.chunk.offsets)}"


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Return the plans with numbered parts, and what there is in all."""
    described: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type is not WriteItemType.SHARD and name in described:
                raise AssertionError("item.index.fqn not in md")
            if item.tensor_data is None:
                described[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            chunks = described.setdefault(name, TensorStorageMetadata(data.properties, data.size, [])).chunks
            items.append(replace(item, index=replace(item.index, index=len(chunks))) if rewrite_index_hints else item)
            chunks.append(data.chunk)
        plans.append(replace(plan, items=items))
    return plans, Metadata(described)


def _need_whole(metadata: Metadata, several: bool) -> None:
    """Raise if the parts of a tensor leave something out, lie upon each other or outside of it."""
    errors = []
    for name, value in metadata.state_dict_metadata.items():
        if not isinstance(value, TensorStorageMetadata) or not len(value.size):
            continue
        for chunk in value.chunks:
            box = zip(chunk.offsets, chunk.sizes, value.size, strict=True)
            if any(begin < 0 or size < 0 or begin + size > whole for begin, size, whole in box):
                errors.append(f"key:{name} has out of bounds chunk: tensor-size:{value.size} chunk: {chunk}")
        errors += [f"key:{name} has overlapping chunks: {one} {other}" for one, other in _overlapping(value.chunks)]
        volume, covered = prod(value.size), sum(prod(chunk.sizes) for chunk in value.chunks)
        if several and covered != volume:
            errors.append(f"key:{name} invalid fill tensor-volume: {volume} chunks-volume: {covered}")
    if errors:
        summary = "; ".join(errors)
        raise ValueError(
            f"Failed to validate global plan: {summary[:500]}{'... (truncated)' if len(summary) > 500 else ''}"
        )


# ---- reading ----
class DefaultLoadPlanner(LoadPlanner):
    """Reads what the given values ask for; with `allow_partial_load`, what the checkpoint lacks stays as it is."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict: dict[str, Any] = {}
        self.mappings: dict[str, Place] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state that is to be read into; tensors on the meta device get memory."""
        _materialise(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings, self._holders = taken_apart(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Return what this process reads."""
        if self.metadata is None:
            raise AssertionError("self.metadata is not None")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """Take the plan as it is."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take a value that is no tensor."""
        name = read_item.dest_index.fqn
        holder, key = self._holders[name] if self.flatten_state_dict else (self.state_dict, name)
        holder[key] = import_module(f"{PACKAGE}.serialization").load(value, weights_only=False)

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """Return the tensor, or the part of one, that is filled."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Do nothing: the tensor was filled in place."""

    def lookup_tensor(self, index: Any) -> Any:
        """Return the tensor that an index names, or this process's part of it."""
        return _part_of(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """Return the box that is filled."""
        return _boxed(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads all there is, or what begins with some keys, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _wants(self, name: str, place: Place) -> bool:
        """Tell whether a value is asked for by its name, or by that of something around it."""
        if self.keys is None or name in self.keys:
            return True
        return any(".".join(map(str, place[:count])) in self.keys for count in range(1, len(place) + 1))

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Make the state from what the checkpoint says of itself."""
        if state_dict:
            raise AssertionError("not state_dict")
        if metadata is None:
            raise AssertionError("metadata is not None")
        for name, kind in metadata.state_dict_metadata.items():
            place = (metadata.planner_data or {}).get(name, (name,))
            if self._wants(name, place):
                is_tensor = isinstance(kind, TensorStorageMetadata)
                put(state_dict, place, empty(kind.size, dtype=kind.properties.dtype) if is_tensor else kind)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """Return what a process reads: the stored boxes that its parts need."""
    items = []
    for name, value in state_dict.items():
        if name not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        kind = metadata.state_dict_metadata[name]
        if isinstance(kind, TensorStorageMetadata) and isinstance(value, Tensor) and kind.size != value.shape:
            raise ValueError(f"Size mismatch between saved {kind.size} and current: {value.shape} for {name}")
        items += _create_read_items(name, kind, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans as they are: processes read without regard to each other."""
    return all_plans


def _materialise(value: Any) -> Any:
    """Give tensors on the meta device memory, in place of them in dicts and lists."""
    if isinstance(value, Tensor):
        if not value.is_meta:
            return value
        if isinstance(value, DTensor):
            local = empty_like(value.to_local(), device=value.device_mesh.device_type)
            return DTensor.from_local(
                local, value.device_mesh, value.placements, shape=value.shape, stride=value.stride()
            )
        return empty_like(value, device="cpu")
    if isinstance(value, Mapping):
        for key, one in value.items():
            new = _materialise(one)
            if new is not one:
                value[key] = new  # type: ignore[index]
    elif isinstance(value, list):
        value[:] = [_materialise(one) for one in value]
    return value


__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]
