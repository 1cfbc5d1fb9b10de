"""Ask retrograd and torch the same question, and compare their answers.

A test writes its question once, as a function of the library (or as a text in which `torch` is the library), and compares
what both give: `assert_same_answer(lambda library: outcome(library.add, 1, "a"))`. An error is an answer, too: `outcome` makes
it a value, `Raised`, with the name of its class and as many of its words as the test compares.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import retrograd


@dataclass(frozen=True)
class Raised:
    """A call raised an error: the name of its class, and its words."""

    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


# ---- how much of an error's words is compared ----
# Where torch sends its users to its tracker, its pull requests or its developers. retrograd sends nobody there.
_TO_THE_TRACKER = re.compile(
    r"(?<=[.)])\s*(?:"
    r"(?:Otherwise p|P)lease (?:open|file) (?:an issue|a bug)(?:[^.]|\.(?=\S))*\."
    r"|If (?:said operator|error is|you have a specific use)(?:[^.]|\.(?=\S))*please file(?:[^.]|\.(?=\S))*\.?"
    r"|You can find detailed upgrade instructions in \S*"
    r"|See:? (?:https://)?github\.com/pytorch(?:[^.]|\.(?=\S))*\.)"
    r"|[,;]? (?:please file an issue at|see) (?:https://)?github\.com/pytorch\S*(?: for more information)?(?: (?=\.))?"
)


def without_tracker(words: str) -> str:
    """Return an error's words, or a warning's, without the sentence that sends users to torch's tracker."""
    return _TO_THE_TRACKER.sub("", words)


def whole(error: BaseException) -> str:
    return without_tracker(str(error))


def in_torchs_name(error: BaseException) -> str:
    """Return torch's part of the words; each library may call itself by its name."""
    return before_the_hint(error).replace("retrograd", "torch")


def before_the_hint(error: BaseException) -> str:
    """Return torch's part of the words: retrograd's hint comes after it."""
    return without_tracker(str(error).split("\nHint")[0])


def before_the_signatures(error: BaseException) -> str:
    """Return torch's part of the words, without the signatures that a call might have meant."""
    return before_the_hint(error).split("but expected one of")[0]


def first_line(error: BaseException) -> str:
    return str(error).split("\n")[0]


def no_words(error: BaseException) -> str:
    return ""


# ---- answers ----
def outcome(
    work: Callable[..., Any],
    *args: Any,
    words: Callable[[BaseException], str] = in_torchs_name,
    kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
    ignore_warnings: bool = True,
) -> Any:
    """Return what a call gives, or its error as a value. Errors of other kinds than those expected go on."""
    with warnings.catch_warnings():
        if ignore_warnings:
            warnings.simplefilter("ignore")
        try:
            return work(*args)
        except kinds as error:
            return Raised(type(error).__name__, words(error))


def outcome_and_warnings(
    work: Callable[..., Any], *args: Any, words: Callable[[BaseException], str] = in_torchs_name
) -> tuple[Any, list[tuple[str, str]]]:
    """Return the outcome of a call, and the classes and words of its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = outcome(work, *args, words=words, ignore_warnings=False)
    return found, [(one.category.__name__, without_tracker(str(one.message))) for one in heard]


def said(work: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Return the outcome of a call as a text."""
    return str(outcome(work, *args, **options))


def answer(library: Any, program: str, **scope: Any) -> Any:
    """Evaluate a text in which `torch` is the library, and describe what it gives."""
    return outcome(
        lambda: described(eval(program, {"torch": library, **scope})),
        words=before_the_signatures,
    )


def assert_same_answer(question: Callable[[Any], Any]) -> None:
    """Hold that both libraries give the same to a question, which is given the library."""
    torch = pytest.importorskip("torch")
    assert question(retrograd) == question(torch)


# ---- values as they are compared ----
def typed(value: Any) -> tuple[str, str]:
    """Return the type and the text of a value."""
    return type(value).__name__, repr(value)


def described(value: Any) -> Any:
    """Return what a user sees of a value: of a tensor its dtype, shape, strides, numbers and node."""
    if isinstance(value, (tuple, list)):
        return [described(one) for one in value]
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        node = None if value.grad_fn is None else value.grad_fn.name()
        return str(value.dtype), tuple(value.shape), value.stride(), str(value.tolist()), value.requires_grad, node
    return str(value).replace("retrograd", "torch")
