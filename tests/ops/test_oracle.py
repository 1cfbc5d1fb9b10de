"""Every operation of the table against torch: values, dtypes, shapes, derivatives, graphs and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing
from tests.ops.bad_inputs import BAD  # noqa: E402
from tests.ops.comparing import (  # noqa: E402
    TOLERANCE,
    attempt,
    compare,
    differentiable,
    first_order,
    first_sentence,
    forward_mode,
    inputs_of,
    make,
    name_of,
    parts,
    second_order,
    values,
    weight,
)
from tests.ops.infos import DIFFERENTIABLE, OPS  # noqa: E402
from tests.ops.kinks import KINKS, Kink  # noqa: E402
from tests.ops.opinfo import Op, Sample  # noqa: E402
from tests.oracle import Raised  # noqa: E402

pytestmark = pytest.mark.oracle

FLOATS = ("float64", "complex128", "float32", "bfloat16", "float16")
ALL = (*FLOATS, "int64", "bool")
# what torch's argument parser says; ours is Python's, which says it in other words
PARSER = re.compile(r"invalid combination of arguments|positional argument|unexpected keyword")


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def each(ops: list[Op]) -> Any:
    kept = [op for op in ops if op.oracle_dtypes != ()]
    return pytest.mark.parametrize("op", kept, ids=[op.name for op in kept])


def on_samples(op: Op, dtypes: tuple[str, ...], check: Callable[[Sample, str], None]) -> None:
    """Run a check on every sample and dtype, and say in one message which of them fail."""
    failures, count = [], 0
    for dtype in dtypes:
        if op.oracle_dtypes is not None and dtype not in op.oracle_dtypes:
            continue
        for sample in op.samples:
            count += 1
            try:
                check(sample, dtype)
            except Exception as error:  # everything that goes wrong is collected
                failures.append(f"{op.name}{sample} {dtype}: {type(error).__name__}: {str(error).strip()}")
    if failures:
        pytest.fail(f"{len(failures)} of {count} calls differ\n\n" + "\n\n".join(failures), pytrace=False)


def same_refusal(ours: Any, theirs: Raised) -> None:
    wanted = f"{theirs.kind}: {first_sentence(theirs.words)}"
    assert isinstance(ours, Raised), f"no error; torch: {wanted}"
    got = f"{ours.kind}: {first_sentence(ours.words)}"
    assert got == wanted, f"{got}; torch: {wanted}"


def same_tensors(ours: Any, theirs: Any, what: str, dtype: str) -> None:
    if isinstance(ours, Raised):
        raise AssertionError(f"{what}: {ours}")
    assert len(ours) == len(theirs), f"{what}: {len(ours)}, torch {len(theirs)}"
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a is None or b is None:
            # a zero gradient and none at all are the same number
            present = b if a is None else a
            size = 0 if present is None else present.detach().abs().sum().item()
            assert size <= TOLERANCE[dtype], f"{what} {k}: {a}, torch {b}"
        else:
            compare(a, b, f"{what} {k}", TOLERANCE.get(dtype, 1e-6))


def run(library: Any, op: Op, sample: Sample, dtype: str) -> Any:
    return parts(op.function(library, sample, inputs_of(library, op, sample, dtype, grad=False)))


@each(OPS)
def test_values(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        theirs = attempt(run, torch, op, sample, dtype)
        if isinstance(theirs, Raised) or any(name_of(t.dtype) == "complex32" for t in theirs):
            return  # the next test compares refusals; retrograd has no complex32
        same_tensors(attempt(run, retrograd, op, sample, dtype), theirs, "output", dtype)

    on_samples(op, ALL, check)


@each(OPS)
def test_refused_dtypes(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        theirs = attempt(run, torch, op, sample, dtype)
        if isinstance(theirs, Raised):
            same_refusal(attempt(run, retrograd, op, sample, dtype), theirs)

    on_samples(op, ALL, check)


@each(DIFFERENTIABLE)
def test_gradients(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        theirs = attempt(first_order, torch, op, sample, dtype)
        if isinstance(theirs, Raised):
            return  # test_values compares refusals
        ours = attempt(first_order, retrograd, op, sample, dtype)
        if isinstance(ours, Raised):
            raise AssertionError(ours)
        followed = [[o.requires_grad for o in result[0]] for result in (ours, theirs)]
        assert followed[0] == followed[1], f"requires_grad of outputs {followed[0]}, torch {followed[1]}"
        same_tensors(ours[3], theirs[3], "gradient", dtype)

    on_samples(op, FLOATS, check)


@each(DIFFERENTIABLE)
def test_second_order(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        theirs = attempt(second_order, torch, op, sample, dtype)
        if not isinstance(theirs, Raised):
            same_tensors(attempt(second_order, retrograd, op, sample, dtype), theirs, "second derivative", dtype)

    on_samples(op, ("float64", "complex128"), check)


@each(DIFFERENTIABLE)
def test_forward_mode(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        theirs = attempt(forward_mode, torch, op, sample, dtype)
        if op.name.startswith("scatter_reduce_prod"):
            assert theirs == [None]  # torch loses the tangent without a word
        elif not isinstance(theirs, Raised):
            same_tensors(attempt(forward_mode, retrograd, op, sample, dtype), theirs, "tangent", dtype)

    on_samples(op, ("float64", "complex128", "float32"), check)


# ---- graphs ----
def tree(node: Any, depth: int = 4) -> Any:
    """Return a node's name and those of its inputs' nodes."""
    if node is None or not depth:
        return None
    return (
        node.name().removeprefix("torch::autograd::"),
        tuple(tree(one, depth - 1) for one, _ in node.next_functions),
    )


@each([op for op in DIFFERENTIABLE if op.same_graph])
def test_graphs(op: Op) -> None:
    def check(sample: Sample, dtype: str) -> None:
        def graphs(library: Any) -> Any:
            outs = parts(op.function(library, sample, inputs_of(library, op, sample, dtype)))
            return [tree(o.grad_fn) for o in outs]

        theirs, ours = attempt(graphs, torch), attempt(graphs, retrograd)
        if not isinstance(theirs, Raised):
            assert ours == theirs, f"{ours}, torch {theirs}"

    on_samples(op, ("float64", "complex128") if op.complex else ("float64",), check)


# ---- kinks and limits ----
def kink_gradients(library: Any, case: Kink) -> Any:
    inputs = [make(library, np.array(one), None, True) for one in case.inputs]
    outs = parts(case.call(library, *inputs))
    followed = differentiable(outs)
    seeds = [make(library, weight(values(library, o), 5) + 0.0625, name_of(o.dtype), False) for o in followed]
    grads = library.autograd.grad(followed, inputs, seeds, create_graph=True, allow_unused=True) if followed else []
    second: Any = []
    if case.second_order:
        followed = [g for g in grads if g.requires_grad]
        directions = [make(library, weight(values(library, g), 6) + 0.0625, name_of(g.dtype), False) for g in followed]
        second = (
            library.autograd.grad(followed, inputs, directions, allow_unused=True) if followed else [None] * len(inputs)
        )
    return {"value": outs, "gradient": list(grads), "second derivative": list(second)}


def kink_tangents(library: Any, case: Kink) -> Any:
    forward_ad = library.autograd.forward_ad
    with forward_ad.dual_level():
        arrays = [np.array(one) for one in case.inputs]
        duals = [
            forward_ad.make_dual(make(library, a, None, False), make(library, weight(a, 7) + 0.0625, None, False))
            for a in arrays
        ]
        return {"tangent": [forward_ad.unpack_dual(o).tangent for o in parts(case.call(library, *duals))]}


@pytest.mark.parametrize("find", [kink_gradients, kink_tangents])
@pytest.mark.parametrize("case", KINKS, ids=[f"{k}-{case.name}" for k, case in enumerate(KINKS)])
def test_kinks(case: Kink, find: Any) -> None:
    theirs, ours = attempt(find, torch, case), attempt(find, retrograd, case)
    if isinstance(theirs, Raised):
        same_refusal(ours, theirs)
        return
    if isinstance(ours, Raised):
        pytest.fail(str(ours), pytrace=False)
    for what, tensors in theirs.items():
        if what not in case.skipped:
            same_tensors(ours[what], tensors, what, "float64")


@pytest.mark.parametrize("name", BAD)
def test_bad_inputs(name: str) -> None:
    def call(library: Any) -> Any:
        x = library.arange(6, dtype=library.float32).reshape(2, 3)
        return BAD[name](library, x, library.tensor([0, 1, 1]))

    theirs, ours = attempt(call, torch), attempt(call, retrograd)
    assert isinstance(theirs, Raised), f"torch accepts this and gives {theirs}"
    if theirs.kind == "TypeError" and PARSER.search(theirs.words):
        assert isinstance(ours, Raised), f"no error; torch: TypeError: {first_sentence(theirs.words)}"
        assert ours.kind == "TypeError"
    else:
        same_refusal(ours, theirs)
