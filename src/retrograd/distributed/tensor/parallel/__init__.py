"""torch.distributed.tensor.parallel: the layers of a module divided among processes; on a mesh of one each stays whole.

`parallelize_module` accepts the plans that torch takes. With one process a divided layer computes what the layer computes, so that
parameters stay plain tensors, and inputs and outputs are handed on unless a plan asks for distributed ones (`use_local_output=False`).
"""

from __future__ import annotations

from contextlib import contextmanager
from fnmatch import fnmatch
from typing import Any

from ...._public import set_all
from .._dtensor import DTensor
from ..placement_types import Replicate, Shard


class ParallelStyle:
    """How a module is divided."""

    src_data_rank: int | None = 0

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        """Divide a module among the processes of a mesh."""
        return module


class _Divided(ParallelStyle):
    """A layer whose weight is divided."""

    default_output: Any = None

    def __init__(self, *, input_layouts: Any = None, output_layouts: Any = None, use_local_output: bool = True) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        places = (self.output_layouts or self.default_output or Replicate(),)

        def place(mod: Any, inputs: Any, output: Any) -> Any:
            return output if self.use_local_output else DTensor.from_local(output, device_mesh, places)

        module.register_forward_pre_hook(_local_inputs)
        module.register_forward_hook(place)
        return module


class ColwiseParallel(_Divided):
    """Each process has some of the outputs of a linear layer."""

    default_output = Shard(-1)


class RowwiseParallel(_Divided):
    """Each process has some of the inputs of a linear layer."""

    default_output = Replicate()


class SequenceParallel(ParallelStyle):
    """Each process has some of the places of a sequence."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        module.register_forward_pre_hook(_local_inputs)
        if not self.use_local_output:
            place = [Shard(self.sequence_dim)]
            module.register_forward_hook(lambda mod, inputs, output: DTensor.from_local(output, device_mesh, place))
        return module


class PrepareModuleInput(ParallelStyle):
    """What comes into a module is placed as it wants."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _tuple(input_layouts), _tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None and len(self.input_layouts) != len(self.desired_input_layouts or ()):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        def place(mod: Any, args: Any, kwargs: Any) -> Any:
            layouts = self.desired_input_layouts or (None,) * len(args)
            placed = tuple(self._placed(one, place, device_mesh) for one, place in zip(args, layouts, strict=False))
            named = {
                name: self._placed(one, self.desired_input_kwarg_layouts.get(name), device_mesh)
                for name, one in kwargs.items()
            }
            return placed, named

        module.register_forward_pre_hook(place, with_kwargs=True)
        return module

    def _placed(self, value: Any, layout: Any, mesh: Any) -> Any:
        if layout is None or not hasattr(value, "grad_fn"):
            return value
        if self.use_local_output:
            return value.to_local() if isinstance(value, DTensor) else value
        if isinstance(value, DTensor):
            return value.redistribute(mesh, [layout])
        return DTensor.from_local(value, mesh, [layout])


class PrepareModuleOutput(ParallelStyle):
    """What comes out of a module is placed as others want."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _tuple(output_layouts), _tuple(desired_output_layouts)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        prepared = PrepareModuleInput(
            input_layouts=self.output_layouts,
            desired_input_layouts=self.desired_output_layouts,
            use_local_output=self.use_local_output,
        )

        def place(mod: Any, inputs: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            layouts = self.desired_output_layouts or ()
            placed = tuple(
                prepared._placed(one, layout, device_mesh) for one, layout in zip(outputs, layouts, strict=True)
            )
            return placed if isinstance(output, tuple) else placed[0]

        module.register_forward_hook(place)
        return module


def parallelize_module(
    module: Any, device_mesh: Any = None, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Any:
    """Divide a module, or those of its parts that a plan names, among the processes of a mesh."""
    from ...device_mesh import _mesh_resources

    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for pattern, style in parallelize_plan.items():
        for name, part in list(module.named_modules()):
            if name and name.count(".") == pattern.count(".") and fnmatch(name, pattern):
                parallelize_module(part, mesh, style)
            elif not name and not pattern:
                parallelize_module(module, mesh, style)
    return module


@contextmanager
def loss_parallel() -> Any:
    """Let the loss be computed where its inputs are: here."""
    yield


def _local_inputs(mod: Any, inputs: Any) -> Any:
    return tuple(one.to_local() if isinstance(one, DTensor) else one for one in inputs)


def _tuple(layouts: Any) -> Any:
    return layouts if layouts is None or isinstance(layouts, tuple) else (layouts,)


set_all(globals())
