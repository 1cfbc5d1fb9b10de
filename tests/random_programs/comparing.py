"""Compare what two runs left behind, and decide by finite differences who is right where their numbers differ."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import torch

import retrograd
from tests.random_programs import running
from tests.random_programs.programs import Program
from tests.random_programs.running import Raised, Seen

TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 3e-4, "complex64": 3e-4, "bfloat16": 6e-2, "float16": 1e-2}
HALF = 5e-2  # of half precision
NOT_THERE = re.compile(
    r"not implemented|not supported|does not support|don't support|not yet|is not possible because|unsupported|no batching rule"
    r"|not currently|Batching rule|data-dependent|We currently|you could (?:try|use)|not able to|is not differentiable",
    re.IGNORECASE,
)


class Difference(NamedTuple):
    """What differs. `aspect` is one of: torch raises, retrograd raises, error, values, dtype, shape, requires_grad, ..."""

    aspect: str
    where: str
    torch: str
    ours: str
    right: str = ""  # by finite differences: torch, retrograd, neither, both


def difference(program: Program, library: Any = retrograd) -> Difference | None:
    """Return the first thing in which the libraries differ."""
    theirs = running.run(program, torch)
    ours = running.run(program, library)
    found = compared(theirs, ours)
    if found is not None and found.aspect == "values":
        if shaky(program, theirs) or rounded(program, theirs, ours):
            return None
        found = found._replace(right=decided(program, theirs, ours))
        if found.right == "both" and narrow(program):
            return None  # rounding
    elif found is not None and found.aspect == "torch raises":
        exact = running.numeric(program)
        if exact is not None:
            found = found._replace(right="retrograd" if matches(ours["r"], exact, precision(program)) else "torch")
    return found


def compared(theirs: Any, ours: Any) -> Difference | None:
    """Compare two runs."""
    if isinstance(theirs, Raised) and isinstance(ours, Raised):
        if theirs.kind == ours.kind or (
            NOT_THERE.search(theirs.text) and ours.kind in {"RuntimeError", "NotImplementedError"}
        ):
            return None
        return Difference("error", "", f"{theirs.kind}: {theirs.text}", f"{ours.kind}: {ours.text}")
    if isinstance(theirs, Raised):
        beyond = NOT_THERE.search(theirs.text) or theirs.kind == "NotImplementedError"
        return None if beyond else Difference("torch raises", "", f"{theirs.kind}: {theirs.text}", "results")
    if isinstance(ours, Raised):
        return Difference("retrograd raises", "", "results", f"{ours.kind}: {ours.text}")
    return walk(theirs, ours, "")


def walk(theirs: Any, ours: Any, where: str, loosened: float = 1) -> Difference | None:
    """Compare results part by part."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        pairs = [(f"{k}", theirs[k], ours.get(k)) for k in theirs]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = [(f"{where}[{k}]", a, b) for k, (a, b) in enumerate(zip(theirs, ours, strict=True))]
    elif isinstance(theirs, Seen) and isinstance(ours, Seen):
        return tensors(theirs, ours, where, loosened)
    else:
        same = type(theirs) is type(ours) and (theirs == ours or theirs != theirs)
        return None if same else Difference("kind", where, short(theirs), short(ours))
    return next((d for name, a, b in pairs if (d := walk(a, b, name, loosened)) is not None), None)


def tensors(theirs: Seen, ours: Seen, where: str, loosened: float) -> Difference | None:
    for aspect in ("dtype", "shape"):
        if getattr(theirs, aspect) != getattr(ours, aspect):
            return Difference(aspect, where, str(getattr(theirs, aspect)), str(getattr(ours, aspect)))
    if not close(theirs.values, ours.values, TOLERANCE.get(theirs.dtype, 0) * loosened):
        return Difference("values", where, short(theirs), short(ours))
    # how often a formula wrote into what it made is its own affair; of a leaf, users count the writes
    for aspect in ("requires_grad", "recorded", "version") if where.startswith("x") else ("requires_grad", "recorded"):
        if getattr(theirs, aspect) != getattr(ours, aspect):
            return Difference(aspect, where, str(getattr(theirs, aspect)), str(getattr(ours, aspect)))
    return None


def close(theirs: np.ndarray, ours: np.ndarray, tolerance: float) -> bool:
    if not theirs.size:
        return True
    if theirs.dtype.kind not in "fc":
        return bool((theirs == ours).all())
    with np.errstate(all="ignore"):
        sizes = np.abs(theirs[np.isfinite(theirs)])
        scale = 1 + (float(sizes.max()) if sizes.size else 0.0)
        return bool(np.isclose(ours, theirs, tolerance, tolerance * scale, equal_nan=True).all())


def short(value: Any) -> str:
    if isinstance(value, Seen):
        return np.array2string(value.values, threshold=12, precision=6).replace("\n", "")[:160]
    return str(value)[:160]


def shaky(program: Program, theirs: Any) -> bool:
    """Tell whether torch's own results change as much where the leaves change by a rounding error."""
    wide = not narrow(program)
    nudged = running.run(program, torch, "1.0000000003" if wide else "1.00001")
    return walk(theirs, nudged, "", 100 if wide else 3) is not None


def rounded(program: Program, theirs: Any, ours: Any) -> bool:
    """Tell whether results differ by no more than the rounding of the least precise numbers in the program."""
    return precision(program) == HALF and walk(theirs, ours, "", HALF / TOLERANCE["float64"]) is None


def precision(program: Program) -> float:
    """Return how closely results can agree with finite differences."""
    return HALF if re.search("bfloat16|float16|half", program.text("")) else 1e-3


def narrow(program: Program) -> bool:
    """Tell whether a program has numbers of less than double precision."""
    return re.search(r"float32|bfloat16|float16|complex64|half|\.float\(|cfloat", program.text("")) is not None


def decided(program: Program, theirs: Any, ours: Any) -> str:
    """Return who is right by finite differences, or '' where these cannot tell."""
    exact = running.numeric(program)
    if exact is None:
        return ""
    loosened = precision(program)
    found = {"torch": matches(theirs["r"], exact, loosened), "retrograd": matches(ours["r"], exact, loosened)}
    return {(True, True): "both", (True, False): "torch", (False, True): "retrograd", (False, False): "neither"}[
        found["torch"], found["retrograd"]
    ]


def matches(found: Any, exact: Any, tolerance: float = 1e-3) -> bool:
    """Tell whether results agree with finite differences, as closely as these are exact."""

    def agrees(a: Any, b: Any) -> bool:
        if a is None:
            return bool(np.allclose(b.values, 0, atol=1e-4))
        return a.shape == b.shape and close(b.values, a.values, tolerance)

    return all(agrees(a, b) for a, b in zip(flat(found), flat(exact), strict=False))


def flat(value: Any) -> list[Any]:
    return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]
