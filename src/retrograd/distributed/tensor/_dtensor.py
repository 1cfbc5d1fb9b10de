"""A tensor on a mesh of processes. There is one: however the tensor is placed, this process has all of it.

An operation gives a tensor on the same mesh. Its placements are those of the first argument where it keeps that shape, else `Replicate`:
torch derives them from rules for each operation (a sum over a `Shard` is a `Partial`), which on one process are names for the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ...overrides import hold
from ...tensor import Tensor
from ...tensor._object.overriding import take_over
from ..device_mesh import DeviceMesh, _mesh_resources
from .placement_types import DTensorSpec, Placement, Replicate, Shard, TensorMeta

MIXED = (
    "{name} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed "
    "operators!"
)
_replicates_others = [False]  # whether plain tensors may stand beside distributed ones: `implicit_replication`


class DTensor(Tensor):
    """A tensor with a mesh and its placements there."""

    __module__ = "retrograd.distributed.tensor"
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function on the whole tensors; its results lie on the same mesh."""
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        first = next((one for one in given if isinstance(one, DTensor)), None)
        if first is None or not hasattr(first, "placements"):
            return super().__torch_function__(func, types, args, kwargs)
        if not _replicates_others[0] and any(not isinstance(one, DTensor) and one.ndim > 0 for one in given):
            raise RuntimeError(MIXED.format(name=getattr(func, "__name__", "operation")))
        result = super().__torch_function__(func, types, args, kwargs)
        for one in _tensors(result):
            if isinstance(one, DTensor) and not hasattr(one, "placements"):
                kept = one.shape == first.shape
                places = first.placements if kept else (Replicate(),) * first.device_mesh.ndim
                one.device_mesh, one.placements = first.device_mesh, places
        return result

    @staticmethod
    def from_local(
        local_tensor: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Any = None,
    ) -> DTensor:
        """Take a process's part: the whole, as there is one process."""
        mesh = _mesh(device_mesh)
        return _placed(local_tensor, mesh, _placements(local_tensor, mesh, placements))

    def to_local(self, *, grad_placements: Any = None) -> Any:
        """Return the part that this process has: the whole."""
        return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements: Any = None) -> Any:
        """Return the whole."""
        return self.to_local()

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Change the placement of the tensor, which moves nothing here."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if any(one.is_partial() for one in placements):
            raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        mesh = device_mesh or self.device_mesh
        return _placed(self.to_local(), mesh, _placements(self, mesh, placements))

    @property
    def _local_tensor(self) -> Any:
        return self.detach().as_subclass(Tensor)

    @property
    def _spec(self) -> DTensorSpec:
        return DTensorSpec(self.device_mesh, self.placements, TensorMeta(self.shape, tuple(self.stride()), self.dtype))

    @property
    def grad(self) -> Any:
        """The gradient, which lies where the tensor lies."""
        found = Tensor.grad.fget(self)  # type: ignore[attr-defined]
        if found is not None and not isinstance(found, DTensor):
            found = _placed(found, self.device_mesh, self.placements)
            Tensor.grad.fset(self, found)  # type: ignore[attr-defined]
        return found

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.fset(self, value)  # type: ignore[attr-defined]

    @grad.deleter
    def grad(self) -> None:
        Tensor.grad.fset(self, None)  # type: ignore[attr-defined]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        local = repr(self._local_tensor)
        return f"DTensor(local_tensor={local}, device_mesh={self.device_mesh}, placements={self.placements})"


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Put a tensor, which is a leaf, on a mesh."""
    mesh = _mesh(device_mesh)
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if placements is not None and len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if placements is not None and tensor.placements != tuple(placements):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {tuple(placements)}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    placed: Any = _placed(tensor.detach(), mesh, _placements(tensor, mesh, placements))
    return placed.requires_grad_(tensor.requires_grad)  # type: ignore[no-any-return]


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[..., None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Put the parameters and buffers of a module on a mesh: as `partition_fn` does, the others replicated."""
    from ...nn.parameter import make_parameter

    mesh = _mesh(device_mesh)
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, one in part._parameters.items():
            if one is not None and not isinstance(one, DTensor):
                part._parameters[key] = make_parameter(distribute_tensor(one.data, mesh), one.requires_grad)
        for key, one in part._buffers.items():
            if one is not None and not isinstance(one, DTensor):
                part._buffers[key] = distribute_tensor(one, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def _mesh(given: DeviceMesh | None) -> DeviceMesh:
    return given or _mesh_resources.get_current_mesh()


def _placements(tensor: Any, mesh: DeviceMesh, given: Sequence[Placement] | None) -> tuple[Placement, ...]:
    placements = tuple(given) if given is not None else (Replicate(),) * mesh.ndim
    for one in placements:
        if isinstance(one, Shard) and not -tensor.ndim <= one.dim < tensor.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-tensor.ndim}, {tensor.ndim - 1}], but got {one.dim})"
            )
    return tuple(
        type(one)(one.dim + tensor.ndim) if isinstance(one, Shard) and one.dim < 0 else one for one in placements
    )


def _placed(tensor: Any, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> DTensor:
    _watch()
    made: DTensor = tensor.as_subclass(DTensor)
    made.device_mesh, made.placements = mesh, placements
    return made


@cache
def _watch() -> Any:
    """Let DTensor take calls over, from the first one on: libraries import the class and mostly make none."""
    take_over(DTensor, Tensor)
    return hold()


def _tensors(values: Any) -> Iterable[Any]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))
    elif isinstance(values, (tuple, list)):
        for one in values:
            yield from _tensors(one)


# ---- new tensors on a mesh ----
def _made(make: Callable[..., Any]) -> Callable[..., DTensor]:
    def creating(
        *size: Any,
        dtype: Any = None,
        layout: Any = None,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        **others: Any,
    ) -> DTensor:
        mesh = _mesh(device_mesh)
        made = make(*size, dtype=dtype, device=mesh.device_type, **others)
        placed: Any = _placed(made, mesh, _placements(made, mesh, placements))
        return placed.requires_grad_(requires_grad)  # type: ignore[no-any-return]

    creating.__name__ = creating.__qualname__ = make.__name__
    creating.__doc__ = f"Make a tensor as `torch.{make.__name__}` does, on a mesh."
    return creating
