"""What `out=` may be: torch's functions differ. Without one of these, whatever can hold the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._dtypes import CPP_NAMES
from .. import _base


def _mismatch(wanted: Any, given: Any) -> RuntimeError:
    wanted, given = (CPP_NAMES[one.name] for one in (wanted, given))
    return RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {given} instead")


def refuse_dtype(function: Any, out: Any, result: Any) -> None:
    """Raise torch's error for an `out=` of another dtype than the result's, of a function that takes none."""
    wanted, given = _base.dtype_of(result), _base.dtype_of(out)
    sentence = getattr(function, "out_dtype", None)
    if sentence is None or wanted is given:
        return
    if sentence == "kernel":
        raise RuntimeError(f"Found dtype {given._scalar_name} but expected {wanted._scalar_name}")
    raise _mismatch(wanted, given)


def computes_in_dtype_of_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `out=` decide the dtype, as if it had been asked for: sums and products."""

    def read(kwargs: dict[str, Any], out: Any) -> dict[str, Any]:
        own = _base.dtype_of(out)
        asked = kwargs.get("dtype")
        if asked is not None and asked is not own:
            raise _mismatch(asked, own)
        return {**kwargs, "dtype": own}

    function.dtype_from_out = read  # type: ignore[attr-defined]
    return function


EVERYTHING = slice(None)  # the `dim` of a reduction for which none was given, where that is not the same as None


def needs_dim(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse `out=` without `dim`, as torch does: it has no such form."""

    def check(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if "dim" not in kwargs and (len(args) < 2 or args[1] is EVERYTHING):
            raise TypeError(f"{name}(): out without dim")

    function.check_arguments = check  # type: ignore[attr-defined]
    return function


def needs_dtype_of_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse `out=` of any dtype but the result's."""

    def check(name: str, targets: Sequence[Any], results: Sequence[Any]) -> None:
        for target, result in zip(targets, results, strict=False):
            if target._array.dtype != result._array.dtype:
                raise _mismatch(_base.dtype_of(result), _base.dtype_of(target))

    function.check_out = check  # type: ignore[attr-defined]
    return function


def needs_truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse `out=` that is not for truth values."""

    def check(name: str, targets: Sequence[Any], results: Sequence[Any]) -> None:
        if targets[0]._array.dtype.name not in ("bool", "uint8"):
            given = _base.dtype_of(targets[0])._scalar_name
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {given}")

    function.check_out = check  # type: ignore[attr-defined]
    return function


def needs_dtype_of_input(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse `out=` of any dtype but the input's, which is the result's, in the words of amax and amin."""

    def check(name: str, targets: Sequence[Any], results: Sequence[Any]) -> None:
        own, given = _base.dtype_of(results[0]), _base.dtype_of(targets[0])
        if own is not given:
            raise RuntimeError(
                f"Expected the dtype for input and out to match, but got {own._scalar_name} for input's dtype and "
                f"{given._scalar_name} for out's dtype."
            )

    function.check_out = check  # type: ignore[attr-defined]
    return function
