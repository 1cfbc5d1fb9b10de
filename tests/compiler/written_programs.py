"""Random sequences of views, writes and backward passes in eager and under compile: three calls must leave the same behind.

The programs are those of `tests/semantics`, as functions of their leaves. Steps that raise are left out, so that calls come to their end.
`python -m tests.compiler.written_programs FIRST COUNT` tries more of them, and counts why programs ran in eager.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

import retrograd
from tests.compiler.sources import define
from tests.semantics.programs import random_program
from tests.semantics.steps import PRELUDE, Step, close, execute, fresh_namespace

# what a compiled function leaves to eager: it would only be seen that it does
LEFT_OUT = frozenset(
    """tensor_hook busy_hook retain_grad post_accumulate_hook node_hook multi_grad_hook remove_hook read delete custom
    requires_grad detach_ write_through_data""".split()  # noqa: SIM905
)
MODES = re.compile(r"torch\.(no_grad|enable_grad)\(\)")
SCALES = (1.0, 0.75, 1.25)
BOUND = 1e-9


class Sequence:
    """A random program as a function."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        chance = random.Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = _steps_that_run(random_program(seed, frozenset() if chance.random() < 0.1 else LEFT_OUT).steps)
        self.leaves = [step for step in steps if step.operation == "leaf" and not step.uses]
        rest = [step for step in steps if step not in self.leaves]
        names = [name for step in rest for name in sorted(step.defines) if name.startswith("t")]
        given = ", ".join(next(iter(step.defines)) for step in self.leaves)
        returned = chance.sample(names, min(len(names), chance.randint(1, 3)))
        lines, depth = [f"def f({given}):"], 1
        for step in rest:
            if step.exits:
                depth -= 1
            elif step.enters:
                lines.append("    " * depth + f"with {step.source}:")
                depth += 1
                lines.append("    " * depth + "pass")
            else:
                lines.append("    " * depth + step.source)
        self.text = "\n".join([*lines, f"    return ({''.join(f'{name}, ' for name in returned)})"])

    def run(self, compiles: bool) -> tuple[list[Any], Any]:
        """Call it three times, on other numbers: what is left behind each time, and the function."""
        scope: dict[str, Any] = {"torch": retrograd, "__name__": "program"}
        define(PRELUDE, "<prelude of programs>", scope)
        define(self.text, f"<program {self.seed}>", scope)
        function = retrograd.compile(scope["f"]) if compiles else scope["f"]
        found: list[Any] = []
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for scale in SCALES:
                given = [self._leaf(step, scale) for step in self.leaves]
                try:
                    results = function(*given)
                except Exception as error:
                    gradients = [one.grad for one in given if one.grad is not None]
                    found.append((type(error).__name__, [seen(one, gradients) for one in given]))
                    continue
                finally:
                    retrograd.set_grad_enabled(True)
                there = [one for one in results if one is not None]
                tensors = [*given, *there]
                gradients = [one.grad for one in given if one.grad is not None]
                left = [seen(one, gradients) for one in tensors]
                missing = [one is None for one in results]
                found.append((_sharing(tensors), left, _gradients(given, there), missing))
        return found, function

    def _leaf(self, step: Step, scale: float) -> Any:
        scope: dict[str, Any] = {"torch": retrograd}
        exec(step.source, scope)
        (name,) = step.defines
        leaf = scope[name]
        if leaf.dtype.is_floating_point:
            leaf.data.mul_(scale)
        return leaf


def _steps_that_run(steps: tuple[Step, ...]) -> list[Step]:
    """Return the steps that do not raise, and blocks that open and close."""
    namespace, guards, kept, open_blocks = fresh_namespace(retrograd), [], [], []
    try:
        for step in steps:
            if (step.enters and not MODES.fullmatch(step.source)) or (step.exits and step.exits not in open_blocks):
                continue
            if execute(step, namespace, guards) is None:
                kept.append(step)
                if step.enters:
                    open_blocks.append(step.enters)
                elif step.exits:
                    open_blocks.remove(step.exits)
    finally:
        close(guards)
        retrograd.set_grad_enabled(True)
    return kept


def _sharing(tensors: list[Any]) -> Any:
    """Say which tensors share memory."""
    try:
        arrays = [one.detach().numpy() for one in tensors]
    except RuntimeError as error:  # a view that must not be used since its base was written
        return str(error)[:40]
    return [[bool(np.shares_memory(one, other)) for other in arrays] for one in arrays]


def _gradients(given: list[Any], results: list[Any]) -> Any:
    """Return the gradients of the results by the leaves; the kind of error if there are none."""
    wanted = [one for one in given if one.requires_grad]
    outs = [one for one in results if one.requires_grad and one.dtype.is_floating_point]
    if not wanted or not outs:
        return None
    try:
        total = sum((one * (number + 0.5)).sum() for number, one in enumerate(outs))
        grads = retrograd.autograd.grad(total, wanted, allow_unused=True)
    except Exception as error:
        return type(error).__name__
    return [None if one is None else np.array(one.numpy()) for one in grads]


def seen(tensor: Any, gradients: list[Any]) -> Any:
    """Return what is seen of a tensor: facts, numbers, and its gradient.

    Whether the engine copies the first gradient of a leaf is its own affair: versions of `gradients` are not compared.
    """
    try:
        facts = (
            str(tensor.dtype),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.requires_grad,
            tensor.is_leaf,
            tensor._is_view(),
        )
        version = None if any(one is tensor or one is tensor._base for one in gradients) else tensor._version
        grad = None if not tensor.is_leaf or tensor.grad is None else seen(tensor.grad, gradients)
        return facts, version, grad, np.array(tensor.detach().numpy())
    except RuntimeError as error:  # a view that must not be used since its base was written
        return str(error)[:40]


def difference(one: Any, other: Any) -> str | None:
    """Say in what two runs differ; None if they do not."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype.kind == "f":
            same = one.shape == other.shape and np.allclose(one, other, BOUND, BOUND, equal_nan=True)
        else:
            same = np.array_equal(one, other)
        return None if same else f"{one} != {other}"
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)) and len(one) == len(other):
        return next((told for a, b in zip(one, other, strict=True) if (told := difference(a, b)) is not None), None)
    return None if type(one) is type(other) and one == other else f"{one} != {other}"


def judged(seed: str) -> tuple[str | None, Any]:
    """Say in what a program differs under compile, and return the compiled function."""
    program = Sequence(seed)
    expected, _ = program.run(False)
    made, function = program.run(True)
    told = difference(expected, made)
    wrong = [
        reason for reason in function._compiled.reasons if "differs from eager" in reason and "strides" not in reason
    ]
    if told is None and wrong:
        told = wrong[0]
    if told is not None:
        leaves = "\n".join(step.source for step in program.leaves)
        told = f"program {seed!r}: {told}\n{leaves}\n{program.text}\n"
    return told, function


def main() -> None:
    first, count = map(int, sys.argv[1:])
    why: Counter[str] = Counter()
    for number in range(first, first + count):
        told, function = judged(f"compiled:{number}")
        if told is not None:
            print("=====", told, flush=True)
        why["compiled" if function._compiled.records else "eager"] += 1
        why.update(reason.partition("(")[0][:120] for reason in function._compiled.reasons)
    for reason, times in why.most_common():
        print(f"{times:6} {reason}")


if __name__ == "__main__":
    main()
