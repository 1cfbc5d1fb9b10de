"""torch.distributed.tensor.parallel.style: how layers are divided among the processes of a mesh."""

from __future__ import annotations

from typing import Any

from ...._public import set_all
from ....nn.modules.linear import Linear
from ....nn.modules.sparse import Embedding
from ....nn.parameter import make_parameter
from ....tensor import Tensor
from .._dtensor import DTensor, distribute_module, distribute_tensor
from ..placement_types import Placement, Replicate, Shard


class ParallelStyle:
    """How a module is divided."""

    src_data_rank: int | None = 0

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        """Divide a module among the processes of a mesh."""
        raise NotImplementedError(f"{type(self).__name__}._apply")

    def _facts(self) -> dict[str, Any]:
        """Return what the text of the style shows."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._facts().items())})"


class _Divided(ParallelStyle):
    """A linear layer or a table whose weight is cut."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _facts(self) -> dict[str, Any]:
        names = ("input_layouts", "output_layouts", "use_local_output")
        return {name: getattr(self, name) for name in names}

    def _cut(self, module: Any) -> tuple[dict[str, Placement], Placement]:
        """Return how each parameter lies, and how inputs must."""
        raise NotImplementedError

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        if not isinstance(module, (Linear, Embedding)):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        places, wanted = self._cut(module)

        def divide(_: str, part: Any, mesh: Any) -> None:
            for name, one in list(part.named_parameters(recurse=False)):
                made = distribute_tensor(one, mesh, [places[name]], src_data_rank=self.src_data_rank)
                part.register_parameter(name, make_parameter(made, one.requires_grad))

        def bring(_: Any, inputs: Any, mesh: Any) -> Any:
            given = inputs[0]
            if not isinstance(given, DTensor):
                given = DTensor.from_local(given, mesh, self.input_layouts, run_check=False)
            return (given.redistribute(placements=[wanted]), *inputs[1:])

        def hand_on(_: Any, output: Any, mesh: Any) -> Any:
            placed = output.redistribute(placements=self.output_layouts)
            return placed.to_local() if self.use_local_output else placed

        return distribute_module(module, device_mesh, divide, bring, hand_on)


class ColwiseParallel(_Divided):
    """Each process computes some of the outputs of a linear layer, or some of the columns of a table.

    Args:
        input_layouts: how inputs that are plain tensors lie; `Replicate()` if it is not given
        output_layouts: how outputs are to lie; `Shard(-1)` if it is not given
        use_local_output: whether the output is this process's part, a plain tensor
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _cut(self, module: Any) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(0), "bias": Shard(0)}, Replicate()
        return {"weight": Shard(1)}, Replicate()


class RowwiseParallel(_Divided):
    """Each process takes some of the inputs of a linear layer, or some of the rows of a table; the outputs are added up.

    Args:
        input_layouts: how inputs that are plain tensors lie; `Shard(-1)` if it is not given
        output_layouts: how outputs are to lie; `Replicate()` if it is not given
        use_local_output: whether the output is this process's part, a plain tensor
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _cut(self, module: Any) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}, Shard(-1)
        return {"weight": Shard(0)}, Replicate()


class SequenceParallel(ParallelStyle):
    """Each process normalises, or drops out, some of the places of a sequence; the parameters are replicated.

    Args:
        sequence_dim: the dimension of the places
        use_local_output: whether the output is this process's part, a plain tensor
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _facts(self) -> dict[str, Any]:
        return {"sequence_dim": self.sequence_sharding[0].dim, "use_local_output": self.use_local_output}

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        def replicate(_: str, part: Any, mesh: Any) -> None:
            for name, one in list(part.named_parameters(recurse=False)):
                made = DTensor.from_local(one.detach(), mesh, [Replicate()], run_check=False)
                part.register_parameter(name, make_parameter(made, one.requires_grad))

        def bring(mod: Any, inputs: Any, mesh: Any) -> Any:
            given = inputs[0]
            if isinstance(given, DTensor):
                return (given.redistribute(placements=self.sequence_sharding), *inputs[1:])
            if not isinstance(given, Tensor):
                raise ValueError(f"expecting input of {mod} to be a torch.Tensor or DTensor, but got {given}")
            return (DTensor.from_local(given, mesh, self.sequence_sharding, run_check=False), *inputs[1:])

        def hand_on(_: Any, output: Any, mesh: Any) -> Any:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, replicate, bring, hand_on)


class PrepareModuleInput(ParallelStyle):
    """What comes into a module is brought where it wants it.

    Args:
        input_layouts: how the inputs lie, None where one is left alone
        desired_input_layouts: how they are to lie
        input_kwarg_layouts: how inputs by name lie
        desired_input_kwarg_layouts: how these are to lie
        use_local_output: whether the module gets this process's parts, plain tensors
    """

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
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _facts(self) -> dict[str, Any]:
        names = "input_layouts desired_input_layouts input_kwarg_layouts desired_input_kwarg_layouts use_local_output"
        return {name: getattr(self, name) for name in names.split()}

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        def bring(_: Any, args: Any, kwargs: Any) -> Any:
            if self.input_layouts is not None:
                if len(args) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                layouts = zip(args, self.input_layouts, self.desired_input_layouts or (), strict=True)
                args = tuple(_brought(one, at, to, device_mesh, self.use_local_output) for one, at, to in layouts)
            wanted = self.desired_input_kwarg_layouts
            named = {
                name: _brought(
                    one, self.input_kwarg_layouts.get(name), wanted.get(name), device_mesh, self.use_local_output
                )
                for name, one in kwargs.items()
            }
            return args, named

        module.register_forward_pre_hook(bring, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """What comes out of a module is brought where others want it.

    Args:
        output_layouts: how the outputs lie, None where one is left alone
        desired_output_layouts: how they are to lie
        use_local_output: whether they become this process's parts, plain tensors
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _tuple(output_layouts), _tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("output_layouts", "desired_output_layouts", "use_local_output")}

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        def hand_on(_: Any, inputs: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            if len(outputs) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            layouts = zip(outputs, self.output_layouts, self.desired_output_layouts, strict=True)
            placed = tuple(_brought(one, at, to, device_mesh, self.use_local_output) for one, at, to in layouts)
            return placed[0] if len(placed) == 1 else placed

        module.register_forward_hook(hand_on)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """What comes into a module and out of it is brought where it is wanted: `PrepareModuleInput` and `PrepareModuleOutput`."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _facts(self) -> dict[str, Any]:
        of_inputs = self.prepare_module_input._facts()
        of_inputs["use_local_input"] = of_inputs.pop("use_local_output")
        return {**of_inputs, **self.prepare_module_output._facts()}

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


def _brought(value: Any, layout: Any, wanted: Any, mesh: Any, as_part: bool) -> Any:
    """Return a tensor under the wanted placement; without a layout it is left alone."""
    if layout is None:
        return value
    if not isinstance(value, Tensor):
        raise AssertionError("expecting input to be a torch.Tensor!")
    placed: DTensor = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, (layout,))
    if wanted is not None and layout != wanted:
        placed = placed.redistribute(placements=(wanted,))
    return placed.to_local() if as_part else placed


def _tuple(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


set_all(globals())
