"""How many floating-point operations a call takes, by torch's name of the operation and the shapes, for the profiler.

A multiplication and an addition are two. As in torch's profiler, products, convolutions, additions and multiplications count, and
attention besides; everything else counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

Formula = Callable[[list[tuple[int, ...]], tuple[int, ...]], int]


def _product(factors: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return 2 * prod(out) * factors[0][-1]


def _added_product(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return 2 * prod(out) * given[1][-1]


def _added_products(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return _added_product(given, out) * given[1][0]  # of all matrices of the batch


def _convolution(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return 2 * prod(out) * prod(given[1][1:])


def _transposed_convolution(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return 2 * prod(given[0]) * prod(given[1][1:])


def _attention(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    query, key = given[0], given[1]
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + out[-1])


def _elements(given: list[tuple[int, ...]], out: tuple[int, ...]) -> int:
    return prod(out)


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(("linear", "matmul", "mm", "bmm", "mv", "dot", "inner"), _product),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added_product),
    "addbmm": _added_products,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("add", "sub", "mul"), _elements),
}


def flops_of(name: str, args: Any, result: Any) -> int:
    """Return the floating-point operations of a call; 0 for operations that do not count."""
    formula = FORMULAS.get(name.removeprefix("aten::").removesuffix("_"))
    if formula is None or not hasattr(result, "shape"):
        return 0
    shapes = [tuple(one.shape) for one in args if hasattr(one, "shape")]
    try:
        return formula(shapes, tuple(result.shape))
    except IndexError:  # arguments by name, of which there is no order
        return 0
