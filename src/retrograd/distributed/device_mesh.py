"""torch.distributed.device_mesh: the processes as an array of one or more dimensions, with a group along each."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._dtypes import int32
from ..tensor import Tensor
from ..tensor._functions.creation import tensor
from ._groups import (
    ProcessGroup,
    _world,
    get_process_group_ranks,
    init_process_group,
    is_initialized,
    need_group,
    new_group,
)

MESH_DIM_NEEDED = "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
_entered = threading.local()


class DeviceMesh:
    """An array of the numbers of processes, whose dimensions may have names. All processes must make it, also those outside of it.

    Args:
        device_type: the kind of device that the tensors are on, `"cpu"` or `"cuda"`
        mesh: the numbers of the processes; all of them in a row if it is not given
        mesh_dim_names: a name for each dimension
        backend_override: another backend for the group of each dimension

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> mesh = torch.distributed.device_mesh.DeviceMesh("cpu", [0])
        >>> mesh.size()
        1
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if not is_initialized():
            init_process_group()
        world = need_group(None)
        numbers = _numbers(list(range(world.size())) if mesh is None else mesh)
        if numbers.size > world.size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world.size()}, but found {numbers.size} ranks!"
            )
        if mesh_dim_names is not None:
            _need_names(mesh_dim_names, numbers.ndim)
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._whole = numbers  # of the mesh that this is a part of
        self._axes: tuple[tuple[int, ...], ...] = tuple(
            (axis,) for axis in range(numbers.ndim)
        )  # of the whole, by dimension
        self._root: DeviceMesh | None = None
        self._joined: dict[str, DeviceMesh] = {}
        self._rank = world.rank() if _rank is None else _rank
        self._groups: list[Any] | None = None
        if _init_backend:
            names = backend_override or (None,) * self.ndim
            self._groups = [self._make_group(at, names[at]) for at in range(self.ndim)]

    def _rows(self, axes: tuple[int, ...]) -> Any:
        """Return the rows of processes along some axes of the whole mesh."""
        others = [axis for axis in range(self._whole.ndim) if axis not in axes]
        length = math.prod(self._whole.shape[axis] for axis in axes)
        return self._whole.transpose(*others, *axes).reshape(-1, length)

    def _make_group(self, mesh_dim: int, backend: Any) -> Any:
        """Make the groups along a dimension, as all processes do, and return the one of this process; None if it is in none."""
        rows = self._rows(self._axes[mesh_dim])
        world = need_group(None)
        if backend is None and rows.tolist() == [list(range(world.size()))]:
            return world
        if any(sorted(row) != row for row in rows.tolist()):
            raise NotImplementedError(
                f"DeviceMesh: the numbers along dimension {mesh_dim} must ascend, but are {rows.tolist()}\n"
                "Hint: a group has its processes in the order of their numbers."
            )
        made = [new_group(row.tolist(), backend=backend, group_desc=f"mesh_dim_{mesh_dim}") for row in rows]
        return next((one for one in made if isinstance(one, ProcessGroup)), None)

    @classmethod
    def from_group(
        cls, group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """Make a mesh of the processes of a group, or of one group for each dimension, without making groups."""
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and _numbers(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            groups: list[Any] = [group]
            mesh = ranks
        else:
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
            if _numbers(mesh).ndim != len(groups):
                raise ValueError(
                    "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                    f"{_numbers(mesh).tolist()} and {len(groups)} ProcessGroups"
                )
        made = cls(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups = groups
        return made

    # ---- what it is ----
    @property
    def mesh(self) -> Any:
        """The numbers of the processes; of a part that along which this process lies."""
        return tensor(self._ranks().tolist(), dtype=int32)

    def _ranks(self) -> Any:
        """Return the numbers of the processes of this mesh. A process outside of a part's mesh sees the first part."""
        rows = self._rows(tuple(axis for axes in self._axes for axis in axes))
        mine = next((row for row in rows if self._rank in row), rows[0])
        return mine.reshape(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return tuple(math.prod(self._whole.shape[axis] for axis in axes) for axes in self._axes)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of processes, of all or of one dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return the number of this process among all."""
        return self._rank

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the number of this process along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions", MESH_DIM_NEEDED)
        at = self._place(0 if mesh_dim is None else mesh_dim)
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError(f"process {self._rank} is not in {self}: its numbers are {self._ranks().tolist()}")
        return coordinate[at]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return where this process is in the mesh; None if it is not in it."""
        ranks = self._ranks()
        at = np.argwhere(ranks == self._rank)
        return tuple(int(one) for one in at[0]) if len(at) else None

    def _is_current_rank_part_of_mesh(self) -> bool:
        """Tell whether this process is in the mesh."""
        return self.get_coordinate() is not None

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the group of the processes along a dimension."""
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                MESH_DIM_NEEDED,
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` instead.",
            )
        found = self._groups[self._place(0 if mesh_dim is None else mesh_dim)]
        if found is None:
            raise RuntimeError(f"process {self._rank} is not in {self}: its numbers are {self._ranks().tolist()}")
        return found  # type: ignore[no-any-return]

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of all dimensions."""
        return [self.get_group(at) for at in range(self.ndim)]

    def _place(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, int):
            if not -self.ndim <= mesh_dim < self.ndim:
                raise IndexError(f"list index out of range\nHint: the mesh has {self.ndim} dimensions, not {mesh_dim}.")
            return mesh_dim % self.ndim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}",
            )
        return (self.mesh_dim_names or ()).index(mesh_dim)

    # ---- parts ----
    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if names == self.mesh_dim_names:
            return self
        root = self._get_root_mesh()
        joined = root._joined if self is root else {}
        known = [*self.mesh_dim_names, *joined]
        if any(name not in known for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {known}.")
        if len(names) == 1 and names[0] in joined:
            return joined[names[0]]
        parts = [joined[name]._axes[0] if name in joined else self._axes[self._place(name)] for name in names]
        firsts = [axes[0] for axes in parts]
        if firsts != sorted(set(firsts)):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        groups: list[Any] | None = None
        if self._groups is not None:
            own = dict(zip(self.mesh_dim_names, self._groups, strict=True))
            groups = [joined[name].get_group() if name in joined else own[name] for name in names]
        return self._part(names, tuple(parts), groups)

    def _part(self, names: tuple[str, ...], axes: tuple[tuple[int, ...], ...], groups: list[Any] | None) -> DeviceMesh:
        made = DeviceMesh.__new__(DeviceMesh)
        made.device_type, made.mesh_dim_names, made._rank = self.device_type, names, self._rank
        made._whole, made._axes, made._groups = self._whole, axes, groups
        made._root, made._joined = self._get_root_mesh(), {}
        return made

    def _followed_by(self, other: DeviceMesh) -> DeviceMesh:
        """Return the mesh with this one's dimensions and then another's, of which both are parts."""
        if not np.array_equal(self._whole, other._whole):
            raise RuntimeError(
                f"{self} and {other} are not parts of one mesh\n"
                'Hint: mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp")), then mesh["dp"] and mesh["tp"].'
            )
        if {axis for axes in self._axes for axis in axes} & {axis for axes in other._axes for axis in axes}:
            raise RuntimeError(f"{self} and {other} have a dimension in common")
        names = (*(self.mesh_dim_names or ()), *(other.mesh_dim_names or ()))
        return self._part(names, (*self._axes, *other._axes), [*self.get_all_groups(), *other.get_all_groups()])

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """Join all dimensions to one, which the whole mesh then knows by its name."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        root = self._get_root_mesh()
        axes = tuple(axis for axes in self._axes for axis in axes)
        if name in (root.mesh_dim_names or ()):
            raise ValueError(
                f"{name} already exists for submesh of the {root}. Please specify another valid mesh_dim_name."
            )
        if name in root._joined:
            if root._joined[name]._axes == (axes,):
                return root._joined[name]
            raise ValueError(
                f"{name} already exists for a flattened submesh of the {root}: choose another mesh_dim_name"
            )
        made = self._part((name,), (axes,), None)
        made._groups = [made._make_group(0, backend_override)]
        root._joined[name] = made
        return made

    def _get_root_mesh(self) -> DeviceMesh:
        """Return the mesh that this is a part of."""
        return self._root or self

    # ---- where it holds ----
    def __enter__(self) -> Self:
        _entered.stack = [*getattr(_entered, "stack", []), self]
        return self

    def __exit__(self, *exc: object) -> None:
        _entered.stack = _entered.stack[:-1]

    def _facts(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, self.mesh_dim_names, tuple(self._ranks().reshape(-1).tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (self is other or self._facts() == other._facts())

    def __hash__(self) -> int:
        return hash(self._facts())

    def __reduce__(self) -> Any:
        return _read_mesh, (self.device_type, self._ranks().tolist(), self.mesh_dim_names)

    def __repr__(self) -> str:
        named = ", ".join(
            f"{name}={length}" for name, length in zip(self.mesh_dim_names or (), self.shape, strict=False)
        )
        lengths = f"({named})" if named else str(self.shape)
        strides = tuple(self._stride(axes) for axes in self._axes)
        return f"DeviceMesh({lengths}, '{self.device_type}', stride={strides})"

    def _stride(self, axes: tuple[int, ...]) -> Any:
        """Return how far apart in the whole mesh neighbours along a dimension are, as torch writes it: axes of length 1 have no steps."""
        shape = self._whole.shape
        steps: list[tuple[int, int]] = []  # lengths and strides of what cannot be seen as one
        for axis in axes:
            if shape[axis] > 1:
                stride = math.prod(shape[axis + 1 :])
                if steps and steps[-1][1] == stride * shape[axis]:
                    steps[-1] = (steps[-1][0] * shape[axis], stride)
                else:
                    steps.append((shape[axis], stride))
        strides = tuple(stride for _, stride in steps)
        return strides[0] if len(strides) == 1 else strides


def _numbers(mesh: Any) -> Any:
    """Return the numbers of processes as an array of at least one dimension."""
    values = mesh.detach().cpu().numpy() if isinstance(mesh, Tensor) else np.asarray(mesh)
    return np.atleast_1d(values.astype(np.int64))


def _need_names(names: Sequence[str], count: int) -> None:
    if len(set(names)) != len(names):
        raise RuntimeError(
            f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {tuple(names)}"
        )
    if len(names) != count:
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! "
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{count}."
        )


def _read_mesh(device_type: str, numbers: Any, names: Any) -> DeviceMesh:
    """Make a mesh that was saved. Its groups are those that there are of its processes: making them would need all processes."""
    made = DeviceMesh(device_type, numbers, mesh_dim_names=names, _init_backend=False)
    found = [_group_with(made._rows(axes).tolist()) for axes in made._axes]
    if None not in found:
        made._groups = found
    return made


def _group_with(rows: list[list[int]]) -> ProcessGroup | None:
    """Return the first group that has the processes of one of these rows."""
    return next((one for one in _world.groups if one._ranks in rows), None)


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Make a mesh of the first processes, in their order; all must call it.

    Args:
        device_type: the kind of device that the tensors are on
        mesh_shape: the lengths of the dimensions
        mesh_dim_names: a name for each dimension
        backend_override: the backend of a dimension's group, by its name or its number

    Returns:
        The mesh, whose parts are found by name: `mesh["tp"]`.

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        >>> mesh["tp"].mesh_dim_names
        ('tp',)
        >>> torch.distributed.destroy_process_group()
    """
    if mesh_dim_names is not None:
        _need_names(mesh_dim_names, len(mesh_shape))
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    if any(length < 1 for length in mesh_shape):
        raise RuntimeError(f"init_device_mesh: the lengths of a mesh are at least 1, not {tuple(mesh_shape)}")
    numbers = np.arange(math.prod(mesh_shape)).reshape(tuple(mesh_shape))
    return DeviceMesh(
        device_type,
        numbers,
        mesh_dim_names=mesh_dim_names,
        backend_override=_backends(backend_override, mesh_dim_names, len(mesh_shape)),
    )


def _backends(given: Any, names: Sequence[str] | None, count: int) -> Any:
    """Return a backend for each dimension, or None: they are given by the dimensions' names or numbers."""
    if not given:
        return None
    found: list[Any] = [None] * count
    for key, value in given.items():
        if isinstance(key, str) and key not in (names or ()):
            raise RuntimeError(f"Found invalid keys in backend_override: got {[key]}, expected one of {names}")
        at = (names or ()).index(key) if isinstance(key, str) else key
        if found[at] is not None:
            raise RuntimeError(f"Found redundant dim index {at} and name {key} in backend_override")
        found[at] = value if isinstance(value, str) or value is None else value[0]
    return found


class _MeshEnv:
    """What is known of the meshes that are in force."""

    def get_current_mesh(self) -> DeviceMesh:
        """Return the mesh of the innermost `with` block."""
        stack = getattr(_entered, "stack", [])
        if not stack:
            raise RuntimeError("No device mesh is currently active!")
        return stack[-1]  # type: ignore[no-any-return]

    def get_root_mesh(self, device_mesh: DeviceMesh) -> DeviceMesh:
        """Return the mesh that another is a part of."""
        return device_mesh._get_root_mesh()


_mesh_resources = _MeshEnv()

__all__ = ["DeviceMesh", "init_device_mesh"]
