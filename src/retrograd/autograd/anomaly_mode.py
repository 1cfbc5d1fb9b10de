"""Anomaly detection: find the operation whose backward failed or gave NaN."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from .._modes import change_mode, current_mode


class detect_anomaly:  # noqa: N801 - torch's name
    """Watch the operations of this block and the backward of what it records."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._previous = change_mode(anomaly=True, anomaly_check_nan=self.check_nan)

    def __exit__(self, *exc: object) -> None:
        change_mode(anomaly=self._previous.anomaly, anomaly_check_nan=self._previous.anomaly_check_nan)


class set_detect_anomaly:  # noqa: N801
    """Switch anomaly detection on or off, at once or for a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = change_mode(anomaly=bool(mode), anomaly_check_nan=check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        change_mode(anomaly=self._previous.anomaly, anomaly_check_nan=self._previous.anomaly_check_nan)


def is_anomaly_enabled() -> bool:
    """Tell whether anomaly detection is on."""
    return current_mode().anomaly


def run_watched(node: Any, g: Any, graph: bool) -> Any:
    """Run a node's backward; say which operation it belongs to if it fails or gives NaN."""
    try:
        grads = node.pull_back(g, graph)
    except Exception:
        _warn(node)
        raise
    if current_mode().anomaly_check_nan:
        for i, grad in enumerate(grads):
            array = None if grad is None else raw_leaf(grad._array if hasattr(grad, "_array") else grad)
            if array is not None and array.dtype.kind in "fc" and np.isnan(array).any():
                _warn(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return grads


def _warn(node: Any) -> None:
    where = None if node.extra is None else node.extra.traceback
    if where is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            stacklevel=2,
        )
        return
    text = "".join(traceback.format_list(where))
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{text}", stacklevel=2
    )
