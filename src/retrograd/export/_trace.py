"""How a module becomes an exported program: it runs once on examples, and its state becomes inputs of the graph."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from typing import Any

from .. import nn
from .._checks import _assert
from ..fx._operators import magic_methods
from ..fx._recording import RecordedNumber, RecordedTensor, Recorder, real
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..fx.graph import Graph
from ..fx.node import Node
from ..tensor import Tensor
from ..tensor._storage.given_strides import empty_strided
from ..utils import _pytree as pytree
from ..utils._pytree_paths import tree_flatten_with_path
from . import dynamic_shapes as shapes
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

COMPARED = {
    getattr(operator, name): magic_methods[name].replace("{}", "") for name in ("eq", "ne", "lt", "gt", "le", "ge")
}


class ExportRecorder(Recorder):
    """Records a program for export: sizes that were not said to change are fixed, and no branch depends on data."""

    record_stack_traces = True
    keeps_values = True

    def __init__(self, root: nn.Module, changing: dict[int, dict[int, Any]]) -> None:
        super().__init__(root)
        self._changing = changing

    def asked(self, what: str) -> None:
        """Refuse a program that asks for a value, also where the package asks for it."""
        if what in ("tensor", "as_tensor"):
            return
        raise GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression: the program asks a tensor for a Python {what}, and what it does may "
            "depend on it\nHint: write torch.where, or keep the value as a tensor; torch.jit.trace freezes it with a warning."
        )

    def size(self, tensor: RecordedTensor, dim: Any = None) -> Any:
        """Return sizes: of an input those that may change are nodes, the others numbers; of other tensors all are nodes."""
        if tensor._node.op != "placeholder":
            return super().size(tensor, dim)
        words = self._changing.get(id(tensor._node.meta["val"]), {})
        real_size = tensor._real.size()
        if dim is not None:
            return super().size(tensor, dim) if real(dim) % len(real_size) in words else real_size[dim]
        every = super().size(tensor)
        return tuple.__new__(type(real_size), [each if i in words else real_size[i] for i, each in enumerate(every)])

    def converted(self, number: Any, what: str) -> None:
        """Keep the value that a question about sizes got as a check in the graph: the program was traced for this value."""
        if self.is_over or self._busy or not isinstance(number, RecordedNumber):
            return
        node, value = number._node, real(number)
        if node.target in (operator.eq, operator.ne) and value is (node.target is operator.eq):
            self._specialised(*node.args)
            self._specialised(*node.args[::-1])
        else:
            self._specialised(node, value)
        test = self._pure("call_function", operator.eq, (node, value))
        shown = f"{COMPARED[node.target].join(map(str, node.args))}" if node.target in COMPARED else str(node)
        self.create_node("call_function", _assert, (test, f"Guard failed: {shown} was {value} in the export"), {})

    def shown(self, number: RecordedNumber) -> Any:
        """Return the name of a number: a text with the example's could become a number again."""
        return real(number) if self.is_over or self._busy else str(number._node)

    def _specialised(self, node: Any, value: Any) -> None:
        """Refuse to fix a size of an input that was said to change."""
        if not isinstance(node, Node) or isinstance(value, (Node, bool)):
            return
        if node.target != "size" or node.args[0].op != "placeholder":
            return
        word = self._changing.get(id(node.args[0].meta["val"]), {}).get(node.args[1])
        if word is None or (isinstance(word, shapes._DimHint) and word.type is shapes._DimHintType.AUTO):
            return
        errors = import_module("retrograd._dynamo.exc")
        name = getattr(word, "__name__", f"{node.args[0].name}.size()[{node.args[1]}]")
        raise errors.UserError(
            errors.UserErrorType.CONSTRAINT_VIOLATION,
            f'Constraints violated ({name})! For more information, run with TORCH_LOGS="+dynamic".\n  - You marked {name} as '
            f"dynamic but your code specialized it to be a constant ({value}). If you're using mark_dynamic, either "
            "remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.",
        )

    def _argument(self, name: str, value: Any) -> Any:
        """Make a placeholder of each leaf of an argument."""
        leaves, spec = tree_flatten_with_path(value)
        made = []
        for path, leaf in leaves:
            made.append(
                super()._argument("_".join([name, *(str(getattr(k, "key", getattr(k, "idx", k))) for k in path)]), leaf)
            )
        return pytree.tree_unflatten(made, spec)


class Recorded:
    """What export has found out: the graph with its state lifted, its signature, and how arguments are put together."""

    def __init__(
        self,
        graph: Graph,
        signature: ExportGraphSignature,
        state: dict[str, Any],
        constants: dict[str, Any],
        in_spec: Any,
        out_spec: Any,
        guards: list[tuple[str, str, Any]],
        names: list[str],
        parts: dict[str, Any],
    ) -> None:
        self.parts = parts
        self.graph, self.signature, self.state, self.constants = graph, signature, state, constants
        self.in_spec, self.out_spec, self.guards, self.names = in_spec, out_spec, guards, names


