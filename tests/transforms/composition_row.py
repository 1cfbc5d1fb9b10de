"""What a row of the table of compositions is, and the numbers that the rows share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

ROWS: dict[str, Row] = {}


@dataclass
class Row:
    """One composition: a program over the library, and the same mathematics over JAX."""

    name: str
    program: Callable[[Any], Any]
    torch_fails: str = ""  # why torch 2.13 cannot do it; empty where it can
    reference: Callable[[Any, Any], Any] | None = None

    def jax(self, reference: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Decorator: the reference, a function of (jax, jax.numpy)."""
        self.reference = reference
        return reference


def add(name: str, program: Callable[[Any], Any], torch_fails: str = "") -> Row:
    """Put a row in the table."""
    if name in ROWS:
        raise ValueError(f"two rows are called {name!r}")
    ROWS[name] = Row(name, program, torch_fails)
    return ROWS[name]


def row(program: Callable[[Any], Any]) -> Row:
    """Decorator: a row named after its program."""
    return add(program.__name__, program)


def torch_fails(reason: str) -> Callable[[Callable[[Any], Any]], Row]:
    """Decorator: a row that torch refuses (or gets wrong), and that we compute all the same."""
    return lambda program: add(program.__name__, program, reason)


NUMBERS: dict[str, Any] = {
    "s": 0.7,
    "two": 2.0,
    "three": 3.0,
    "x": [0.3, -0.5, 1.2],
    "y": [0.8, 0.1, -0.6],
    "v": [1.0, -0.4, 0.25],
    "w": [[0.5, -0.3, 0.8], [0.2, 0.9, -0.7], [-0.6, 0.4, 0.1]],
    "b": [0.1, -0.2, 0.3],
    "batch": [[0.3, -0.5, 1.2], [0.9, 0.4, -0.8], [-1.1, 0.2, 0.6], [0.05, -0.7, 0.35]],
    "targets": [0.5, -1.0, 0.25, 2.0],
    "scales": [0.5, -1.5, 2.0, 0.75],
    "z": [0.3 + 0.4j, -0.5 + 1.1j, 1.2 - 0.7j],
    "u": [0.6 - 0.2j, 0.1 + 0.9j, -0.8 + 0.3j],
    "zw": [[0.5 + 0.1j, -0.3j, 0.8], [0.2 - 0.6j, 0.9, -0.7 + 0.2j], [-0.6, 0.4 + 0.4j, 0.1 - 0.5j]],
    "zbatch": [[0.3 + 0.2j, -0.5, 1.2j], [0.9 - 0.3j, 0.4 + 1j, -0.8], [-1.1j, 0.2, 0.6 + 0.6j]],
}


def data(lib: Any) -> SimpleNamespace:
    """Fresh arrays of the numbers above, made with `lib` (torch, retrograd or jax.numpy) in float64."""

    def make(name: str) -> Any:
        kind = lib.complex128 if name in ("z", "u", "zw", "zbatch") else lib.float64
        return (lib.tensor if hasattr(lib, "tensor") else lib.array)(NUMBERS[name], dtype=kind)

    return SimpleNamespace(**{name: make(name) for name in NUMBERS})


def leaf(tensor: Any) -> Any:
    """The same values as a leaf that requires grad."""
    return tensor.clone().detach().requires_grad_()
