"""The operations that programs call: torch's public functions and methods, with calls taken from torch's own samples.

A `Form` is one way to call an operation, as text with places for tensors: `torch.gather({0}, 1, {1})`. Its `Place`s say what tensors
torch's sample had there. The builder puts values of the program there, and torch tells whether the call is valid.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from dataclasses import dataclass
from typing import Any

import torch

from tests.opdb import ops, translate

SAMPLES = 24  # of an operation, in the order of op_db
FORMS = 8  # of these, the smallest
NUMBERS = 160  # in the tensors of a form; where all samples are larger, the smallest sample is taken

# What a program cannot compare: memory that nobody wrote, files, and vectors that are determined up to a factor only.
LEFT_OUT = {
    "memory is not initialised": r"empty|new_empty|empty_like|empty_strided|empty_permuted|new_empty_strided|resize_?|resize_as_",
    "vectors up to a factor": r"svd|linalg\.svd|linalg\.eig|linalg\.eigh|geqrf|ormqr|svd_lowrank|pca_lowrank|lobpcg"
    r"|linalg\.householder_product|qr|linalg\.qr|linalg\.ldl_factor(_ex)?|linalg\.lu_factor_ex",
    "complex32, which hardly anything computes in": r"chalf",
    "unsigned integers without arithmetic": r"hash_tensor",
    "reads a number": r"item|tensor_split\.item",
    "needs memory of a given layout": r"as_strided.*|slice|masked\.normalize",
}


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor of a sample; `values` is text of nested lists, rounded so that a program stays readable."""

    shape: tuple[int, ...]
    dtype: str
    tensor: torch.Tensor

    @functools.cached_property
    def values(self) -> str:
        plain = self.tensor.detach().resolve_conj().resolve_neg()
        return literal(_rounded((plain.float() if plain.dtype in {torch.bfloat16, torch.float16} else plain).tolist()))

    @property
    def differentiable(self) -> bool:
        return self.dtype.startswith(("float", "complex", "bfloat"))


@dataclass(frozen=True)
class Form:
    """One way to call an operation; `in_place` forms write into their first place."""

    operation: str
    text: str
    places: tuple[Place, ...]
    in_place: bool = False


class CannotWriteError(ValueError):
    """An argument has no short text."""


@functools.cache
def entries() -> dict[str, Any]:
    """Return the entries of op_db by the name of what they call: `torch.gather`, `Tensor.gather`, `Tensor.mul_`."""
    found: dict[str, Any] = {}
    paths = translate.paths()
    for op in ops.database():
        if ops.left_out(op.name) in {"sparse", "jiterator", "private"}:
            continue
        if any(re.fullmatch(names, op.name) for names in LEFT_OUT.values()):
            continue
        for function in (op.op, op.method_variant, op.inplace_variant):
            path = paths.get(id(function)) if function is not None else None
            if path is None and function is not None and function is op.op and op.name in PROPERTIES:
                path = f"Tensor.{op.name}"
            if path is not None and not re.search(r"(^|\.)_[a-z]", path) and "sparse" not in path:
                found.setdefault(path, op)
    return dict(sorted(found.items()))


PROPERTIES = {"T", "H", "mT", "mH"}


@functools.cache
def operations() -> tuple[str, ...]:
    """Return the names of all operations that retrograd has, too."""
    return tuple(name for name in entries() if _there(name))


def _there(name: str) -> bool:
    try:
        translate.named(name)
    except AttributeError:
        return False
    return True


@functools.cache
def forms(operation: str) -> tuple[Form, ...]:
    """Return the ways to call an operation, taken from torch's samples."""
    op = entries()[operation]
    supported = op.supported_dtypes("cpu")
    dtype = next(
        (d for d in (torch.float64, torch.complex128, torch.float32, torch.int64, torch.bool) if d in supported), None
    )
    if dtype is None:
        return ()
    found: dict[tuple[str, Any], tuple[int, Form]] = {}
    try:
        torch.manual_seed(sum(map(ord, op.name)))
        # not op.sample_inputs, which looks for the name of a test on the stack, for milliseconds
        for sample in itertools.islice(op.sample_inputs_func(op, "cpu", dtype, False), SAMPLES):
            try:
                size, form = _form(operation, sample)
            except CannotWriteError:
                continue
            found.setdefault((form.text, tuple(p.shape for p in form.places)), (size, form))
    except Exception:  # some samples need what this machine has not
        if not found:
            return ()
    ordered = sorted(found.values(), key=lambda pair: pair[0])
    fitting = [form for size, form in ordered if size <= NUMBERS]
    return tuple(fitting[:FORMS]) or tuple(form for _, form in ordered[:1])


def _form(operation: str, sample: Any) -> tuple[int, Form]:
    places: list[Place] = []
    arguments = [_written(value, places) for value in (sample.input, *sample.args)]
    arguments += [f"{name}={_written(value, places)}" for name, value in sample.kwargs.items()]
    module, _, name = operation.rpartition(".")
    if module == "Tensor":
        if arguments[0] != "{0}":
            raise CannotWriteError
        call = "" if name in PROPERTIES else f"({', '.join(arguments[1:])})"
        text = f"{{0}}.{name}{call}"
    else:
        text = f"torch.{operation}({', '.join(arguments)})"
    in_place = name.endswith("_") and not name.endswith("__")
    return sum(math.prod(p.shape) for p in places), Form(operation, text, tuple(places), in_place)


def _written(value: Any, places: list[Place]) -> str:
    """Return an argument as text; tensors become places."""
    if isinstance(value, torch.Tensor):
        places.append(_place(value))
        return f"{{{len(places) - 1}}}"
    if isinstance(value, (bool, int, str)) or value is None or value is Ellipsis:
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, (float, complex)):
        return literal(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, slice):
        return f"slice({value.start!r}, {value.stop!r}, {value.step!r})"
    if isinstance(value, (tuple, list)):
        parts = [_written(one, places) for one in value]
        if isinstance(value, list):
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    raise CannotWriteError


def _place(value: torch.Tensor) -> Place:
    if value.numel() > 1000 or value.layout is not torch.strided or value.is_quantized:
        raise CannotWriteError
    return Place(tuple(value.shape), str(value.dtype).removeprefix("torch."), value)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, complex):
        return complex(float(f"{value.real:.4g}"), float(f"{value.imag:.4g}"))
    return value


def literal(value: Any) -> str:
    """Return nested lists of numbers as Python text, with infinities and NaN."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)
