"""Operations of random programs that change tensors in place: arithmetic, assignment to indices, metadata."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .building import Builder, is_clear_cut, is_floating, is_tame
from .operations import basic_index, broadcast, operation, positions
from .steps import Step


def writable(builder: Builder) -> str | None:
    """Mostly a tensor that may be written: writing to a leaf that requires grad only raises."""

    def may_be_written(tensor: torch.Tensor) -> bool:
        owner = tensor if tensor._base is None else tensor._base
        protected = torch.is_grad_enabled() and owner.is_leaf and owner.requires_grad
        return not protected and is_tame(tensor)

    return builder.tensor(may_be_written, percent_any=8)


def value_for(builder: Builder, target: str, shape: Sequence[int]) -> str:
    """A scalar or a live tensor that can be written into that shape of the target."""
    if builder.chance(35):
        return builder.scalar()
    shape = tuple(shape)
    # Truncation to integers would turn a rounding difference into a visible one.
    harmless = is_tame if is_floating(builder.get(target)) else is_clear_cut
    fitting = builder.tensor(lambda t: harmless(t) and broadcast(shape, t.shape) == shape, percent_any=3)
    return fitting or builder.scalar()


@operation("in_place_binary", 11)
def in_place_binary(builder: Builder) -> Step | None:
    target = writable(builder)
    if target is None:
        return None
    value = value_for(builder, target, builder.get(target).shape)
    name = builder.choose(("add_", "mul_", "sub_", "div_", "copy_", "+=", "*=", "add_", "mul_"))
    if name == "copy_" and not value.startswith("t"):
        name = "fill_"
    if name == "div_" and value.startswith("t") and not is_clear_cut(builder.get(value)):
        name = "mul_"
    if name.endswith("="):
        return Step(name, f"{target} {name} {value}")
    extra = ", alpha=2" if name in ("add_", "sub_") and builder.chance(15) else ""
    return Step(name, f"{target}.{name}({value}{extra})")


@operation("in_place_unary", 8)
def in_place_unary(builder: Builder) -> Step | None:
    target = writable(builder)
    if target is None:
        return None
    calls = ["tanh_()", "zero_()", "fill_(2)", "neg_()", "pow_(2)", "sigmoid_()", "square_()", "sin_()"]
    if is_clear_cut(builder.get(target)):
        calls += ["relu_()", "sqrt_()", "clamp_(-1, 1)", "abs_()"]
    if is_tame(builder.get(target), 4.0):
        calls += ["exp_()", "exp_()"]
    call = builder.choose(calls)
    return Step(call.split("(")[0], f"{target}.{call}")


@operation("set_item", 8)
def set_item(builder: Builder) -> Step | None:
    target = writable(builder)
    if target is None:
        return None
    tensor = builder.get(target)
    kind = builder.integer(0, 5) if tensor.dim() and 0 not in tensor.shape else 0
    if kind <= 2:
        index = basic_index(builder, tensor)
        try:
            shape = np.empty(tensor.shape)[eval(f"np.s_[{index}]")].shape
        except IndexError:
            shape = ()
        return Step("setitem", f"{target}[{index}] = {value_for(builder, target, shape)}")
    if kind == 3:
        if not is_clear_cut(tensor):
            return None
        value = value_for(builder, target, ()) if builder.chance(50) else builder.scalar()
        mask = builder.choose(("{0} > 0", "{0} < 1", "{0} == 0")).format(target)
        return Step("setitem mask", f"{target}[{mask}] = {value}")
    chosen = positions(builder, tensor.shape[0], unique=True)
    written = (len(eval(chosen)), *tensor.shape[1:])
    if kind == 4:
        index = builder.choose((chosen, f"torch.tensor({chosen}, dtype=torch.int64)"))
        return Step("setitem list", f"{target}[{index}] = {value_for(builder, target, written)}")
    accumulate = builder.chance(50)
    if accumulate:
        chosen = positions(builder, tensor.shape[0])
        written = (len(eval(chosen)), *tensor.shape[1:])
    dtype = str(tensor.dtype)
    fitting = builder.tensor(lambda t: t.dtype == tensor.dtype and broadcast(written, t.shape) == written)
    value = fitting or f"torch.tensor(1, dtype={dtype})"
    extra = ", accumulate=True" if accumulate else ""
    index = f"(torch.tensor({chosen}, dtype=torch.int64),)"
    return Step("index_put_", f"{target}.index_put_({index}, {value}{extra})")


@operation("masked_fill", 3)
def masked_fill(builder: Builder) -> Step | None:
    target = writable(builder)
    if target is None or not is_clear_cut(builder.get(target)):
        return None
    mask = builder.choose(("{0} > 0", "{0} <= 0", "{0} != 0")).format(target)
    value = value_for(builder, target, ()) if builder.chance(40) else builder.scalar()
    if builder.chance(25) and builder.has_room():
        return Step("masked_fill", f"{builder.new_name()} = {target}.masked_fill({mask}, {value})")
    return Step("masked_fill_", f"{target}.masked_fill_({mask}, {value})")


@operation("in_place_view", 3)
def in_place_view(builder: Builder) -> Step | None:
    target = builder.tensor(lambda t: t.dim() < 3 and not (t.is_leaf and t.requires_grad), percent_any=10)
    if target is None:
        return None
    rank = builder.get(target).dim()
    calls = [f"transpose_({builder.dimension(rank)}, {builder.dimension(rank)})", "squeeze_()"]
    calls += [f"unsqueeze_({builder.dimension(rank + 1)})", f"squeeze_({builder.dimension(rank)})"]
    if rank <= 2:
        calls.append("t_()")
    call = builder.choose(calls)
    return Step(call.split("(")[0], f"{target}.{call}")


@operation("detach_", 2)
def detach_in_place(builder: Builder) -> str | None:
    target = builder.tensor()
    return None if target is None else f"{target}.detach_()"


@operation("write_through_data", 2)
def write_through_data(builder: Builder) -> str | None:
    target = builder.tensor(is_tame)
    if target is None:
        return None
    forms = ("{0}.data.mul_(2)", "{0}.detach().add_(1)", "{0}.data = {0}.data + 1")
    return builder.choose(forms).format(target)
