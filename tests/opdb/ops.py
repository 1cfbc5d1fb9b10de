"""Which entries of op_db are run, and which are not, with the reason."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

REASONS = {
    "sparse": "sparse tensors are out of scope",
    "jiterator": "compiles CUDA source",
    "private": "a private name",
    "nn": "belongs to nn",
}
UNINITIALISED = re.compile(
    r"^(empty|new_empty|resize)"
)  # shapes and dtypes are compared, the values are whatever memory held
UNSTABLE = {
    "sort",
    "argsort",
    "topk",
    "msort",
    "kthvalue",
    "median",
    "nanmedian",
    "mode",
}  # which of equal values is open


@functools.cache
def database() -> list[Any]:
    """Return torch's op_db."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return list(op_db)


def full_name(op: Any) -> str:
    return f"{op.name}[{op.variant_test_name}]" if op.variant_test_name else op.name


def left_out(name: str) -> str | None:
    """Return why an entry is not counted."""
    if "sparse" in name:
        return "sparse"
    if name.startswith("jiterator"):
        return "jiterator"
    if name.startswith("nn.functional"):
        return "nn"
    if re.match(r"_[^_]|torch\.", name):
        return "private"
    return None


def counted(nn: bool = False) -> list[Any]:
    """Return the entries that count, those of nn.functional if asked for."""
    return [op for op in database() if (left_out(op.name) is None) != nn and (not nn or left_out(op.name) == "nn")]
