"""Views that are rarer, and custom Functions that return views, inputs and what they wrote."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .building import Builder, is_floating, is_tame
from .operations import operation, view_name
from .steps import Step

Form = Callable[[Builder, str, torch.Tensor], "str | None"]


def strided(builder: Builder, source: str, tensor: torch.Tensor) -> str | None:
    """Sizes and strides within the source, that no element is in twice."""
    if not tensor.is_contiguous() or tensor.numel() < 2:
        return None
    if tensor.numel() >= 4 and builder.chance(50):
        return f"{source}.as_strided((2, 2), (1, 2), {tensor.storage_offset() + tensor.numel() - 4})"
    count = (tensor.numel() + 1) // 2
    return f"{source}.as_strided(({count},), (2,), {tensor.storage_offset()})"


def unfolded(builder: Builder, source: str, tensor: torch.Tensor) -> str | None:
    dim = builder.dimension(tensor.dim())
    return f"{source}.unfold({dim}, {builder.choose((1, 2))}, 2)" if tensor.dim() in (1, 2) else None


def moved(builder: Builder, source: str, tensor: torch.Tensor) -> str | None:
    rank = tensor.dim()
    name = builder.choose(("movedim", "swapaxes", "moveaxis"))
    return f"{source}.{name}({builder.dimension(rank)}, {builder.dimension(rank)})"


def unflattened(builder: Builder, source: str, tensor: torch.Tensor) -> str | None:
    if not 0 < tensor.dim() < 3 or 0 in tensor.shape:
        return None
    return f"{source}.unflatten({builder.dimension(tensor.dim())}, {builder.choose(((1, -1), (-1, 1)))})"


def as_another_number(builder: Builder, source: str, tensor: torch.Tensor) -> str | None:
    """Through another kind of number and back, so that the pool stays real and readable."""
    forms = ["{0}.real", "{0}.view({0}.dtype)"]
    if tensor.dtype == torch.float64:
        forms.append("{0}.view(torch.int64).view(torch.float64)")
    pairs = tensor.dim() > 0 and tensor.shape[-1] == 2 and tensor.stride()[-1] == 1
    even = all(stride % 2 == 0 for stride in tensor.stride()[:-1]) and tensor.storage_offset() % 2 == 0
    if is_floating(tensor) and pairs and even and 0 not in tensor.shape:
        forms += ["torch.view_as_complex({0}).real", "torch.view_as_complex({0}).imag"]
        forms += ["torch.view_as_real(torch.view_as_complex({0}))"]
    return builder.choose(forms).format(source)


FORMS: tuple[Form, ...] = (strided, unfolded, moved, unflattened, as_another_number, as_another_number)


@operation("rarer_view", 8)
def rarer_view(builder: Builder) -> Step | None:
    source = builder.tensor()
    if source is None or not builder.has_room():
        return None
    expression = builder.choose(FORMS)(builder, source, builder.get(source))
    if expression is None:
        return None
    name = "complex view" if "view_as_complex" in expression else view_name(expression)
    return Step(name, f"{builder.new_name()} = {expression}")


@operation("several_rarer_views", 3)
def several_rarer_views(builder: Builder) -> Step | None:
    source = builder.tensor(lambda t: t.dim() > 0 and t.shape[0] > 1)
    if source is None or not builder.has_room():
        return None
    rows = builder.get(source).shape[0]
    name, arguments = builder.choose(
        (
            ("tensor_split", "2"),
            ("tensor_split", "(1,)"),
            ("split_with_sizes", f"(1, {rows - 1})"),
            ("unsafe_chunk", "2"),
            ("unsafe_split", f"{rows - 1}"),
        )
    )
    if name.startswith("unsafe") and torch.is_inference_mode_enabled():
        return None  # there torch makes views with versions of their own
    return Step(name, f"{builder.new_names(2)} = {source}.{name}({arguments})")


KINDS = (
    *("input", "view", "slice", "new", "saved input", "saved output", "dirty", "dirty", "two", "two views", "constant"),
    "none",
)


@operation("custom", 8)
def custom(builder: Builder) -> Step | None:
    source = builder.tensor(lambda t: is_floating(t) and is_tame(t), percent_any=3)
    if source is None or not builder.has_room():
        return None
    kind = builder.choose(KINDS)
    names = builder.new_names(2) if kind in ("two", "two views", "constant") else builder.new_name()
    event = builder.new_name("custom")
    return Step(f"custom {kind}", f'{names} = custom(torch, "{event}", "{kind}", {source})')
