"""Every operation of the table while something else holds what it saves: hooks, checkpoints, copies made by writes."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as torch
from retrograd.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from retrograd.utils.checkpoint import checkpoint
from tests.ops import checks
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import each, function, on_all_samples

Hooks = Callable[[], AbstractContextManager[Any]]


def same() -> AbstractContextManager[Any]:
    return saved_tensors_hooks(lambda t: t, lambda t: t)


def through_numpy() -> AbstractContextManager[Any]:
    return saved_tensors_hooks(lambda t: t.detach().resolve_conj().resolve_neg().numpy().copy(), torch.from_numpy)


def through_files(folder: str) -> AbstractContextManager[Any]:
    paths = (Path(folder, f"{k}.npy") for k in itertools.count())

    def pack(tensor: Any) -> Path:
        path = next(paths)
        np.save(path, tensor.detach().resolve_conj().resolve_neg().numpy())
        return path

    def unpack(path: Path) -> Any:
        return torch.from_numpy(np.load(path))

    return saved_tensors_hooks(pack, unpack)


def pulled(outs: list[Any], inputs: list[Any], floats: list[bool], graph: bool) -> list[Any]:
    seeds = [checks.tensor(w) for w in checks.weights([checks.array(o) for o in outs], 11)]
    return checks.pulled(outs, inputs, floats, seeds, graph)


def first_and_second(
    f: Any, arrays: Any, floats: list[bool], around: Hooks = nullcontext, back: Hooks = nullcontext
) -> list[Any]:
    """Return gradients and their gradients; `around` surrounds forward, `back` what makes the second graph."""
    inputs = checks.leaves_of(arrays, floats)
    with around():
        outs = checks.outputs(f(*inputs))
    with back():
        first = pulled(outs, inputs, floats, True)
    second = pulled([g for g in first if g.requires_grad], inputs, floats, False)
    return [checks.array(g) for g in (*first, *second)]


def equal(got: list[Any], wanted: list[Any]) -> None:
    for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
        checks.close(g, w, f"gradient {k}", **checks.EXACT)


@contextmanager
def nested() -> Iterator[None]:
    def refuse(value: Any) -> Any:
        raise AssertionError("the outer hooks are called")

    with saved_tensors_hooks(refuse, refuse), through_numpy():
        yield


# around forward, and around what makes the graph of the gradients
HOLDERS: dict[str, tuple[Hooks, Hooks]] = {
    "the tensor itself": (same, nullcontext),
    "NumPy, in both graphs": (through_numpy, through_numpy),
    "save_on_cpu": (save_on_cpu, save_on_cpu),
    "hooks inside others": (nested, nullcontext),
}


def compare_holders(op: Op, dtype: str) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample, dtype), is_float(sample)
        wanted = first_and_second(f, arrays, floats)
        for what, (around, back) in holders.items():
            with checks.saying(f"held by {what}"):
                equal(first_and_second(f, arrays, floats, around, back), wanted)

    with tempfile.TemporaryDirectory() as folder:
        holders = {**HOLDERS, "files": (partial(through_files, folder), nullcontext)}
        on_all_samples(op, check)


@each(DIFFERENTIABLE)
def test_hooks_on_saved_tensors(op: Op) -> None:
    compare_holders(op, "float64")


@each([op for op in DIFFERENTIABLE if op.complex])
def test_hooks_on_saved_tensors_with_complex_numbers(op: Op) -> None:
    compare_holders(op, "complex128")


def leaving_graph(f: Any, **options: Any) -> Callable[..., Any]:
    """Run a function as a checkpoint."""
    return lambda *inputs: checkpoint(f, *inputs, **options)


@each(DIFFERENTIABLE)
def test_checkpoint(op: Op) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample), is_float(sample)
        wanted = first_and_second(f, arrays, floats)
        equal(first_and_second(leaving_graph(f, use_reentrant=False), arrays, floats), wanted)
        inputs = checks.leaves_of(arrays, floats)
        outs = checks.outputs(checkpoint(f, *inputs, use_reentrant=True))
        seeds = map(checks.tensor, checks.weights(list(map(checks.array, outs)), 11))
        wanting = [(o, s) for o, s in zip(outs, seeds, strict=True) if o.requires_grad]
        if wanting:
            torch.autograd.backward(*map(list, zip(*wanting, strict=True)))
        leaves = checks.chosen(inputs, floats)
        equal([np.zeros(i.shape) if i.grad is None else checks.array(i.grad) for i in leaves], wanted[: len(leaves)])

    on_all_samples(op, check)


@each(DIFFERENTIABLE)
def test_inputs_may_be_overwritten_where_mutation_is_allowed(op: Op) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample), is_float(sample)
        wanted = first_and_second(f, arrays, floats)
        leaves = checks.leaves_of(arrays, floats)
        with allow_mutation_on_saved_tensors():
            inputs = [leaf.clone() for leaf in leaves]
            outs = checks.outputs(f(*inputs))
            outs = [o.clone() if o._is_view() else o for o in outs]  # of which some may not be used after a write
            with torch.no_grad():
                for one in inputs:
                    one.zero_()
            got = [checks.array(g) for g in pulled(outs, leaves, floats, False)]
        equal(got, wanted[: len(got)])

    on_all_samples(op, check)


@each(DIFFERENTIABLE)
def test_a_write_into_inputs_or_results_never_changes_gradients_silently(op: Op) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample), is_float(sample)
        wanted = first_and_second(f, arrays, floats)
        for written in range(len(arrays) + 1):
            leaves = checks.leaves_of(arrays, floats)
            inputs = [leaf.clone() for leaf in leaves]
            outs = checks.outputs(f(*inputs))
            kept = [o.clone() for o in outs]  # a node of their own, which writes leave alone
            seeds = [checks.tensor(w) for w in checks.weights([checks.array(o) for o in outs], 11)]
            with torch.no_grad():
                for one in outs if written == len(arrays) else inputs[written : written + 1]:
                    one.zero_()
            with checks.saying(f"after a write into {'results' if written == len(arrays) else f'input {written}'}"):
                try:
                    got = [checks.array(g) for g in checks.pulled(kept, leaves, floats, seeds, False)]
                except RuntimeError as error:
                    assert "modified by an inplace operation" in str(error)  # noqa: PT017 - one of two right answers
                    continue
                equal(got, wanted[: len(got)])

    on_all_samples(op, check)
