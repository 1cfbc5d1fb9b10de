"""A tensor that lies on a mesh of processes. Its memory is this process's part; its shape is that of the whole.

The graph is that of the parts: an operation runs on them, and gradients flow through them and through the collectives between them
(Note [Gradients of placements] in `_redistribute.py`). Where an operation's results lie is derived in `_propagation.py`;
`_rules.py` says by which rule.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..._size import Size
from ...optim._step import PLANNED
from ...overrides import hold
from ...tensor import Tensor
from ...tensor._object.layout import dense_strides
from ...tensor._object.overriding import take_over
from .. import _collectives as c
from ..device_mesh import DeviceMesh, _mesh_resources
from ._redistribute import Moved, Placements, for_gradients, move, redistributed
from ._utils import compute_global_tensor_info, compute_local_shape
from .placement_types import DTensorSpec, Partial, Placement, Replicate, Shard, TensorMeta

BOTH_NEEDED = "Please pass both shape and stride at the same time."
NOT_THE_WHOLE = "\nHint: x.full_tensor() is the whole, x.to_local() this process's part."


class DTensor(Tensor):
    """A tensor with a mesh and its placements there.

    `distribute_tensor` makes one of a whole tensor, `DTensor.from_local` of the processes' parts.
    """

    __module__ = "retrograd.distributed.tensor"
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]
    _whole_shape: tuple[int, ...]
    _whole_stride: tuple[int, ...] | None = None  # without gaps

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function on the parts, after they have been brought where it needs them."""
        from ._rules import call

        return call(func, args, kwargs or {})

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
        """Make a distributed tensor of the parts that the processes have, differentiably.

        Args:
            local_tensor: this process's part
            device_mesh: the mesh; that of the `with` block if it is not given
            placements: how the parts lie along each dimension of the mesh; all are the whole if it is not given
            run_check: give all processes the part of the first where it is to be the same in all
            shape: the shape of the whole, which is needed where the parts differ in size
            stride: the strides of the whole
            grad_placements: where the gradient that flows back to the part lies
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                f"the local_tensor argument only accepts torch.Tensor but got {type(local_tensor)} value."
            )
        mesh = _mesh(device_mesh)
        places = _placements(local_tensor.ndim, mesh, placements)
        if (shape is None) != (stride is None):
            raise RuntimeError(f"Found shape:{shape}, stride:{stride}.", BOTH_NEEDED)
        whole = compute_global_tensor_info(local_tensor, mesh, places)[0] if shape is None else shape
        if run_check and mesh.get_coordinate() is not None:
            local_tensor = _same_everywhere(local_tensor, mesh, places)
        if grad_placements is not None:
            back = for_gradients(places), _placements(local_tensor.ndim, mesh, grad_placements)
            local_tensor = Moved.apply(local_tensor, mesh, tuple(whole), (places, places), back)
        return placed(local_tensor, mesh, places, whole, stride)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """Return the part that this process has; gradients flow back through it.

        Args:
            grad_placements: where the gradients of the parts will lie: `[Partial()]` if they are summands of the gradient of the whole
        """
        local = self.as_subclass(Tensor)
        if grad_placements is None:
            return local
        there = self.placements, self.placements
        back = _placements(self.ndim, self.device_mesh, grad_placements), for_gradients(self.placements)
        return Moved.apply(local, self.device_mesh, self._whole_shape, there, back)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """Return the whole, which all processes must ask for."""
        return self._replicated().to_local(grad_placements=grad_placements)

    def _replicated(self) -> DTensor:
        return self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Return the tensor under other placements, which all processes must ask for."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if backward_dtype is not None:
            raise NotImplementedError("redistribute(backward_dtype=...): retrograd's gradients keep their dtype")
        wanted = _placements(self.ndim, self.device_mesh, placements)
        for here, there in zip(self.placements, wanted, strict=True):
            if there.is_partial() and here != there:
                raise RuntimeError(
                    f"Can not redistribute from {here!s} to {there!s}, redistributing to Partial is for internal use only!"
                )
        source: Any = self if forward_dtype is None else self.to(forward_dtype)
        return moved(source, wanted)

    # ---- what it is ----
    @property
    def shape(self) -> Size:
        """The shape of the whole."""
        return Size(self._whole_shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the whole, or the length of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Return how many numbers the whole has."""
        return self.shape.numel()

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides that the whole would have in memory."""
        strides = dense_strides(self._whole_shape) if self._whole_stride is None else self._whole_stride
        return strides if dim is None else strides[dim]

    def __len__(self) -> int:
        if not self._whole_shape:
            raise TypeError("len() of a 0-d tensor")
        return self._whole_shape[0]

    @property
    def _local_tensor(self) -> Any:
        return Tensor.detach(self.as_subclass(Tensor))

    @property
    def _spec(self) -> DTensorSpec:
        return DTensorSpec(self.device_mesh, self.placements, TensorMeta(self.shape, self.stride(), self.dtype))

    @property
    def grad(self) -> Any:
        """The gradient, which lies where the tensor lies."""
        found = Tensor.grad.fget(self)  # type: ignore[attr-defined]
        if found is not None and not isinstance(found, DTensor):
            found = placed(found, self.device_mesh, for_gradients(self.placements), self._whole_shape)
            Tensor.grad.fset(self, found)  # type: ignore[attr-defined]
        return found

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, DTensor):
            if value._whole_shape != self._whole_shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value._whole_shape)}' to a tensor of size "
                    f"'{list(self._whole_shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            value = moved(value, for_gradients(self.placements))
        Tensor.grad.fset(self, value)  # type: ignore[attr-defined]

    @grad.deleter
    def grad(self) -> None:
        Tensor.grad.fset(self, None)  # type: ignore[attr-defined]

    @property
    def data(self) -> Any:
        """The same values outside of the graph."""
        return like(self._local_tensor, self)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise RuntimeError(f"the data of a DTensor must be one, not {type(value)}")
        Tensor.data.fset(self, value._local_tensor)  # type: ignore[attr-defined]
        self.device_mesh, self.placements, self._whole_shape = value.device_mesh, value.placements, value._whole_shape
        self._whole_stride = value._whole_stride

    @property
    def T(self) -> Any:  # noqa: N802 - torch's name
        """The tensor with its dimensions in the opposite order."""
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> Any:  # noqa: N802 - torch's name
        """The tensor with its last two dimensions exchanged."""
        return self.transpose(-2, -1)

    @property
    def H(self) -> Any:  # noqa: N802 - torch's name
        """The matrix with its dimensions exchanged, and conjugate."""
        return self.T.conj() if self.is_complex() else self.T

    @property
    def mH(self) -> Any:  # noqa: N802 - torch's name
        """The matrices with their dimensions exchanged, and conjugate."""
        return self.mT.conj() if self.is_complex() else self.mT

    @property
    def real(self) -> Any:
        """The real parts."""
        return like(self.as_subclass(Tensor).real, self)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return like(self.as_subclass(Tensor).imag, self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    __str__ = __repr__

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse: NumPy has no distributed arrays."""
        raise RuntimeError(f".numpy() is not supported for tensor subclasses.{NOT_THE_WHOLE}")

    def tolist(self) -> Any:
        """Refuse: a list would be of a part."""
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got DTensor{NOT_THE_WHOLE}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._rebuilt(copy.deepcopy(self._local_tensor, memo), self.device_mesh)
        return memo[id(self)]

    def _rebuilt(self, local: Any, mesh: DeviceMesh) -> DTensor:
        return _read(local, mesh, self.placements, self._whole_shape, self.requires_grad, hasattr(self, "_is_param"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        is_parameter = hasattr(self, "_is_param")
        facts = self._local_tensor, self.device_mesh, self.placements, self._whole_shape, self.requires_grad
        return _read, (*facts, is_parameter)


def _read(
    local: Any, mesh: Any, placements: Placements, shape: Any, requires_grad: bool, is_parameter: bool
) -> DTensor:
    """Make a distributed tensor of what was copied or saved."""
    made: Any = placed(local, mesh, placements, shape)
    made.requires_grad_(requires_grad)
    if is_parameter:
        made._is_param = True
    return made  # type: ignore[no-any-return]


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Lay a tensor, which is a leaf, on a mesh.

    Args:
        tensor: the whole, of the same shape in all processes
        device_mesh: the mesh; that of the `with` block if it is not given
        placements: how it lies along each dimension of the mesh; `Replicate` if it is not given
        src_data_rank: the number along each dimension of the process whose values are taken; None: each takes its own
    """
    mesh = _mesh(device_mesh)
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if placements is not None and len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    if isinstance(tensor, DTensor):
        wanted = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != wanted:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placements}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    places = _placements(tensor.ndim, mesh, placements)
    local = tensor.detach()
    if local.device.type != mesh.device_type and not local.is_meta:
        local = local.to(mesh.device_type)
    if mesh.get_coordinate() is None:
        local = local.new_empty([0] * local.ndim)
    else:
        whole = (Replicate(),) * mesh.ndim
        if src_data_rank is not None and mesh.size() > 1:
            local = _same_everywhere(local, mesh, whole, src_data_rank)
        local = move(local, mesh, tuple(tensor.shape), whole, tuple(_not_partial(one) for one in places))
        for at, one in enumerate(places):
            if isinstance(one, Partial) and one.reduce_op == "sum" and mesh.size(at) > 1:
                local = local / mesh.size(at)
    made: Any = placed(local, mesh, places, tensor.shape, tensor.stride())
    return made.requires_grad_(tensor.requires_grad)  # type: ignore[no-any-return]


def _not_partial(placement: Placement) -> Placement:
    return Replicate() if placement.is_partial() else placement


def _same_everywhere(local: Any, mesh: DeviceMesh, placements: Placements, source: int = 0) -> Any:
    """Return the values of one process along each dimension of the mesh in which all are to have the same."""
    made = local.detach().contiguous().clone().requires_grad_(local.requires_grad) if not local.is_meta else local
    for at, one in enumerate(placements):
        if one.is_replicate() and mesh.size(at) > 1 and not local.is_meta:
            c.broadcast(made.detach(), group=mesh.get_group(at), group_src=source)
    return made


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[..., None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Lay the parameters and buffers of a module on a mesh: as `partition_fn` does, the others replicated.

    Args:
        module: the module, which is changed in place
        device_mesh: the mesh; that of the `with` block if it is not given
        partition_fn: called with the name of each part, the part and the mesh, to replace its parameters
        input_fn: called with the module, its inputs and the mesh before each forward
        output_fn: called with the module, its outputs and the mesh after each forward
    """
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


def _placements(ndim: int, mesh: DeviceMesh, given: Sequence[Placement] | None) -> Placements:
    """Return placements with dimensions counted from the first; raise torch's errors for those that do not fit."""
    placements = tuple(given) if given is not None else (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(f"a mesh of {mesh.ndim} dimensions needs as many placements, but they are {placements}")
    for at, one in enumerate(placements):
        if not isinstance(one, Placement):
            raise TypeError(f"placements must be Shard, Replicate or Partial, but number {at} is {one!r}")
        if isinstance(one, Shard) and not -ndim <= one.dim < ndim:
            raise RuntimeError(f"Sharding dim {one.dim} greater than tensor ndim {ndim} for placement number {at}")
    return tuple(type(one)(one.dim + ndim) if isinstance(one, Shard) and one.dim < 0 else one for one in placements)


def placed(local: Any, mesh: DeviceMesh, placements: Placements, shape: Any, stride: Any = None) -> DTensor:
    """Return a process's part as a distributed tensor."""
    _watch()
    made: DTensor = local.as_subclass(DTensor)
    made.device_mesh, made.placements, made._whole_shape = mesh, placements, tuple(shape)
    if stride is not None and tuple(stride) != dense_strides(made._whole_shape):
        made._whole_stride = tuple(stride)
    return made


def like(local: Any, other: DTensor) -> DTensor:
    """Return a part as a distributed tensor that lies as another does."""
    return placed(local, other.device_mesh, other.placements, other._whole_shape, other._whole_stride)


def moved(tensor: DTensor, wanted: Placements) -> DTensor:
    """Return a distributed tensor under other placements, also under those that programs may not ask for."""
    local = redistributed(
        tensor.as_subclass(Tensor), tensor.device_mesh, tensor._whole_shape, tensor.placements, wanted
    )
    return placed(local, tensor.device_mesh, wanted, tensor._whole_shape, tensor._whole_stride)


@cache
def _watch() -> Any:
    """Let DTensor take calls over, from the first one on: libraries import the class and mostly make none."""
    take_over(DTensor, Tensor)
    PLANNED.add(DTensor)  # optimizers update the part that a process has
    return hold()


# ---- new tensors on a mesh ----
def making(make: Callable[..., Any]) -> Callable[..., DTensor]:
    """Return a function that makes tensors on a mesh as another makes plain ones."""

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
        named = make.__name__ == "full"
        given = size[0] if named or (len(size) == 1 and not isinstance(size[0], int)) else size
        shape = tuple(given)
        places = _placements(len(shape), mesh, placements)
        local = compute_local_shape(shape, mesh, tuple(_not_partial(one) for one in places))
        filled = size[1:] if named else ()
        made: Any = placed(make(local, *filled, dtype=dtype, device=mesh.device_type, **others), mesh, places, shape)
        return made.requires_grad_(requires_grad)  # type: ignore[no-any-return]

    creating.__name__ = creating.__qualname__ = make.__name__
    creating.__doc__ = f"Make a tensor as `torch.{make.__name__}` does, on a mesh: each process makes its part."
    return creating
