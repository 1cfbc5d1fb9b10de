"""einsum: the equation is read once per shapes, then carried out as pairwise contractions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ..._ops import contract as c
from ...overrides import overridable
from .. import _base
from .._recording.record import promoted, record
from .._recording.refusals import refuse
from .joining import need_tensors
from .matrix_checks import scalar_name
from .reduce import sum as summed
from .shape import diagonal, permute, squeeze

ELLIPSIS = 52  # labels of letters are 0 to 51; dimensions under an ellipsis are numbered from here
Labels = tuple[int, ...]


class Operand(NamedTuple):
    """What happens to an operand first: diagonals of repeated labels, then dropping of broadcast dimensions."""

    diagonals: tuple[tuple[int, int], ...]
    dropped: tuple[int, ...]


class Step(NamedTuple):
    """One contraction of two operands, after sums over what only one of them has; the result is put last."""

    first: int
    second: int
    sums: tuple[tuple[int, ...], tuple[int, ...]]
    labels: tuple[Labels, Labels, Labels]


class Plan(NamedTuple):
    """How an equation is carried out on operands of some shapes."""

    operands: tuple[Operand | None, ...]
    steps: tuple[Step, ...]
    last_sum: tuple[int, ...]
    last_order: tuple[int, ...] | None


def _letter(label: int) -> str:
    return chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)


def _label(letter: str, at: int) -> int:
    if letter.isascii() and letter.isalpha():
        return ord(letter) - ord("A") if letter.isupper() else ord(letter) - ord("a") + 26
    raise RuntimeError(
        f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in [a-zA-Z]"
    )


# ---- reading ----
def _read_inputs(equation: str, end: int) -> list[list[int | None]]:
    """Read the labels of each operand; None stands for an ellipsis."""
    operands: list[list[int | None]] = [[]]
    at = 0
    while at < end:
        letter = equation[at]
        if letter == ",":
            operands.append([])
        elif letter == ".":
            if None in operands[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {len(operands) - 1} for which an ellipsis was already found"
                )
            if equation[at : at + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for operand {len(operands) - 1} that is not part of any ellipsis"
                )
            operands[-1].append(None)
            at += 2
        elif letter != " ":
            operands[-1].append(_label(letter, at))
        at += 1
    return operands


def _read_output(equation: str, start: int, seen: set[int | None]) -> list[int | None]:
    """Read the labels after the arrow."""
    labels: list[int | None] = []
    at = start
    while at < len(equation):
        letter = equation[at]
        if letter == ".":
            if None in labels:
                raise RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found")
            if equation[at : at + 3] != "...":
                raise RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)")
            labels.append(None)
            at += 2
        elif letter != " ":
            label = _label(letter, at)
            if label in labels:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
            if label not in seen:
                raise RuntimeError(
                    f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
                )
            labels.append(label)
        at += 1
    return labels


def _without_ellipsis(
    given: list[list[int | None]], shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[list[int]], list[int]]:
    """Give the dimensions under each ellipsis labels, the last dimension the same for all; return them as well."""
    widest = 0
    for k, (labels, shape) in enumerate(zip(given, shapes, strict=True)):
        named, rank = len(labels) - (None in labels), len(shape)
        if None in labels and named > rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions "
                f"({rank}) for operand {k}"
            )
        if None not in labels and named != rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({rank}) for operand {k} and no ellipsis was given"
            )
        if None in labels:
            widest = max(widest, rank - named)
    hidden = [ELLIPSIS + k for k in range(widest)]
    full = []
    for labels, shape in zip(given, shapes, strict=True):
        own = hidden[widest - (len(shape) - len(labels) + 1) :] if None in labels else []
        full.append([one for label in labels for one in (own if label is None else [label])])
    return full, hidden


@lru_cache(maxsize=512)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> Plan:
    arrow = equation.find("->")
    given = _read_inputs(equation, len(equation) if arrow < 0 else arrow)
    if len(given) != len(shapes):
        which = "fewer" if len(given) > len(shapes) else "more"
        raise RuntimeError(f"einsum(): {which} operands were provided than specified in the equation")
    inputs, hidden = _without_ellipsis(given, shapes)
    if arrow < 0:
        every = [label for labels in inputs for label in labels if label < ELLIPSIS]
        output = [*hidden, *sorted(label for label in set(every) if every.count(label) == 1)]
    else:
        read = _read_output(equation, arrow + 2, {label for labels in given for label in labels})
        output = [one for label in read for one in (hidden if label is None else [label])]
    return _carried_out(inputs, output, shapes)


def _carried_out(inputs: list[list[int]], output: list[int], shapes: tuple[tuple[int, ...], ...]) -> Plan:
    labels, operands = _prepared(inputs, shapes)
    steps: list[Step] = []
    for first, second in _path(inputs, output, shapes):
        left, right = labels[first], labels[second]
        labels = [one for k, one in enumerate(labels) if k not in (first, second)]
        needed = set(output).union(*labels)
        sums = (_alone(left, right, needed), _alone(right, left, needed))
        left = [n for k, n in enumerate(left) if k not in sums[0]]
        right = [n for k, n in enumerate(right) if k not in sums[1]]
        if labels:
            out = [n for n in left if n in needed] + [n for n in right if n in needed and n not in left]
        else:
            out = [n for n in output if n in left or n in right]
        labels.append(out)
        steps.append(Step(first, second, sums, (tuple(left), tuple(right), tuple(out))))
    last = labels[0]
    kept = [n for n in last if n in output]
    order = tuple(kept.index(n) for n in output)
    return Plan(
        tuple(operands),
        tuple(steps),
        tuple(k for k, n in enumerate(last) if n not in output),
        None if order == tuple(range(len(order))) else order,
    )


def _alone(own: list[int], other: list[int], needed: set[int]) -> tuple[int, ...]:
    return tuple(k for k, n in enumerate(own) if n not in other and n not in needed)


def _prepared(inputs: list[list[int]], shapes: Any) -> tuple[list[list[int]], list[Operand | None]]:
    """Take diagonals of repeated labels and drop dimensions of size one that others broadcast."""
    sizes: dict[int, int] = {}
    found = []
    for k, (given, shape) in enumerate(zip(inputs, shapes, strict=True)):
        labels, lengths, diagonals = list(given), list(shape), []
        for label in dict.fromkeys(given):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                if lengths[first] != lengths[second]:
                    raise RuntimeError(
                        f"einsum(): subscript {_letter(label)} is repeated for operand {k} but the sizes don't match, "
                        f"{lengths[second]} != {lengths[first]}"
                    )
                diagonals.append((first, second))
                lengths.append(lengths[first])
                for place in (second, first):
                    del labels[place], lengths[place]
                labels.append(label)
        for label, length in zip(labels, lengths, strict=True):
            seen = sizes.get(label, 1)
            if length != seen and 1 not in (length, seen):
                raise RuntimeError(_mismatch(label, length, seen, k))
            sizes[label] = length if seen == 1 else seen
        found.append((labels, lengths, tuple(diagonals)))
    kept, operands = [], []
    for labels, lengths, taken in found:
        dropped = tuple(k for k, n in enumerate(labels) if lengths[k] == 1 and sizes[n] != 1)
        kept.append([n for k, n in enumerate(labels) if k not in dropped])
        operands.append(Operand(taken, dropped) if taken or dropped else None)
    return kept, operands


def _mismatch(label: int, size: int, seen: int, operand: int) -> str:
    if label < ELLIPSIS:
        return (
            f"einsum(): subscript {_letter(label)} has size {size} for operand {operand} which does not broadcast with "
            f"previously seen size {seen}"
        )
    return (
        f"einsum(): dimension {label - ELLIPSIS} covered by ellipsis in operand {operand}has size {size} which does not "
        f"broadcast with previously seen ellipsis with size {seen} for the respective dimension"
    )


def _path(inputs: list[list[int]], output: list[int], shapes: Any) -> list[tuple[int, int]]:
    """Choose which two operands to contract next; the result goes behind the others."""
    if len(inputs) < 3:
        return [(0, 1)] * (len(inputs) - 1)
    from opt_einsum import contract_path, get_symbol

    words = ["".join(get_symbol(n) for n in labels) for labels in (*inputs, output)]
    equation = ",".join(words[:-1]) + "->" + words[-1]
    path, _ = contract_path(equation, *shapes, shapes=True, optimize="auto")
    steps: list[tuple[int, int]] = []
    count = len(inputs)
    for group in path:
        places = sorted(group)
        if len(places) == 1:
            continue  # a sum, which the next contraction does
        while len(places) > 1:
            steps.append((places[0], places[1]))
            count -= 1
            places = [*(k - 2 for k in places[2:]), count - 1]
    return steps


# ---- running ----
def _equation_of(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Write operands that alternate with lists of numbers as an equation."""
    operands = args[::2] if len(args) % 2 == 0 else args[:-1:2]

    def text(numbers: Any) -> str:
        letters = []
        for n in numbers:
            if n is not Ellipsis and not 0 <= n < ELLIPSIS:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
            letters.append("..." if n is Ellipsis else _letter(n))
        return "".join(letters)

    equation = ",".join(text(numbers) for numbers in args[1::2])
    return (equation + "->" + text(args[-1]) if len(args) % 2 else equation), operands


