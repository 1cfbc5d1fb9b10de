"""What a node keeps for its rules: arrays, their versions, and what saved-tensor hooks hold. See Note [Saved values]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.arrays import NO_LEVELS, has_nan
from ..._core.primitive import engine_state
from ..._graph.node import Guard, InputFacts, Node, PackedMeta, pack_value
from ..._modes import Mode
from ..._places import user_stack
from .. import _base
from .._aliasing.entering import given_tangent
from .._base import storage_of, wrap
from .flat import refuse_saving


def save_arrays(node: Any, cls: Any, args: Any, values: dict[str, Any], out: Any, edges: Any, mode: Mode) -> None:
    """Keep the arrays that the rules of inputs needing gradients read. See Note [Saved values]."""
    guard: Guard | None = None
    for attribute in cls.array_names:
        readers = cls.readers[attribute]
        if readers and not any(edges[i] is not None for i in readers):
            setattr(node, attribute, None)
            continue
        value = out if attribute == "out" else values[attribute]
        if attribute == "out" and isinstance(value, tuple):
            value = tuple(None if part.dtype.kind in "fcV" else part for part in value)  # rules read the indices only
        setattr(node, attribute, value)
        if attribute == "out":
            if mode.saved_hooks and value is not None:
                guard = guard or Guard()
                guard.packed["out"] = _pack_output(value, mode)
            continue
        at = cls.input_of[attribute]
        sources = args[at:] if isinstance(value, tuple) else args[at : at + 1]
        entries: list[Any] = []
        for source in sources:
            if not isinstance(source, _base.Tensor):
                entries.append((None, 0))
                continue
            storage = source._storage
            if storage is None and (source._edge is None or isinstance(value, tuple)):
                storage = storage_of(source)
            if storage is not None:
                if storage.inference:
                    refuse_saving(storage)
                entries.append((storage, storage.version))
            if (tangent := given_tangent(source)) is not None:  # memory of the saved value, too
                entries += [] if entries else [(storage_of(source), storage_of(source).version)]
                entries.append((storage_of(tangent), storage_of(tangent).version))
        if entries:
            guard = guard or Guard()
            guard.versions[attribute] = entries if isinstance(value, tuple) or len(entries) > 1 else entries[0]
        if mode.saved_hooks and sources:
            guard = guard or Guard()
            packed = _pack_sources(sources, value, mode)
            if packed is not None:
                guard.packed[attribute] = packed
    node.guard = guard
    if mode.saved_hooks and guard is not None:
        for attribute in guard.packed:
            setattr(node, attribute, True)  # the hooks hold the value now
        if guard.packed and node.meta is None:
            node.meta = _facts(args, edges)  # the hooks may give back another dtype or shape


def _facts(args: Any, edges: Any) -> PackedMeta:
    """Collect the shapes and dtypes of the inputs of a node without levels."""
    pairs = zip(args, edges, strict=False)
    return PackedMeta(
        tuple([None if e is None else InputFacts(tuple(a._array.shape), a._array.dtype, NO_LEVELS) for a, e in pairs]),
        NO_LEVELS,
        False,
    )


def pack(tensor: Any, mode: Mode) -> Any:
    """Hand a tensor to the innermost pack hook."""
    if mode.saved_hooks_disabled is not None:
        raise RuntimeError(mode.saved_hooks_disabled)
    pack_hook, unpack_hook = mode.saved_hooks[-1]
    return pack_value(tensor, pack_hook, unpack_hook)


def _pack_sources(sources: Any, value: Any, mode: Mode) -> Any:
    """Hand the tensors of an input, or of a sequence of inputs, to the hooks; None if there are none.

    What is no tensor stays as it is: a number, or an array that an operation has made of its arguments.
    """
    if not any(isinstance(source, _base.Tensor) for source in sources):
        return None
    if not isinstance(value, tuple):
        return pack(sources[0], mode)
    return tuple(pack(source, mode) if isinstance(source, _base.Tensor) else source for source in sources)


def _pack_output(value: Any, mode: Mode) -> Any:
    if isinstance(value, tuple):
        return tuple(v if v is None else pack(wrap(v), mode) for v in value)
    from .._aliasing.views import NOWHERE

    # It requires grad, as torch's; but it does not know the node, or a hook that keeps it would keep both forever.
    return pack(wrap(value, NOWHERE), mode)


def note_origin(node: Node, out: Any, arrays: Sequence[Any], mode: Mode) -> None:
    """Keep what anomaly mode reports about a node: where it was made, in whose backward, and whether NaN began there."""
    extra = node.need_extra()
    extra.traceback = user_stack()
    extra.parent = engine_state.watched
    outputs = out if isinstance(out, tuple) else (out,)
    extra.made_nan = mode.anomaly_check_nan and any(map(has_nan, outputs)) and not any(map(has_nan, arrays))
