"""Small programs that run in torch and in retrograd: what they show must be what was recorded from torch.

A program takes the library and returns what a user sees. The recording (`recorded/*.json`) was made by

    python -m tests.autograd.recording

with torch 2.13.0, so the tests of retrograd need no torch; the tests marked `oracle` run the same programs in
torch and compare them with the recording too.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.ops.comparing import first_sentence
from tests.oracle import without_tracker

FOLDER = Path(__file__).parent / "recorded"
MODULES = (
    "errors",
    "errors_api",
    "hooks",
    "saved_hooks",
    "function",
    "function_saved",
    "function_transforms",
    "function_checks",
    "function_compositions",
    "variable",
    "ended_levels",
    "grad_modes",
    "forward_ad",
    "graph",
    "hooks_while_running",
    "hook_order",
    "views_of_every_kind",
    "saved_values",
    "function_circumstances",
    "function_outputs",
    "graph_of_small_programs",
    "gradients_that_meet",
    "copies_of_graphs",
    "modes_in_each_other",
    "smaller_names",
    "gradient_edges",
    "tests.nn.test_module_hook_order",
    "tests.fx.test_tracing",
    "tests.fx.test_passes",
    "tests.fx.test_experimental",
    "tests.jit.test_traces",
    "tests.jit.test_scripts",
    "tests.export.test_programs",
    "tests.random.test_quasirandom",
    "tests.futures.test_futures",
    "tests.func.test_vmap_axes",
    "tests.func.test_views_that_leave",
    "tests.func.test_printing_inside",
    "tests.func.test_random_samples",
    "tests.tensor.test_conjugate_views",
    "tests.func.test_structures_and_aux",
    "tests.func.test_transforms_in_each_other",
    "tests.func.test_inference_inside",
    "tests.func.test_tangents_given",
    "tests.func.test_functional_call_state",
)  # of this folder, or a whole name
TOLERANCE = 1e-6


def plain(value: Any) -> Any:
    """Turn what a program shows into what JSON can hold."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, BaseException):
        return ["raised", type(value).__name__, first_sentence(str(value))]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "requires_grad") and hasattr(value, "tolist"):
        dtype = str(value.dtype).removeprefix("torch.")
        return ["tensor", dtype, list(value.shape), plain(value.detach().tolist())]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, type):
        return value.__name__
    if hasattr(value, "next_functions"):
        return ["node", value.name()]
    return str(value)


def same(ours: Any, recorded: Any) -> bool:
    """Compare two plain values; numbers up to rounding."""
    if isinstance(ours, float) or isinstance(recorded, float):
        if isinstance(ours, (str, list, dict)) or isinstance(recorded, (str, list, dict)) or None in (ours, recorded):
            return False
        return math.isclose(ours, recorded, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(ours, list) and isinstance(recorded, list):
        return len(ours) == len(recorded) and all(same(a, b) for a, b in zip(ours, recorded, strict=True))
    if isinstance(ours, dict) and isinstance(recorded, dict):
        return ours.keys() == recorded.keys() and all(same(ours[k], recorded[k]) for k in ours)
    if isinstance(ours, str) and isinstance(recorded, str):
        return without_tracker(ours) == without_tracker(recorded)
    return type(ours) is type(recorded) and ours == recorded


def caught(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the error a call raises, or what it returns."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return error


def warned(call: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call(*args, **kwargs)
    return [[w.category.__name__, first_sentence(str(w.message))] for w in seen]


class Programs:
    """The programs of one test module, and what torch showed."""

    def __init__(self, module: str) -> None:
        self.path = FOLDER / f"{module}.json"
        self.all: dict[str, Callable[..., Any]] = {}

    def __call__(self, program: Callable[..., Any]) -> Callable[..., Any]:
        assert program.__name__ not in self.all, f"two programs are called {program.__name__}"
        self.all[program.__name__] = program
        return program

    @property
    def names(self) -> list[str]:
        return list(self.all)

    def using(self, *words: str) -> list[str]:
        """Return the names of the programs whose text has one of some words."""
        texts = {name: inspect.getsource(one) for name, one in self.all.items()}
        return [name for name, text in texts.items() if any(word in text for word in words)]

    def run(self, library: Any, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(caught(self.all[name], library))

    def check(self, library: Any, name: str) -> None:
        recorded = json.loads(self.path.read_text())
        shown = json.loads(json.dumps(self.run(library, name)))
        assert recorded.keys() == self.all.keys(), "programs came or went: record them again"
        assert same(shown, recorded[name]), f"\n{library.__name__} {shown}\ntorch recorded {recorded[name]}"

    def tests(self) -> tuple[Callable[[str], None], Callable[[str], None]]:
        """Return the two tests of every program so far: in retrograd, and of the recording in torch."""
        each = pytest.mark.parametrize("name", self.names)

        @each
        def test_as_torch(name: str) -> None:
            self.check(retrograd, name)

        @pytest.mark.oracle
        @each
        def test_recording_is_torchs(name: str) -> None:
            self.check(pytest.importorskip("torch"), name)

        return test_as_torch, test_recording_is_torchs

    def record(self, library: Any) -> None:
        values = {name: self.run(library, name) for name in self.all}
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(values.items()))
        self.path.write_text(f"{{\n{rows}\n}}\n")


def main() -> None:
    """Record every program from torch."""
    import torch

    assert torch.__version__.startswith("2.13.0"), "the reference is torch 2.13.0"
    torch.set_num_threads(1)
    for name in MODULES:
        importlib.import_module(name if "." in name else f"tests.autograd.test_{name}").program.record(torch)


if __name__ == "__main__":
    main()
