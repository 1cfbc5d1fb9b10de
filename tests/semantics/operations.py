"""Operations of random programs that make new tensors: creation, arithmetic, reductions, views, indexing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from .building import LARGEST_TENSOR, Builder, is_clear_cut, is_floating, is_tame
from .steps import Step

# A maker writes one line (None: nothing suitable is alive, try something else).
Maker = Callable[[Builder], "str | Step | None"]

# Name, weight in the random choice, maker; the modules of operations add to it as they are imported.
OPERATIONS: dict[str, tuple[int, Maker]] = {}


def operation(name: str, weight: int) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        OPERATIONS[name] = (weight, make)
        return make

    return register


def broadcast(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """The common shape, or None if there is none or it would be too large."""
    rank = max(len(first), len(second))
    padded = [(1,) * (rank - len(sizes)) + tuple(sizes) for sizes in (first, second)]
    shape = []
    total = 1
    for left, right in zip(*padded, strict=True):
        if left != right and 1 not in (left, right):
            return None
        size = right if left == 1 else left
        shape.append(size)
        total *= size
    return tuple(shape) if total <= LARGEST_TENSOR else None


# -- creation -----------------------------------------------------------------------------------------------


def make_shape(builder: Builder) -> tuple[int, ...]:
    if builder.chance(35):  # the same shapes meet again and again, so that tensors fit together
        return builder.choose(((2,), (2, 3), (3,), (2, 2), ()))
    rank = builder.choose((0, 1, 1, 2, 2, 2, 3))
    return tuple(0 if builder.chance(4) else builder.choose((2, 3, 2, 3, 1)) for _ in range(rank))


def nested_values(builder: Builder, shape: Sequence[int], values: Sequence[str]) -> str:
    if not shape:
        return builder.choose(values)
    return "[" + ", ".join(nested_values(builder, shape[1:], values) for _ in range(shape[0])) + "]"


# Quarters are exact in binary, so sums and products of them agree to the last bit between libraries.
FLOAT_VALUES = ("1.0", "2.0", "-1.0", "0.5", "-0.5", "1.5", "-1.5", "0.25", "0.75", "3.0", "-2.0", "0.0")
INT_VALUES = ("1", "2", "0", "3", "-1", "-2")


def tensor_literal(builder: Builder, shape: Sequence[int], dtype: str, extra: str = "") -> str:
    values = INT_VALUES if dtype == "int64" else FLOAT_VALUES
    if 0 in shape[:-1]:  # nested lists cannot spell an empty outer dimension with sizes behind it
        return f"torch.zeros({tuple(shape)}, dtype=torch.{dtype}{extra})"
    if builder.chance(15):
        filled = builder.choose(("ones", "zeros"))
        return f"torch.{filled}({tuple(shape)}, dtype=torch.{dtype}{extra})"
    return f"torch.tensor({nested_values(builder, shape, values)}, dtype=torch.{dtype}{extra})"


def make_leaf(builder: Builder, differentiable: bool = False) -> Step:
    shape = make_shape(builder)
    dtype = "float64"
    if not differentiable and builder.chance(30):
        dtype = builder.choose(("float32", "int64"))
    requires_grad = differentiable or (dtype != "int64" and builder.chance(50)) or builder.chance(1)
    extra = ", requires_grad=True" if requires_grad else ""
    return Step("leaf", f"{builder.new_name()} = {tensor_literal(builder, shape, dtype, extra)}")


@operation("leaf", 8)
def leaf(builder: Builder) -> Step | None:
    return make_leaf(builder) if builder.has_room() else None


@operation("like", 2)
def like(builder: Builder) -> str | None:
    source = builder.tensor()
    if source is None or not builder.has_room():
        return None
    extra = ", requires_grad=True" if builder.chance(30) else ""
    call = builder.choose(("zeros_like({}{})", "ones_like({}{})", "full_like({}, 0.5{})"))
    return f"{builder.new_name()} = torch.{call.format(source, extra)}"


# -- elementwise --------------------------------------------------------------------------------------------

UNARY = (
    *("-{0}", "{0}.neg()", "torch.neg({0})", "{0}.sin()", "torch.sin({0})", "{0}.cos()", "{0}.tanh()"),
    *("torch.tanh({0})", "{0}.relu()", "torch.relu({0})", "{0}.sigmoid()", "torch.sigmoid({0})"),
    *("{0}.abs().sqrt()", "{0}.abs()", "abs({0})", "{0}.sqrt()", "{0}.double()", "{0}.float()"),
    *("{0}.to(torch.float64)", "{0}.clone()", "{0}.square()", "{0}.clamp(-1, 1)", "{0}.clamp(min=0)"),
)


def unary_name(form: str) -> str:
    """``{0}.abs().sqrt()`` is an abs.sqrt, ``-{0}`` a neg."""
    return re.sub(r"\(.*?\)|\{0\}\.?|torch\.|-", "", form) or "neg"


@operation("unary", 10)
def unary(builder: Builder) -> str | Step | None:
    source = builder.tensor(is_tame if builder.chance(20) else lambda t: is_floating(t) and is_tame(t))
    if source is None or not builder.has_room():
        return None
    form = builder.choose(UNARY)
    if builder.chance(15) and is_tame(builder.get(source), 4.0):
        form = builder.choose(("{0}.exp()", "torch.exp({0})"))
    if any(word in form for word in ("relu", "abs", "sqrt", "clamp")) and not is_clear_cut(builder.get(source)):
        return None
    return Step(unary_name(form), f"{builder.new_name()} = {form.format(source)}")


BINARY = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} * {1}", "torch.add({0}, {1}, alpha=2)", "{0}.sub({1})"),
    *("{0}.mul({1})", "torch.mul({0}, {1})", "torch.sub({0}, {1}, alpha=0.5)", "{0}.add({1})", "{0} / {1}"),
    *("torch.div({0}, {1})", "torch.maximum({0}, {1})", "torch.minimum({0}, {1})"),
    *("torch.where({0} > {1}, {0}, {1})", "torch.where({0} > 0, {0}, {1})", "{0}.where({1} < 1, {1})"),
)
BINARY_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


def binary_name(form: str) -> str:
    for word in ("where", "maximum", "minimum", "add", "sub", "mul", "div"):
        if word in form:
            return word
    return next(BINARY_NAMES[sign] for sign in BINARY_NAMES if f" {sign} " in form)


@operation("binary", 14)
def binary(builder: Builder) -> Step | None:
    if not builder.has_room():
        return None
    left = builder.tensor(is_tame)
    if left is None:
        return None
    shape = builder.get(left).shape
    right = builder.tensor(lambda t: is_tame(t) and broadcast(shape, t.shape) is not None, percent_any=4)
    if right is None or builder.get(right).numel() * builder.get(left).numel() > 4 * LARGEST_TENSOR:
        return None
    form = builder.choose(BINARY)
    if any(word in form for word in ("max", "min", "where")):
        clear = is_clear_cut(builder.get(left), builder.get(right))
    else:
        clear = ("/" not in form and "div" not in form) or is_clear_cut(builder.get(right))
    if not clear:
        return None
    return Step(binary_name(form), f"{builder.new_name()} = {form.format(left, right)}")


WITH_SCALAR = (
    *("{0} + {1}", "{1} + {0}", "{0} - {1}", "{1} - {0}", "{0} * {1}", "{1} * {0}", "{0} / {1}", "{1} / {0}"),
    *("torch.where({0} > 0, {0}, {1})", "torch.where({0} > 0, {1}, {0})", "torch.add({0}, {1}, alpha=2)"),
    *("{0}.mul({1})", "torch.sub({0}, {1})", "torch.div({0}, {1})"),
)


@operation("scalar_arithmetic", 8)
def scalar_arithmetic(builder: Builder) -> Step | None:
    source = builder.tensor(is_tame)
    if source is None or not builder.has_room():
        return None
    form = builder.choose(WITH_SCALAR)
    if ("where" in form or form == "{1} / {0}") and not is_clear_cut(builder.get(source)):
        return None
    name = f"{binary_name(form)} with scalar"
    return Step(name, f"{builder.new_name()} = {form.format(source, builder.scalar())}")


@operation("pow", 3)
def power(builder: Builder) -> str | None:
    source = builder.tensor(is_tame)
    if source is None or not builder.has_room():
        return None
    forms = ("{0} ** 2", "{0}.pow(3)", "torch.pow({0}, 2)", "{0} ** 0", "{0} ** 1", "{0} ** -1", "2 ** {0}")
    form = builder.choose(forms)
    if form == "{0} ** -1" and not is_clear_cut(builder.get(source)):
        return None
    if form == "2 ** {0}" and not is_tame(builder.get(source), 6.0):
        form = "{0} ** 2"
    return f"{builder.new_name()} = {form.format(source)}"


@operation("compare", 2)
def comparison(builder: Builder) -> str | None:
    source = builder.tensor(is_clear_cut)
    if source is None or not builder.has_room():
        return None
    form = builder.choose(("{0} > 0", "{0} == {0}", "{0} <= 1.0", "{0}.ne(0)"))
    return f"{builder.new_name()} = {form.format(source)}"


# -- reductions, matrix products, joining -------------------------------------------------------------------


def dimension_arguments(builder: Builder, tensor: torch.Tensor, several: bool) -> str:
    dim: object = builder.dimension(tensor.dim())
    if several and tensor.dim() >= 2 and builder.chance(35):
        first = builder.integer(0, tensor.dim() - 2)
        dim = builder.choose(((first, first + 1), (first + 1, first), (-1, 0), (0, -1)))
        if builder.chance(3):
            dim = (0, 0)
    keepdim = ", keepdim=True" if builder.chance(35) else ""
    return f"dim={dim}{keepdim}"


@operation("reduction", 8)
def reduction(builder: Builder) -> Step | None:
    source = builder.tensor(is_floating, percent_any=10)
    if source is None or not builder.has_room():
        return None
    tensor = builder.get(source)
    name = builder.choose(("sum", "mean", "amax", "amin", "max", "min"))
    if name not in ("sum", "mean") and not is_clear_cut(tensor):
        name = "sum"
    target = builder.new_name()
    if builder.chance(35):
        return Step(name, f"{target} = {source}.{name}()")
    if name in ("max", "min"):
        arguments = dimension_arguments(builder, tensor, several=False)
        call = builder.choose((f"{source}.{name}({arguments})", f"torch.{name}({source}, {arguments})"))
        return Step(f"{name} over dim", f"{target}, {builder.new_name()} = {call}")
    arguments = dimension_arguments(builder, tensor, several=True)
    call = builder.choose((f"{source}.{name}({arguments})", f"torch.{name}({source}, {arguments})"))
    return Step(name, f"{target} = {call}")


def can_multiply(left: torch.Tensor, right: torch.Tensor) -> bool:
    if not left.dim() or not right.dim() or left.dtype != right.dtype:
        return False
    if left.shape[-1] != right.shape[-2 if right.dim() > 1 else 0]:
        return False
    return broadcast(left.shape[:-2], right.shape[:-2]) is not None


@operation("matmul", 5)
def matmul(builder: Builder) -> Step | None:
    left = builder.tensor(lambda t: t.dim() > 0 and is_floating(t) and is_tame(t), percent_any=4)
    if left is None or not builder.has_room():
        return None
    tensor = builder.get(left)
    right = builder.tensor(lambda t: can_multiply(tensor, t) and is_tame(t), percent_any=3)
    target = builder.new_name()
    if right is None:
        return Step("matmul", f"{target} = {left} @ {left}.mT") if tensor.dim() >= 2 else None
    forms = ["{0} @ {1}", "torch.matmul({0}, {1})", "{0}.matmul({1})"]
    ranks = (tensor.dim(), builder.get(right).dim())
    special = {(1, 1): "torch.dot({0}, {1})", (2, 1): "torch.mv({0}, {1})", (2, 2): "torch.mm({0}, {1})"}
    forms.append(special.get(ranks, "torch.bmm({0}, {1})" if ranks == (3, 3) else forms[0]))
    form = builder.choose(forms)
    name = "matmul" if form in forms[:3] else form[len("torch.") :].split("(")[0]
    return Step(name, f"{target} = {form.format(left, right)}")


@operation("join", 5)
def join(builder: Builder) -> Step | None:
    first = builder.tensor(lambda t: t.numel() <= LARGEST_TENSOR // 2)
    if first is None or not builder.has_room():
        return None
    tensor = builder.get(first)
    shape = tensor.shape
    others = builder.tensors(lambda t: t.shape == shape)
    if builder.chance(4):
        others = builder.tensors(lambda t: t.numel() <= LARGEST_TENSOR // 2)
    parts = [first] + [builder.choose(others) for _ in range(builder.integer(0, 2))]
    name = "stack" if not shape and not builder.chance(4) else builder.choose(("cat", "stack"))
    dim = builder.dimension(tensor.dim() + (name == "stack"))
    return Step(name, f"{builder.new_name()} = torch.{name}([{', '.join(parts)}], dim={dim})")


@operation("scan", 4)
def scan(builder: Builder) -> Step | None:
    source = builder.tensor(is_floating, percent_any=10)
    if source is None or not builder.has_room():
        return None
    dim = builder.dimension(builder.get(source).dim())
    target = builder.new_name()
    name = builder.choose(("cumsum", "sort", "argsort"))
    if not is_clear_cut(builder.get(source)):
        name = "cumsum"
    if name == "sort":
        extra = builder.choose(("", ", descending=True", ", stable=True"))
        return Step(name, f"{target}, {builder.new_name()} = {source}.sort(dim={dim}{extra})")
    return Step(name, f"{target} = {source}.{name}(dim={dim})")


# -- views --------------------------------------------------------------------------------------------------


def other_shape(builder: Builder, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with as many elements, possibly with one size left to infer."""
    total = 1
    for size in shape:
        total *= size
    choices: list[tuple[int, ...]] = [(total,), (1, total), (total, 1), tuple(reversed(shape)), tuple(shape)]
    choices += [(divisor, total // divisor) for divisor in (2, 3) if total and total % divisor == 0]
    if total:
        choices += [(-1,), (1, -1), (-1, 1)]
    if builder.chance(3):
        choices = [(total + 1,), (-1, 5), (-1, -1)]
    return builder.choose(choices)


def view_with_shape(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    shape = other_shape(builder, tensor.shape)
    return builder.choose((f"{source}.view({shape})", f"{source}.reshape({shape})"))


def view_permuted(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    rank = tensor.dim()
    if rank == 3 and builder.chance(50):
        return f"{source}.permute({builder.choose(((2, 0, 1), (1, 0, 2), (0, -1, 1), (2, 1, 0)))})"
    if rank == 2 and builder.chance(50):
        return builder.choose((f"{source}.T", f"{source}.t()", f"{source}.mT", f"{source}.permute(1, 0)"))
    return f"{source}.transpose({builder.dimension(rank)}, {builder.dimension(rank)})"


def view_expanded(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    shape = [builder.integer(1, 3) if size == 1 else builder.choose((size, -1)) for size in tensor.shape]
    if len(shape) < 3 and tensor.numel() * 2 <= LARGEST_TENSOR and builder.chance(50):
        shape.insert(0, builder.choose((2, 1)))
    return f"{source}.expand({tuple(shape)})"


def view_squeezed(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    dim = builder.dimension(tensor.dim())
    longer = builder.dimension(tensor.dim() + 1)
    return source + builder.choose((".squeeze()", f".squeeze({dim})", f".unsqueeze({longer})"))


def view_indexed(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    return f"{source}[{basic_index(builder, tensor)}]"


def view_narrowed(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    dim = builder.dimension(tensor.dim())
    size = tensor.shape[dim] if -tensor.dim() <= dim < tensor.dim() else 1
    start = builder.integer(0, size)
    if builder.chance(50):
        return f"{source}.narrow({dim}, {start}, {builder.integer(0, size - start)})"
    return f"{source}.select({dim}, {builder.position(size)})"


def view_diagonal(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    if tensor.dim() < 2 and not builder.chance(5):
        return view_indexed(builder, source, tensor)
    return builder.choose((f"{source}.diagonal()", f"{source}.diagonal(1)", f"{source}.diagonal(0, -1, 0)"))


def view_same(builder: Builder, source: str, tensor: torch.Tensor) -> str:
    forms = ("flatten()", "flatten(0, -1)", "detach()", "data", "contiguous()", "ravel()", "view_as({0})")
    return f"{source}.{builder.choose(forms)}".format(source)


VIEWS = (
    *(view_with_shape, view_permuted, view_expanded, view_squeezed, view_indexed, view_narrowed),
    *(view_diagonal, view_same, view_indexed, view_same),
)


def basic_index(builder: Builder, tensor: torch.Tensor) -> str:
    """Integers, slices, None and the ellipsis."""
    if builder.chance(12) or (tensor.dim() == 0 and not builder.chance(4)):
        return builder.choose(("...", "None", "..., None"))
    parts = []
    for size in tensor.shape[: builder.integer(1, max(tensor.dim(), 1))] or (1,):
        parts.append(str(builder.position(size)) if builder.chance(50) else builder.slice_of(size))
    if builder.chance(8):
        parts.insert(0, "...")
    return ", ".join(parts)


def view_name(expression: str) -> str:
    """``t3.view((2, 2))`` is a view, ``t3[0]`` an index."""
    tail = expression.split(".", 1)[1] if expression[1:].split(".", 1)[0].isdigit() else ""
    return tail.split("(", 1)[0] or "index"


@operation("view", 18)
def view(builder: Builder) -> Step | None:
    source = builder.tensor()
    if source is None or not builder.has_room():
        return None
    expression = builder.choose(VIEWS)(builder, source, builder.get(source))
    return Step(view_name(expression), f"{builder.new_name()} = {expression}")


@operation("several_views", 5)
def several_views(builder: Builder) -> Step | None:
    source = builder.tensor(lambda t: t.dim() > 0)
    if source is None or not builder.has_room():
        return None
    tensor = builder.get(source)
    dim = builder.integer(0, tensor.dim() - 1)
    size = tensor.shape[dim]
    if size == 0:
        return None
    name, arguments, largest = builder.choose(
        (
            ("unbind", f"dim={dim}", 1),
            ("split", f"1, dim={dim}", 1),
            ("split", f"2, dim={dim}", 2),
            ("chunk", f"2, dim={dim}", -(-size // 2)),
            ("chunk", f"3, dim={dim}", -(-size // 3)),
        )
    )
    count = -(-size // largest)
    if builder.chance(25):
        return Step(name, f"{builder.new_name()} = torch.{name}({source}, {arguments})[{count - 1}]")
    return Step(name, f"{builder.new_names(count)} = {source}.{name}({arguments})")


# -- reading through indices --------------------------------------------------------------------------------


def positions(builder: Builder, size: int, unique: bool = False) -> str:
    if unique:
        return str([index for index in range(size) if builder.chance(60)])
    return str([builder.position(size) for _ in range(builder.integer(1, 3))])


@operation("index_read", 6)
def index_read(builder: Builder) -> Step | None:
    source = builder.tensor(lambda t: t.dim() > 0 and 0 not in t.shape)
    if source is None or not builder.has_room():
        return None
    tensor = builder.get(source)
    target = builder.new_name()
    dim = builder.integer(0, tensor.dim() - 1)
    chosen = positions(builder, tensor.shape[dim])
    front = positions(builder, tensor.shape[0])
    forms = [
        ("advanced index", f"{source}[{front}]"),
        ("advanced index", f"{source}[torch.tensor({front})]"),
        ("advanced index", f"{source}[..., {positions(builder, tensor.shape[-1])}]"),
        ("index_select", f"{source}.index_select({dim}, torch.tensor({chosen.replace('-', '')}))"),
    ]
    if is_clear_cut(tensor):
        forms.append(("mask index", f"{source}[{source} > 0]"))
    if tensor.dim() >= 2:
        forms.append(("advanced index", f"{source}[:, {positions(builder, tensor.shape[1])}]"))
        forms.append(("advanced index", f"{source}[torch.tensor([0]), torch.tensor([[0], [-1]])]"))
    smallest = [builder.integer(1, size) for size in tensor.shape]
    index = nested_values(builder, smallest, [str(place) for place in range(tensor.shape[dim])])
    forms.append(("gather", f"{source}.gather({dim}, torch.tensor({index}))"))
    name, expression = builder.choose(forms)
    return Step(name, f"{target} = {expression}")
