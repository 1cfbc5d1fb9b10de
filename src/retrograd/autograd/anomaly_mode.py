"""Anomaly detection: find the operation whose backward failed or gave NaN."""

from __future__ import annotations

from typing import Any

from .._core.arrays import has_nan
from .._core.primitive import engine_state
from .._graph.node import Node, Slot
from .._modes import Block, change_mode, current_mode, is_in_with, push, unique, write
from .._warnings import warn

ANOMALY = ("anomaly", "anomaly_check_nan")


class detect_anomaly(Block):  # noqa: N801 - torch's name
    """Watch the operations of this block and the backward of what it records.

    Args:
        check_nan: whether gradients are searched for NaN

    Example:
        >>> x = torch.tensor(0.0, requires_grad=True)
        >>> with torch.autograd.detect_anomaly():
        ...     try:
        ...         (x.sqrt() * 0).backward()
        ...     except RuntimeError as error:
        ...         print(str(error)[:60])
        Function 'SqrtBackward0' returned nan values in its 0th outp
    """

    _block_fields = ANOMALY

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging."
        )

    def __enter__(self) -> None:
        before = current_mode()
        entered = unique(before._replace(anomaly=True, anomaly_check_nan=self.check_nan))
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]


class set_detect_anomaly(Block):  # noqa: N801
    """Switch anomaly detection on or off, at once or for a block."""

    _block_fields = ANOMALY

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._changes: dict[str, Any] = {"anomaly": bool(mode), "anomaly_check_nan": check_nan}
        before = current_mode()
        self._previous: dict[str, Any] = {name: getattr(before, name) for name in ANOMALY}
        if not is_in_with():
            change_mode(**self._changes)

    def __enter__(self) -> None:
        mode = current_mode()
        entered = unique(mode._replace(**self._changes))
        entry = self._block_entry(unique(mode._replace(**self._previous)), entered)
        write[entered]
        push[entry]


def is_anomaly_enabled() -> bool:
    """Tell whether anomaly detection is on."""
    return current_mode().anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Tell whether anomaly detection looks for NaN."""
    return current_mode().anomaly_check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off."""
    change_mode(anomaly=bool(enabled), anomaly_check_nan=bool(check_nan))


def run_watched(node: Any, g: Any, graph: bool) -> Any:
    """Run a node's backward; say which operation it belongs to if it fails or gives NaN."""
    outer, engine_state.watched = engine_state.watched, node
    try:
        grads = node.pull_back(g, graph)
    except Exception:
        _warn(node)
        raise
    finally:
        engine_state.watched = outer
    if current_mode().anomaly_check_nan:
        for i, grad in enumerate(grads):
            if grad is not None and has_nan(_array_of(grad)):
                _warn(node)
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {i}th output.{_origin(node, g)}"
                )
    return grads


def _array_of(gradient: Any) -> Any:
    return gradient._array if hasattr(gradient, "_array") else gradient


def _origin(node: Any, g: Any) -> str:
    """Say which operation made the first NaN: one of forward, on which the node depends, or this one's backward."""
    first = _first_nan_in_forward(node)
    if first is not None:
        return (
            f" Hint: the first NaN appeared in the forward pass: the output of {_operation(first)} has NaN where its inputs "
            f"have none. It was called here:\n{first.place()}"
        )
    given = g if isinstance(g, tuple) else (g,)
    if any(part is not None and has_nan(_array_of(part)) for part in given):
        return " Hint: the gradient passed to backward already contains NaN."
    if node.place() is None:
        return ""
    return (
        f" Hint: neither the forward pass nor the incoming gradient contains NaN: the backward of {_operation(node)} made "
        f"the first one. The operation was called here:\n{node.place()}"
    )


def _operation(node: Any) -> str:
    return str(node.primitive.torch if node.primitive is not None else node.name())


def _first_nan_in_forward(node: Any) -> Any:
    """Return the oldest node behind this one, or this one, whose output had NaN and whose inputs had none."""
    found: list[Any] = []
    seen = {node}
    stack = [node]
    while stack:
        one = stack.pop()
        if one.extra is not None and one.extra.made_nan:
            found.append(one)
        for edge in one._edges:
            target = edge.node if type(edge) is Slot else edge
            if isinstance(target, Node) and target not in seen:
                seen.add(target)
                stack.append(target)
    return min(found, key=lambda one: one.seq, default=None)


def _warn(node: Any) -> None:
    """Show where the operation of a node was called, and those in whose backward it was, one after the other."""
    what, caused = f"Error detected in {node.name()}.", "caused the error"
    while True:
        where = None if node.extra is None else node.extra.traceback
        if where is None:
            warn(
                f"{what} No forward pass information available. Enable detect anomaly during forward pass for more "
                "information."
            )
        else:
            warn(f"{what} Traceback of forward call that {caused}:\n{''.join(where.format())}")
        node = None if node.extra is None else node.extra.parent
        if node is None:
            return
        what, caused = f"\n\nPrevious calculation was induced by {node.name()}.", "induced the previous calculation"
