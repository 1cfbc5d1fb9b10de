"""torch.utils.flop_counter: how many floating-point operations a program's products and convolutions take, by module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

from .._core.arrays import levels_of
from .._core.levels import BATCH
from ..ops import OpOverloadPacket, aten
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Any
flop_registry: dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """Return the shape of a tensor, and anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """Let a formula of shapes take tensors."""

    @wraps(f)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Say how many operations a call takes: `formula(*shapes, out_shape=..., **kwargs)`, or of tensors with `get_raw`."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        of_tensors = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    "JitFunction, or HigherOrderOperator, "
                    f"got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = of_tensors
        return formula

    return register


# ---- products ----
@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Shape = None, **kwargs: Any) -> int:
    """Count a product of matrices."""
    m, k = a_shape
    _, n = b_shape
    return m * n * 2 * k  # type: ignore[no-any-return]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Count a product of matrices; the sum is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Count products of matrices."""
    b, m, k = a_shape
    n = b_shape[2]
    return b * m * n * 2 * k  # type: ignore[no-any-return]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Count products of matrices; the sum is not counted."""
    return bmm_flop(a_shape, b_shape)


@register_flop_formula(aten._scaled_mm)
def _scaled_mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Shape = None, **kwargs: Any) -> int:
    return mm_flop(a_shape, b_shape)


# ---- convolutions ----
def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Count a convolution: for each position, a product with all weights of a group."""
    batch = x_shape[0]
    positions = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *window = w_shape
    return prod(positions) * prod(window) * batch * c_out * c_in * 2  # type: ignore[no-any-return]


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Shape = None,
    **kwargs: Any,
) -> int:
    """Count a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    output_mask: Any,
    out_shape: Shape,
) -> int:
    """Count the gradients of a convolution: each is a convolution of the other two."""

    def swapped(shape: Shape) -> list[int]:
        return [shape[1], shape[0], *shape[2:]]

    found = 0
    if output_mask[0]:
        found += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        pair = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        found += conv_flop_count(swapped(pair[0]), swapped(pair[1]), swapped(out_shape[1]), transposed=False)
    return found


# ---- attention ----
def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Count attention: scores, and the sums of values by them."""
    b, h, s_q, d_q = query_shape
    _b2, _h2, s_k, _d2 = key_shape
    d_v = value_shape[-1]
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


@register_flop_formula(
    [
        aten._scaled_dot_product_efficient_attention,
        aten._scaled_dot_product_flash_attention,
        aten._scaled_dot_product_cudnn_attention,
    ]
)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Shape = None, **kwargs: Any
) -> int:
    """Count attention."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Count the gradients of attention; the scores are computed again."""
    b, h, s_q, d_q = query_shape
    _b2, _h2, s_k, _d2 = key_shape
    d_v = value_shape[-1]
    n = b * h
    scores = bmm_flop((n, s_q, d_q), (n, d_q, s_k))
    of_values = bmm_flop((n, s_q, d_v), (n, d_v, s_k)) + bmm_flop((n, s_k, s_q), (n, s_q, d_v))
    return scores + of_values + bmm_flop((n, s_q, s_k), (n, s_k, d_q)) + bmm_flop((n, d_q, s_q), (n, s_q, s_k))


@register_flop_formula(
    [
        aten._scaled_dot_product_efficient_attention_backward,
        aten._scaled_dot_product_flash_attention_backward,
        aten._scaled_dot_product_cudnn_attention_backward,
    ]
)
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Shape = None,
    **kwargs: Any,
) -> int:
    """Count the gradients of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# ---- the mode ----
_NAMES = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward"}
)  # those inside of transforms
_SUFFIXES = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """Return the suffix by which a number has between one and four digits."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """Write a number in units of a suffix."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """Write a part of a whole."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


class FlopCounterMode:
    """A block that counts the operations of products, convolutions and attention, by module and by operation.

    `depth` is how far down the table lists modules, None for all of them; `display` prints it at the end of the block.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = 999999 if depth is None else depth
        self.display = display
        if mods is not None:
            from .._warnings import warn

            warn("mods argument is not needed anymore, you can stop passing it")
        own = {
            packet: f if getattr(f, "_get_raw", False) else shape_wrapper(f)
            for packet, f in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()
        self.mode: Any = None

    def get_total_flops(self) -> int:
        """Return the count of the whole block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the counts by the names of modules, and of each by operations."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Write the counts as a table."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        rows: list[tuple[str, str, str]] = []

        def add(name: str, level: int) -> None:
            count = sum(self.flop_counts[name].values())
            lead = " " * level
            rows.append((lead + name, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)))
            for packet, one in self.flop_counts[name].items():
                rows.append(
                    (f"{lead} - {packet}", convert_num_with_suffix(one, suffix), convert_to_percent_str(one, total))
                )

        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name != "Global" and level <= depth:
                add(name, level - 1)
        if "Global" in self.flop_counts and not (len(self.flop_counts) == 2 and rows):
            below, rows = rows, []
            add("Global", 0)
            rows += [(f" {name}", count, part) for name, count, part in below]
        rows = rows or [("Global", "0", "0%")]
        heads = ("Module", "FLOP", "% Total")
        widths = [max(len(row[k]) for row in (heads, *rows)) for k in range(3)]
        lines = [
            (heads[0].ljust(widths[0]), heads[1].rjust(widths[1]), heads[2].rjust(widths[2])),
            tuple("-" * n for n in widths),
        ]
        lines += [(a.ljust(widths[0]), b.rjust(widths[1]), c.rjust(widths[2])) for a, b, c in rows]
        return "\n".join("  ".join(line).rstrip() for line in lines)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.mode.__exit__(*exception)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, packet: Any, out: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out) * _times(packet.__name__, args)
            for name in set(self.mod_tracker.parents):
                self.flop_counts[name][packet] += count
        return out


class _Counting(TorchDispatchMode):
    """The mode that sees operations for a counter."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        return self.counter._count_flops(func._overloadpacket, out, args, kwargs)

    def on_samples(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        """Count an operation on the samples of a vmap, or on duals, which no mode sees."""
        if name in _NAMES:
            self.counter._count_flops(getattr(aten, name), out, args, kwargs)


def _times(name: str, args: Any) -> int:
    """Return how often an operation is done: once for each sample, and on duals once more for each factor with a tangent."""
    factors = [one for one in args[name in ("addmm", "baddbmm") :] if isinstance(one, Tensor)]
    held = [levels_of(one._array) for one in factors]
    levels: frozenset[Any] = frozenset().union(*held)
    return prod(one.size if one.kind == BATCH else 1 + sum(one in own for own in held) for one in levels)