def recorded_program(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], changing: dict[int, dict[int, Any]]
) -> Recorded:
    """Run a module on examples; return its graph, in which all state is an input."""
    recorder = ExportRecorder(module, changing)
    named = shapes.named_arguments(module, args, kwargs)
    by_position = [name for name in named if name not in kwargs]
    names, values = _positional_names(by_position, named, args)
    with _unchanged([*module.buffers(), *pytree.tree_leaves((args, kwargs))]):
        result = recorder.record(module, values, kwargs, names)
    leaves, out_spec = pytree.tree_flatten(result)
    graph = recorder.finish(tuple(leaves))
    _, in_spec = pytree.tree_flatten((args, kwargs))
    signature, constants = _lift(graph, recorder, module, leaves)
    kept = module.state_dict(keep_vars=True)
    state = {name: kept[name] for name in (*signature.parameters, *signature.buffers) if name in kept}
    guards = _guards(graph, signature, changing)
    parts = [part.graph for part in recorder.parts.values()]
    for node in chain(graph.nodes, *(part.nodes for part in parts)):  # values of the example go, shapes and dtypes stay
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            node.meta["val"] = empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return Recorded(graph, signature, state, constants, in_spec, out_spec, guards, names, recorder.parts)


@contextmanager
def _unchanged(values: list[Any]) -> Iterator[None]:
    """Run a block after which tensors, and the random numbers to come, are as they were before."""
    import retrograd as torch

    tensors = [value for value in values if isinstance(value, Tensor)]
    before = [(tensor, tensor._version, tensor.detach().clone()) for tensor in tensors]
    with torch.random.fork_rng():
        yield
    for tensor, version, kept in before:
        if tensor._version != version:
            tensor.detach().copy_(kept)


def _positional_names(
    by_position: list[str], named: dict[str, Any], args: tuple[Any, ...]
) -> tuple[list[str], tuple[Any, ...]]:
    if len(by_position) == len(args):
        return by_position, args
    last = by_position[-1]  # *args
    own = by_position[:-1]
    return [*own, *(f"{last}_{i}" for i in range(len(args) - len(own)))], args


def _lift(
    graph: Graph, recorder: ExportRecorder, module: nn.Module, leaves: list[Any]
) -> tuple[ExportGraphSignature, dict[str, Any]]:
    """Make placeholders of the reads of state; say what every input and output is."""
    persistent = set(module.state_dict())
    parameters = dict(module.named_parameters(remove_duplicate=False))
    buffers = dict(module.named_buffers(remove_duplicate=False))
    constants: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    for name, value in recorder.constants.items():
        renamed[name] = next((n for n, own in vars(module).items() if own is value), name)
        constants[renamed[name]] = value
    constants |= {name: value for name, value in buffers.items() if name not in persistent}
    reads: dict[Any, list[Node]] = {}
    for node in graph.find_nodes(op="get_attr"):
        reads.setdefault(node.target, []).append(node)
    first = next(iter(graph.nodes))
    specs = []

    def lifted(prefix: str, name: str, target: str, kind: InputKind, value: Any, is_persistent: bool | None) -> None:
        with graph.inserting_before(first):
            node = graph.placeholder(f"{prefix}_{target.replace('.', '_')}")
        node.meta["val"] = value
        specs.append(InputSpec(kind, TensorArgument(node.name), target, is_persistent))
        for read in reads.get(name, ()):
            read.replace_all_uses_with(node)
            graph.erase_node(read)

    for name, value in parameters.items():
        lifted("p", name, name, InputKind.PARAMETER, value, None)
    for name, value in buffers.items():
        lifted("b", name, name, InputKind.BUFFER, value, name in persistent)
    for name, value in recorder.constants.items():
        kind = InputKind.CONSTANT_TENSOR if isinstance(value, Tensor) else InputKind.CUSTOM_OBJ
        lifted("c", name, renamed[name], kind, value, None)
    lifted_names = {spec.arg.name for spec in specs}
    for node in graph.find_nodes(op="placeholder"):
        if node.name not in lifted_names:
            node.name = node.target  # as the caller calls it, also where code must write another name
            value = node.meta["val"]
            arg: Any = TensorArgument(node.name) if isinstance(value, Tensor) else ConstantArgument(node.name, value)
            specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
    outputs = []
    for value, leaf in zip(graph.output_node().args[0], leaves, strict=True):
        made: Any = ConstantArgument("", value)
        if isinstance(value, Node):
            made = SymIntArgument(value.name) if isinstance(leaf, RecordedNumber) else TensorArgument(value.name)
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, made, None))
    return ExportGraphSignature(specs, outputs), constants


def _guards(
    graph: Graph, signature: ExportGraphSignature, changing: dict[int, dict[int, Any]]
) -> list[tuple[str, str, Any]]:
    """Return what must hold of the inputs: the name of one, what is asked, and the answer."""
    guards: list[tuple[str, str, Any]] = []
    first_of: dict[str, Any] = {}  # where a dim stands first, by its name
    by_name = {node.name: node for node in graph.nodes}
    for spec in signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            continue
        value = by_name[spec.arg.name].meta["val"]
        if not isinstance(value, Tensor):
            guards.append((spec.arg.name, "value", value))
            continue
        words = changing.get(id(value), {})
        for dim, size in enumerate(value.shape):
            word = words.get(dim)
            if word is None:
                guards.append((spec.arg.name, f"size()[{dim}]", int(size)))
            elif isinstance(word, shapes.Dim):
                guards.append((spec.arg.name, f"range {dim}", (word.__name__, word.min, word.max)))
                place = (spec.arg.name, dim, word.factor, word.start)
                if (first := first_of.setdefault(word.root.__name__, place)) != place:
                    guards.append((spec.arg.name, f"same {dim}", (place, first)))
    return guards