def _one_by_one(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with operands that came in one list taken out of it."""
    is_list = len(args) == 2 and isinstance(args[1], (list, tuple))
    return (args[0], *args[1]) if is_list else args


@overridable(lowered="cpu cuda")
def einsum(*args: Any) -> Any:
    """Multiply tensors and sum over labels, as an equation such as "ij,jk->ik" says.

    Args:
        *args: the equation, then the tensors. A label for each dimension; those that are not behind the arrow are summed over

    Example:
        >>> a, b = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]])
        >>> torch.einsum("ij,jk->ik", a, b)
        tensor([[19, 22],
                [43, 50]])
        >>> torch.einsum("ii", a)
        tensor(5)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, operands = args[0], args[1:]
    if isinstance(equation, _base.Tensor):
        equation, operands = _equation_of(args)
    elif not isinstance(equation, str):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    else:
        operands = _one_by_one(args)[1:]
    need_tensors(operands, 1)
    plan = _plan(equation, tuple(tuple(one._array.shape) for one in operands))
    return _run(plan, list(operands))


einsum.one_by_one = _one_by_one  # type: ignore[attr-defined]


def _run(plan: Plan, tensors: list[Any]) -> Any:
    for k, operand in enumerate(plan.operands):
        if operand is not None:
            for dim1, dim2 in operand.diagonals:
                tensors[k] = diagonal(tensors[k], 0, dim1, dim2)
            if operand.dropped:
                tensors[k] = squeeze(tensors[k], operand.dropped)
    for first, second, sums, labels in plan.steps:
        a, b = tensors[first], tensors[second]
        tensors = [one for k, one in enumerate(tensors) if k not in (first, second)]
        a = summed(a, sums[0]) if sums[0] else a
        b = summed(b, sums[1]) if sums[1] else b
        tensors.append(contracted(a, b, labels))
    (result,) = tensors
    if plan.last_sum:
        result = summed(result, plan.last_sum)
    return result if plan.last_order is None else permute(result, plan.last_order)


def contracted(a: Any, b: Any, labels: tuple[Labels, Labels, Labels]) -> Any:
    """Contract two tensors; without a sum they are promoted as a product is."""
    left, right, out = labels
    run_on = None
    has_sum = len(set(left) | set(right)) > len(out)
    if a._array.dtype != b._array.dtype:
        if has_sum:
            raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}")
        run_on = promoted([a._array, b._array], expanded=True)[0]
    if has_sum and a._array.dtype.kind == "b" and a._array.size and b._array.size:
        refuse("bmm", a._array.dtype)
    params = {"left": left, "right": right, "made": out}
    return record(c.contract, (a, b), params, "BmmBackward0" if has_sum else "MulBackward0", None, run_on)
