"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, what a caller gives and gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is fixed."""

    name: str
    value: Any


class InputKind(Enum):
    """Where an input comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What becomes of an output."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """One input."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """One output."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target='{self.target}'")


@dataclass
class ExportBackwardSignature:
    """Gradients among the outputs; no graph here has them."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _given(specs: Any, kind: Any) -> tuple[Any, ...]:
    """Return the names of nodes, or the fixed values, of inputs or outputs of a kind."""
    given = [spec.arg for spec in specs if spec.kind is kind]
    return tuple(arg.value if isinstance(arg, ConstantArgument) else arg.name for arg in given)


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph, in order."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, *kinds: InputKind) -> tuple[str, ...]:
        return tuple(spec.target or "" for spec in self.input_specs if spec.kind in kinds)

    def _by_name(self, *kinds: InputKind) -> dict[str, str]:
        return {spec.arg.name: spec.target or "" for spec in self.input_specs if spec.kind in kinds}

    parameters = property(lambda self: self._targets(InputKind.PARAMETER), doc="The names of the parameters.")
    buffers = property(lambda self: self._targets(InputKind.BUFFER), doc="The names of the buffers.")
    lifted_tensor_constants = property(
        lambda self: self._targets(InputKind.CONSTANT_TENSOR), doc="The names of the tensors that are neither."
    )
    lifted_custom_objs = property(lambda self: self._targets(InputKind.CUSTOM_OBJ), doc="The names of other objects.")
    inputs_to_parameters = property(
        lambda self: self._by_name(InputKind.PARAMETER), doc="The names of parameters by those of their nodes."
    )
    inputs_to_buffers = property(
        lambda self: self._by_name(InputKind.BUFFER), doc="The names of buffers by those of their nodes."
    )
    inputs_to_lifted_tensor_constants = property(
        lambda self: self._by_name(InputKind.CONSTANT_TENSOR), doc="The names of constants by those of their nodes."
    )
    user_inputs = property(lambda self: _given(self.input_specs, InputKind.USER_INPUT), doc="What a caller gives.")
    user_outputs = property(lambda self: _given(self.output_specs, OutputKind.USER_OUTPUT), doc="What a caller gets.")

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state."""
        return tuple(s.target or "" for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Buffers that are outputs: none, writes in place stay in the graph."""
        return {}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Inputs that are outputs: none, writes in place stay in the graph."""
        return {}

    @property
    def backward_signature(self) -> None:
        """Gradients among the outputs: there are none."""

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
