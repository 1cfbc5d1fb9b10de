"""Run a program in one library and look at what it leaves behind."""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.utils.checkpoint

from tests.random_programs.programs import HELPERS, Program
from tests.random_programs.readings import NUMERIC, READINGS

SECONDS = 60  # far beyond any program, on a busy machine too
ENORMOUS = 100_000  # numbers; only the shape is compared
UNTOUCHED = "written = f\nf = lambda *given: written(*[x.clone() for x in given])  # finite differences call it often"
HELPER_CODE = compile(HELPERS, "<helpers>", "exec")
NUMERIC_CODE = compile(NUMERIC, "<numeric>", "exec")


class Seen(NamedTuple):
    """What is compared of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    recorded: bool  # whether it has a grad_fn
    version: int
    values: np.ndarray


class Raised(NamedTuple):
    """An error in the place of results."""

    kind: str
    text: str


class EndlessError(BaseException):
    """A program does not end."""


@contextlib.contextmanager
def watched(seconds: float = SECONDS) -> Iterator[None]:
    """Raise EndlessError in what takes too long."""

    def ring(*_: Any) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@functools.lru_cache(maxsize=256)
def _compiled(text: str) -> types.CodeType:
    return compile(text, "<program>", "exec")


def run(program: Program, library: Any, scale: str = "") -> Any:
    """Run a program; returns what is seen of its results and leaves, or what it raised."""
    code = _compiled(program.text(READINGS[program.reading].text, scale))
    scope, given = scope_of(library)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), watched():
            warnings.simplefilter("ignore")
            exec(code, scope)
        return {"r": seen(scope["r"]), **{leaf.name: seen(scope[leaf.name]) for leaf in program.leaves}}
    except EndlessError:
        return Raised("endless", "")
    except Exception as error:
        return raised(error)
    finally:
        restore(library)
        for name in set(scope) - given:
            del scope[name]


_scopes: dict[str, tuple[dict[str, Any], set[str]]] = {}


def scope_of(library: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the globals of programs in a library, and the names that every program finds there."""
    if library.__name__ not in _scopes:
        scope: dict[str, Any] = {"torch": library, "__name__": "program"}
        exec(HELPER_CODE, scope)
        _scopes[library.__name__] = scope, set(scope)
    return _scopes[library.__name__]


def restore(library: Any) -> None:
    """Leave the modes as they were, should a program have been cut short."""
    if not library.is_grad_enabled():
        library.set_grad_enabled(True)


def raised(error: Exception) -> Raised:
    kind = type(error)
    name = next(k.__name__ for k in kind.__mro__ if k.__module__ == "builtins")
    return Raised(name, re.sub(r"0x[0-9a-f]+", "0x", str(error)))


def seen(value: Any) -> Any:
    """Return what a user sees of a value, in a form that does not depend on the library."""
    if hasattr(value, "grad_fn"):
        plain = value.detach()
        dtype = str(plain.dtype).rpartition(".")[2]
        if plain.numel() > ENORMOUS:  # an expanded tensor of torch's own making
            plain = plain.new_zeros(())
        if dtype in {"bfloat16", "float16"}:
            plain = plain.double()
        elif dtype == "complex32":
            plain = plain.cfloat()
        plain = plain.resolve_conj().resolve_neg() if plain.is_complex() else plain
        return Seen(
            dtype, tuple(value.shape), value.requires_grad, value.grad_fn is not None, value._version, array(plain)
        )
    if isinstance(value, (tuple, list)):
        return [seen(one) for one in value]
    return value


def array(plain: Any) -> np.ndarray:
    try:
        return np.array(plain.numpy())
    except RuntimeError:  # torch keeps zeros of forward mode without memory
        return np.array((plain + 0).numpy())


def numeric(program: Program) -> Any:
    """Return what finite differences give for a program, in float64, or None."""
    text = READINGS[program.reading].numeric
    if text is None or re.search(r"detach|no_grad|hook|\.data", program.function()):
        return None
    whole = "\n".join([re.sub(r"\.requires_grad_\(\)", "", program.text("")), "xs = tuple(wide(x) for x in xs)", text])
    scope: dict[str, Any] = {
        "torch": torch,
        "wide": lambda x: x.to(torch.complex128 if x.is_complex() else torch.float64),
    }
    exec(HELPER_CODE, scope)
    exec(NUMERIC_CODE, scope)
    try:
        with warnings.catch_warnings(), torch.no_grad(), watched():
            warnings.simplefilter("ignore")
            exec(whole, scope)
        return seen(scope["r"])
    except (Exception, EndlessError):
        return None
