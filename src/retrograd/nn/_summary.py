"""nn.summary: the layers of a model as a table, with shapes, parameters, bytes and floating-point operations.

torch has nothing of the kind; the table is that of the package torchinfo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from typing import Any

from .. import _dtypes
from .._modes import using
from .._readable import readable_bytes, readable_count
from .._tracebacks import guarded
from ..func import functional_call
from ..ops import aten
from ..overrides import TorchFunctionMode
from ..random import fork_rng
from ..tensor._functions.creation import zeros
from ..tensor._functions.random_tensors import rand
from ..tensor._tensor import Tensor
from ..utils._pytree import tree_leaves
from ..utils.flop_counter import FlopCounterMode, sdpa_flop_count
from .modules.module import Module
from .parameter import Parameter, is_lazy

MODES = ("eval", "train", "same")
HEADS = ("layer", "input", "output", "parameters", "bytes", "flops")


@dataclass
class Layer:
    """One module at one place of a model."""

    name: str  # within its parent
    path: str  # within the model
    depth: int
    module: Any
    parameters: int  # its own, without those of layers that have a row, and those that were counted before
    bytes: int  # of these parameters
    shared: bool  # whether the same module stands further up, too
    calls: int = 0
    inputs: list[tuple[int, ...]] = field(default_factory=list)  # shapes of its first call
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    flops: int = 0  # of all its calls, with the layers inside of it
    output_bytes: int = 0  # of all its calls
    is_read: bool = False  # whether an operation took one of its parameters, in a call of its own or another's


class Summary:
    """What `summary` found. Printing it gives a table; iterating gives the layers."""

    def __init__(self, layers: list[Layer], model: Any, was_run: bool, input_bytes: int) -> None:
        self.layers = layers
        self.was_run = was_run
        self.input_bytes = input_bytes
        parameters = list(model.parameters())
        self.total_parameters = sum(one.numel() for one in parameters)
        self.trainable_parameters = sum(one.numel() for one in parameters if one.requires_grad)
        self.parameter_bytes = sum(_bytes(one) for one in parameters)
        self.buffer_bytes = sum(_bytes(one) for one in model.buffers())
        self.flops = layers[0].flops
        called = [one for one in layers if one.calls and not one.shared]
        self.output_bytes = sum(one.output_bytes for one in called if not any(_is_inside(two, one) for two in called))

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, path: str) -> Layer:
        for layer in self.layers:
            if layer.path == path:
                return layer
        raise KeyError(path)

    def __repr__(self) -> str:
        rows = [HEADS, *(self._row(layer) for layer in self.layers)]
        shown = range(6) if self.was_run else (0, 3, 4)  # without a run there are no shapes
        widths = {k: max(len(row[k]) for row in rows) for k in shown}
        lines = ["  ".join(f"{row[k]:{'<' if k < 3 else '>'}{widths[k]}}" for k in shown).rstrip() for row in rows]
        rule = "-" * max(map(len, lines))
        frozen = self.total_parameters - self.trainable_parameters
        of_buffers = f", {readable_bytes(self.buffer_bytes)} of buffers" if self.buffer_bytes else ""
        lines = [lines[0], rule, *lines[1:], rule]
        lines.append(
            f"parameters: {self.total_parameters:,} ({self.trainable_parameters:,} trainable, {frozen:,} frozen), "
            f"{readable_bytes(self.parameter_bytes)}{of_buffers}"
        )
        if self.was_run:
            sizes = f"inputs {readable_bytes(self.input_bytes)}, outputs of layers {readable_bytes(self.output_bytes)}"
            lines.append(f"forward: {readable_count(self.flops)} floating-point operations, {sizes}")
        return "\n".join(lines)

    __str__ = __repr__

    def _row(self, layer: Layer) -> tuple[str, ...]:
        kind = type(layer.module).__name__
        name = f"{'  ' * layer.depth}{layer.name}: {kind}" if layer.name else kind
        name += " (shared)" if layer.shared else ""
        name += f" x {layer.calls}" if layer.calls > 1 else ""
        is_run = type(layer.module).forward is not Module.forward  # a list of modules is not
        missing = "-"
        if self.was_run and is_run and not layer.calls:
            missing = "weights used" if layer.is_read else "not called"
        return (
            name,
            _shapes(layer.inputs) or missing,
            _shapes(layer.outputs) or missing,
            f"{layer.parameters:,}" if layer.parameters else "-",
            readable_bytes(layer.bytes) if layer.bytes else "-",
            readable_count(layer.flops) if layer.flops and not layer.shared else "-",
        )


@guarded
def summary(
    model: Any,
    *inputs: Any,
    input_size: Any = None,
    dtypes: Any = None,
    depth: int = 3,
    mode: str = "eval",
    **named: Any,
) -> Summary:
    """Tabulate the layers of a model: shapes of inputs and outputs, parameters, bytes, floating-point operations.

    Arguments:
        model: a Module.
        *inputs, **named: what the model is called with.
        input_size: instead of inputs, the shape of one, or a list of shapes; the inputs are random, integers are zero.
        dtypes: of these inputs, one for each; float32 if there are none.
        depth: how far down layers have a row of their own.
        mode: "eval", "train", or "same" as each module is; what it is run in.

    Without inputs the table has no shapes and operations. The model is run once, without gradients, on copies of its buffers: its
    buffers, training flags, gradients and the random state are what they were. Operations are those of products, convolutions
    and attention, two for a multiplication and an addition, by the formulas of `utils.flop_counter`, which on the CPU leaves
    attention out. A module that has several places is counted at its first.

    Example:
        >>> from retrograd import nn
        >>> nn.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), input_size=(2, 4))
        layer        input   output  parameters  bytes  flops
        -----------------------------------------------------
        Sequential   [2, 4]  [2, 8]           -      -    128
          0: Linear  [2, 4]  [2, 8]          40  160 B    128
          1: ReLU    [2, 8]  [2, 8]           -      -      -
        -----------------------------------------------------
        parameters: 40 (40 trainable, 0 frozen), 160 B
        forward: 128 floating-point operations, inputs 32 B, outputs of layers 128 B
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary(): model must be a Module, not {type(model).__name__}")
    if mode not in MODES:
        raise ValueError(f"summary(): mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise ValueError(f"summary(): depth must be a number of levels, 0 or more, not {depth!r}")
    if input_size is not None and (inputs or named):
        raise ValueError("summary(): give input_size or inputs, not both")
    if dtypes is not None and input_size is None:
        raise ValueError("summary(): dtypes are those of the inputs that input_size describes")
    lazy = [name for name, one in (*model.named_parameters(), *model.named_buffers()) if is_lazy(one)]
    if lazy:
        raise ValueError(
            f"summary(): {lazy[0]!r} has no shape yet\nHint: call the model once, which gives lazy modules theirs."
        )
    layers = _rows(model, depth)
    with fork_rng():
        if input_size is not None:
            inputs = _made(input_size, dtypes)
        was_run = bool(inputs or named)
        if was_run:
            try:
                _run(model, layers, inputs, named, mode)
            except (AttributeError, TypeError) as error:
                if not named and all(map(_is_shape, inputs)):
                    size = inputs[0] if len(inputs) == 1 else list(inputs)
                    error.args = (f"{error}\nHint: inputs are tensors; their shapes go by name: input_size={size!r}",)
                raise
    given = [one for one in tree_leaves((inputs, named)) if isinstance(one, Tensor)]
    return Summary(layers, model, was_run, sum(map(_bytes, given)))


def _rows(model: Any, deepest: int) -> list[Layer]:
    """Return the modules of a model down to a depth, each with its own parameters and those of what has no row."""
    layers: list[Layer] = []
    modules: set[int] = set()
    counted: set[int] = set()

    def add(module: Any, name: str, path: str, depth: int) -> None:
        shared = id(module) in modules
        modules.add(id(module))
        own = module.parameters(recurse=depth == deepest)
        parameters = [one for one in own if id(one) not in counted]
        counted.update(map(id, parameters))
        sizes = sum(one.numel() for one in parameters), sum(map(_bytes, parameters))
        layers.append(Layer(name, path, depth, module, *sizes, shared))
        if depth < deepest and not shared:
            for key, child in module._modules.items():
                if child is not None:
                    add(child, key, f"{path}.{key}" if path else key, depth + 1)

    add(model, "", "", 0)
    return layers


def _made(input_size: Any, dtypes: Any) -> tuple[Any, ...]:
    """Make inputs of given shapes: numbers between 0 and 1, and zeros of integers, which are indices of something."""
    is_one = not isinstance(input_size, Sequence) or not input_size or isinstance(input_size[0], int)
    shapes = [input_size] if is_one else list(input_size)
    for shape in shapes:
        if not isinstance(shape, Sequence) or not all(isinstance(n, int) and n >= 0 for n in shape):
            number = f"\nHint: one sample of {shape} features is input_size=(1, {shape})." if type(shape) is int else ""
            raise ValueError(f"summary(): input_size must be a shape or a list of shapes, not {input_size!r}{number}")
    kinds = (
        [_dtypes.float32] * len(shapes)
        if dtypes is None
        else list(dtypes)
        if isinstance(dtypes, (list, tuple))
        else [dtypes]
    )
    if len(kinds) != len(shapes):
        raise ValueError(f"summary(): there are {len(shapes)} inputs and {len(kinds)} dtypes")
    return tuple(
        rand(tuple(shape)).to(kind) if kind.is_floating_point or kind.is_complex else zeros(tuple(shape), dtype=kind)
        for shape, kind in zip(shapes, kinds, strict=True)
    )


def _is_shape(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and bool(given) and all(type(n) is int and n >= 0 for n in given)


class _Readings(TorchFunctionMode):
    """Notes which parameters operations take; a layer's may be taken without a call of the layer, as in attention."""

    _only_watches = True

    def __init__(self) -> None:
        self.read: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.read.update(id(one) for one in tree_leaves((args, kwargs)) if isinstance(one, Parameter))
        return func(*args, **kwargs)


def _run(model: Any, layers: list[Layer], inputs: Any, named: Any, mode: str) -> None:
    """Call a model, and note what its layers are given, return and count."""
    counter = FlopCounterMode(display=False, custom_mapping=dict.fromkeys(ATTENTION, _attention_flop))
    flags = {module: module.training for module in model.modules()}
    buffers = {name: one.clone() for name, one in model.named_buffers()}
    first = {id(layer.module): layer for layer in reversed(layers)}
    begun: list[int] = []

    def before(module: Any, args: Any, kwargs: Any) -> None:
        layer = first[id(module)]
        if not layer.calls:
            layer.inputs = _of_tensors((args, kwargs))
        begun.append(counter.get_total_flops())

    def after(module: Any, args: Any, result: Any) -> None:
        layer = first[id(module)]
        if not layer.calls:
            layer.outputs = _of_tensors(result)
        layer.calls += 1
        layer.flops += counter.get_total_flops() - begun.pop()
        layer.output_bytes += sum(_bytes(one) for one in tree_leaves(result) if isinstance(one, Tensor))

    with ExitStack() as undo:
        for module in {id(layer.module): layer.module for layer in layers}.values():
            undo.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            undo.callback(module.register_forward_hook(after).remove)
        for module, flag in flags.items():
            undo.callback(setattr, module, "training", flag)
            module.training = flag if mode == "same" else mode == "train"
        with using(grad=False), counter, _Readings() as readings:
            functional_call(model, buffers, inputs, named)
    for layer in layers:
        layer.is_read = any(id(one) in readings.read for one in layer.module.parameters())
        if layer.shared:
            known = first[id(layer.module)]
            layer.inputs, layer.outputs, layer.calls = known.inputs, known.outputs, 1


# Attention on the CPU, which FlopCounterMode does not count: it has torch's list of operations.
ATTENTION = (aten._scaled_dot_product_flash_attention_for_cpu, aten.scaled_dot_product_attention)


def _attention_flop(query: Any, key: Any, value: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    heads = 1, prod(query[:-2])  # those of the query: keys and values may have fewer, each for several
    return sdpa_flop_count((*heads, *query[-2:]), (*heads, *key[-2:]), (*heads, *value[-2:]))


def _of_tensors(values: Any) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in tree_leaves(values) if isinstance(one, Tensor)]


# ---- writing ----
MOST_SHAPES = 3


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    more = ", ..." if len(shapes) > MOST_SHAPES else ""
    return ", ".join(str(list(shape)) for shape in shapes[:MOST_SHAPES]) + more


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _is_inside(layer: Layer, other: Layer) -> bool:
    return layer is not other and layer.path.startswith(f"{other.path}." if other.path else "")
