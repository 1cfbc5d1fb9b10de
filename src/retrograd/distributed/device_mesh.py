"""torch.distributed.device_mesh: the processes as an array of one or more dimensions. There is one process: every length is 1."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Self

from .._dtypes import int32
from ..tensor._functions.creation import as_tensor, zeros
from ._groups import ProcessGroup, init_process_group, is_initialized, need_group
from ._one_process_only import need_one_process

MESH_DIM_NEEDED = "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
INSTEAD = "use groups of processes: torch.distributed.new_group"
TOO_BIG = "Mesh should not be bigger than default world size 1, but found {size} ranks!\nHint: retrograd computes in one process."
_entered = threading.local()


class DeviceMesh:
    """An array of the numbers of processes, whose dimensions may have names."""

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
        need_one_process("DeviceMesh", INSTEAD)
        numbers = as_tensor([0] if mesh is None else mesh, dtype=int32)
        if numbers.numel() != 1:
            raise RuntimeError(TOO_BIG.format(size=numbers.numel()))
        if int(numbers) != 0:
            raise RuntimeError(f"mesh {mesh!r} has process {int(numbers)}: there is one, with the number 0")
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if names is not None and len(names) != max(numbers.ndim, 1):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!"
                f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{numbers.ndim}."
            )
        self.device_type = device_type
        self.mesh = numbers.reshape(1) if numbers.ndim == 0 else numbers
        self.mesh_dim_names = names
        self._root: DeviceMesh | None = None
        self._joined: dict[str, DeviceMesh] = {}
        self._group: ProcessGroup | None = None
        if _init_backend:
            if not is_initialized():
                init_process_group()
            self._group = need_group(None)

    @classmethod
    def from_group(
        cls, group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """Make an array of the processes of a group, or of one group for each dimension."""
        groups = group if isinstance(group, (list, tuple)) else [group]
        made = cls(
            device_type,
            zeros([1] * len(groups)) if mesh is None else mesh,
            mesh_dim_names=mesh_dim_names,
            _init_backend=False,
        )
        made._group = groups[0]
        return made

    # ---- what it is ----
    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return int(self.mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the dimensions."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of processes, of all or of one dimension."""
        return int(self.mesh.numel() if mesh_dim is None else self.mesh.size(mesh_dim))

    def get_rank(self) -> int:
        """Return the number of this process among all."""
        return 0

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the number of this process along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions", MESH_DIM_NEEDED)
        self._place(0 if mesh_dim is None else mesh_dim)
        return 0

    def get_coordinate(self) -> list[int] | None:
        """Return where this process is in the array."""
        return [0] * self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the group of the processes along a dimension."""
        if self._group is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                MESH_DIM_NEEDED,
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` instead.",
            )
        self._place(0 if mesh_dim is None else mesh_dim)
        return self._group

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of all dimensions."""
        return [self.get_group(at) for at in range(self.ndim)]

    def _place(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, int):
            return mesh_dim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist. Available mesh dimensions are: {self.mesh_dim_names}"
            )
        return (self.mesh_dim_names or ()).index(mesh_dim)

    # ---- parts ----
    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        root = self._root or self
        if len(names) == 1 and names[0] in root._joined:
            return root._joined[names[0]]
        for name in names:
            if name not in self.mesh_dim_names:
                raise KeyError(
                    f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                    f"{[*self.mesh_dim_names, *root._joined]}."
                )
        return self if names == self.mesh_dim_names else self._part(names)

    def _part(self, names: tuple[str, ...]) -> DeviceMesh:
        numbers = zeros([1] * len(names), dtype=int32)
        made = DeviceMesh(self.device_type, numbers, mesh_dim_names=names, _init_backend=False)
        made._root, made._group = self._root or self, self._group
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """Join all dimensions to one, which the whole array then knows by its name."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        root = self._root or self
        return root._joined.setdefault(name, self._part((name,)))

    def _get_root_mesh(self) -> DeviceMesh:
        """Return the array that this is a part of."""
        return self._root or self

    # ---- where it holds ----
    def __enter__(self) -> Self:
        _entered.stack = [*getattr(_entered, "stack", []), self]
        return self

    def __exit__(self, *exc: object) -> None:
        _entered.stack = _entered.stack[:-1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return False
        mine, others = ((one.device_type, one.shape, one.mesh_dim_names) for one in (self, other))
        return mine == others

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        named = ", ".join(f"{name}=1" for name in self.mesh_dim_names or ())
        lengths = f"({named})" if named else str(self.shape)
        return f"DeviceMesh({lengths}, '{self.device_type}', stride={((),) * self.ndim})"


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Make an array of all processes. There is one, so every length must be 1."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique.Found repeated mesh_dim_name in mesh_dim_names "
                f"{tuple(mesh_dim_names)}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a 'torch.device' object, "
            "it's recommended to pass in 'device.type'."
        )
    size = math.prod(mesh_shape)
    need_one_process("init_device_mesh", INSTEAD)
    if size != 1:
        raise RuntimeError(TOO_BIG.format(size=size))
    return DeviceMesh(device_type, zeros(list(mesh_shape), dtype=int32), mesh_dim_names=mesh_dim_names)


class _MeshEnv:
    """What is known of the arrays that are in force."""

    def get_current_mesh(self) -> DeviceMesh:
        """Return the array of the innermost `with` block."""
        stack = getattr(_entered, "stack", [])
        if not stack:
            raise RuntimeError("No device mesh is currently active!")
        return stack[-1]  # type: ignore[no-any-return]

    def get_root_mesh(self, device_mesh: DeviceMesh) -> DeviceMesh:
        """Return the array that another is a part of."""
        return device_mesh._get_root_mesh()


_mesh_resources = _MeshEnv()

__all__ = ["DeviceMesh", "init_device_mesh"]
