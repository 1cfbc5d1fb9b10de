"""The autograd side of a random program: modes, hooks, backward passes, gradients, flags."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .building import Builder, holds, is_clear_cut, is_floating
from .operations import operation, tensor_literal
from .steps import Step


def in_graph(tensor: torch.Tensor) -> bool:
    # Reading grad_fn brings that of a view up to date, which keeps torch from crashing: see hook_on.
    return tensor.requires_grad and (tensor.grad_fn is not None or tensor.is_leaf)


def is_differentiable_result(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and not tensor.is_leaf and is_floating(tensor)


def is_gradless_leaf(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf and not tensor.requires_grad


# -- modes --------------------------------------------------------------------------------------------------

GUARDS = (
    *(("no_grad", "torch.no_grad()"), ("no_grad", "torch.no_grad()"), ("enable_grad", "torch.enable_grad()")),
    *(("inference_mode", "torch.inference_mode()"), ("inference_mode", "torch.inference_mode(False)")),
    ("set_grad_enabled", "torch.set_grad_enabled(False)"),
    *(("saved_tensors_hooks", "torch.autograd.graph.saved_tensors_hooks(pack, unpack)"),) * 3,
    ("saved_tensors_hooks", "torch.autograd.graph.saved_tensors_hooks(pack_doubled, unpack_halved)"),
)


@operation("enter", 8)
def enter(builder: Builder) -> Step | None:
    if len(builder.open_guards) >= 3:
        return None
    name, source = builder.choose(GUARDS)
    return Step(f"enter {name}", source, enters=builder.new_name("guard"))


@operation("exit", 6)
def exit_guard(builder: Builder) -> Step | None:
    return Step("exit", "", exits=builder.open_guards[-1]) if builder.open_guards else None


# -- hooks --------------------------------------------------------------------------------------------------


@operation("tensor_hook", 6)
def tensor_hook(builder: Builder) -> Step | None:
    target = builder.tensor(in_graph, percent_any=4)
    if target is None:
        return None
    event = builder.new_name("hook")
    results = ("", "", ", grad * 2", ", grad.clone()", ", grad.detach() + 1")
    body = f'record("{event}", grad{builder.choose(results)})'
    handle = builder.new_name("handle")
    # See hook_on; where every step is watched, grad_fn is read all the time (unless even that raises).
    safe = builder.watched and holds(lambda t: t.grad_fn is None or True, builder.get(target))
    call = f"{target}.register_hook(" if safe else f"hook_on({target}, "
    return Step("register_hook", f"{handle} = {call}lambda grad: {body})")


@operation("busy_hook", 5)
def busy_hook(builder: Builder) -> Step | None:
    """A hook that registers, removes or queues something while backward runs."""
    target, other = builder.tensor(in_graph), builder.tensor(in_graph)
    if target is None or other is None or not holds(lambda t: t.grad_fn is None or True, builder.get(target)):
        return None
    event, handles = builder.new_name("hook"), builder.handles()
    forms = [
        f'register_hook(lambda grad: record_and_hook("{event}", grad, {other}))',
        f'register_hook(lambda grad: record_and_hook("{event}", grad, {target}))',
        f'register_hook(lambda grad: record_and_queue(torch, "{event}", grad))',
    ]
    if handles:
        forms.append(f'register_hook(lambda grad: record_and_remove("{event}", grad, {builder.choose(handles)}))')
    if not builder.get(other).is_leaf:
        forms.append(f'register_hook(lambda grad: record_and_retain("{event}", grad, {other}))')
    if not builder.get(target).is_leaf:
        node = f"{target}.grad_fn"
        forms += [
            f'grad_fn.register_prehook(lambda grads: record_and_hook_node("{event}", grads, {node}))',
            f'grad_fn.register_hook(lambda inputs, outputs: record_and_hook_node("{event}", inputs, {node}))',
        ]
    call = builder.choose(forms)
    inner = call.removeprefix("register_hook(")
    call = f"{target}.{call}" if inner == call else f"hook_on({target}, {inner}"
    return Step("busy hook", f"{builder.new_name('handle')} = {call}")


@operation("retain_grad", 4)
def retain_grad(builder: Builder) -> str | None:
    target = builder.tensor(lambda t: t.requires_grad and not t.is_leaf, percent_any=8)
    return None if target is None else f"{target}.retain_grad()"


@operation("post_accumulate_hook", 3)
def post_accumulate_hook(builder: Builder) -> Step | None:
    target = builder.tensor(lambda t: t.requires_grad and t.is_leaf, percent_any=5)
    if target is None:
        return None
    event = builder.new_name("hook")
    body = builder.choose((f'record("{event}", leaf.grad)', f'record_and_clear("{event}", leaf)'))
    call = f"{target}.register_post_accumulate_grad_hook(lambda leaf: {body})"
    return Step("post_accumulate_hook", f"{builder.new_name('handle')} = {call}")


@operation("node_hook", 4)
def node_hook(builder: Builder) -> Step | None:
    target = builder.tensor(lambda t: t.requires_grad and not t.is_leaf, percent_any=2)
    if target is None:
        return None
    event = builder.new_name("hook")
    handle = builder.new_name("handle")
    name, hook = builder.choose(
        (
            ("node hook", f'register_hook(lambda inputs, outputs: record_all("{event}", inputs, outputs))'),
            ("node hook", f'register_hook(lambda inputs, outputs: record_tripled("{event}", inputs))'),
            ("node prehook", f'register_prehook(lambda outputs: record_all("{event}", outputs))'),
            ("node prehook", f'register_prehook(lambda outputs: record_tripled("{event}", outputs))'),
        )
    )
    return Step(name, f"{handle} = {target}.grad_fn.{hook}")


@operation("multi_grad_hook", 1)
def multi_grad_hook(builder: Builder) -> Step | None:
    targets = some_of(builder, builder.tensors(in_graph))
    if not targets or not builder.watched:  # see hook_on
        return None
    event = builder.new_name("hook")
    handle = builder.new_name("handle")
    body, mode = builder.choose(
        ((f'record_all("{event}", grads)', "all"), (f'record("{event}", grads)', "any")),
    )
    arguments = f'{listed(targets)}, lambda grads: {body}, mode="{mode}"'
    return Step("multi_grad_hook", f"{handle} = torch.autograd.graph.register_multi_grad_hook({arguments})")


@operation("remove_hook", 2)
def remove_hook(builder: Builder) -> str | None:
    handles = builder.handles()
    return f"{builder.choose(handles)}.remove()" if handles else None


# -- backward -----------------------------------------------------------------------------------------------


def some_of(builder: Builder, names: Sequence[str]) -> list[str]:
    """One to three of the names, in any order, without repetition."""
    remaining = list(names)
    chosen = []
    for _ in range(builder.choose((1, 1, 2, 2, 3))):
        if remaining:
            chosen.append(remaining.pop(builder.integer(0, len(remaining) - 1)))
    return chosen


def listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def gradient_for(builder: Builder, output: str) -> str:
    """Source of a gradient for that output; None where torch can make one itself."""
    tensor = builder.get(output)
    if tensor.numel() == 1 and builder.chance(40):
        return "None"
    if builder.chance(4):
        return builder.choose(("None", builder.tensor() or "None", "torch.ones(5, dtype=torch.float64)"))
    matching = builder.tensors(lambda t: t.shape == tensor.shape and t.dtype == tensor.dtype)
    if builder.chance(25) and matching:
        return builder.choose(matching)
    extra = ", requires_grad=True" if builder.chance(12) else ""
    if builder.chance(40):
        return tensor_literal(builder, tensor.shape, str(tensor.dtype).split(".")[1], extra)
    return f"torch.ones_like({output}{extra})"


def graph_flags(builder: Builder) -> list[str]:
    flags = builder.choose(("", "", "retain_graph=True", "retain_graph=True", "create_graph=True"))
    if builder.chance(3):
        flags = "create_graph=True, retain_graph=False"
    return [flags] if flags else []


@operation("backward", 14)
def backward(builder: Builder) -> str | None:
    output = builder.tensor(is_differentiable_result, percent_any=3) or builder.tensor(in_graph)
    if output is None:
        return None
    arguments = graph_flags(builder)
    if builder.chance(15):
        inputs = some_of(builder, builder.tensors(in_graph if builder.chance(90) else None))
        if inputs:
            arguments.append(f"inputs={listed(inputs)}")
    if builder.chance(35):
        return f"{output}.sum().backward({', '.join(arguments)})"
    gradient = gradient_for(builder, output)
    if gradient != "None":
        arguments.insert(0, builder.choose((gradient, f"gradient={gradient}")) if arguments else gradient)
    return f"{output}.backward({', '.join(arguments)})"


@operation("backward_several", 3)
def backward_several(builder: Builder) -> str | None:
    outputs = some_of(builder, builder.tensors(is_differentiable_result if builder.chance(90) else in_graph))
    if not outputs:
        return None
    gradients = [gradient_for(builder, output) for output in outputs]
    arguments = ["".join((listed(outputs), ", ", listed(gradients))), *graph_flags(builder)]
    return f"torch.autograd.backward({', '.join(arguments)})"


@operation("autograd.grad", 10)
def autograd_grad(builder: Builder) -> str | None:
    outputs = some_of(builder, builder.tensors(is_differentiable_result if builder.chance(90) else in_graph))
    candidates = builder.tensors(in_graph if builder.chance(95) else None)
    inputs = some_of(builder, candidates)
    if not outputs or not inputs or not builder.has_room():
        return None
    gradients = [gradient_for(builder, output) for output in outputs]
    arguments = [listed(outputs), listed(inputs), listed(gradients), *graph_flags(builder)]
    if builder.chance(55):
        arguments.append("allow_unused=True")
    if builder.chance(12):
        arguments.append("materialize_grads=True")
    return f"{builder.new_names(len(inputs))} = torch.autograd.grad({', '.join(arguments)})"


# -- gradients and flags ------------------------------------------------------------------------------------


@operation("grad field", 6)
def grad_field(builder: Builder) -> Step | None:
    with_grad = builder.tensors(lambda t: t.is_leaf and t.grad is not None)
    target = builder.choose(with_grad) if with_grad and builder.chance(85) else builder.tensor(in_graph)
    if target is None:
        return None
    choice = builder.integer(0, 7)
    if choice <= 1:
        return Step("grad = None", f"{target}.grad = None")
    if choice == 2 and with_grad:
        return Step("grad.zero_", f"{target}.grad.zero_()")
    if choice <= 4:
        tensor = builder.get(target)
        fitting = builder.tensor(lambda t: t.shape == tensor.shape and t.dtype == tensor.dtype, percent_any=8)
        value = fitting if fitting and builder.chance(35) else f"torch.ones_like({target})"
        return Step("grad = tensor", f"{target}.grad = {value}")
    if choice <= 6 and builder.has_room() and with_grad:
        return Step("take grad", f"{builder.new_name()} = {target}.grad")
    return Step("read grad", f"value = {target}.grad")


@operation("requires_grad", 5)
def requires_grad(builder: Builder) -> Step | None:
    target = builder.tensor(is_gradless_leaf if builder.chance(60) else None, percent_any=10)
    if target is None:
        return None
    forms = ("{0}.requires_grad_()", "{0}.requires_grad_()", "{0}.requires_grad = True")
    if builder.chance(25):
        forms = ("{0}.requires_grad_(False)", "{0}.requires_grad = False")
    form = builder.choose(forms)
    return Step(form[4:], form.format(target))


@operation("read", 3)
def read(builder: Builder) -> Step | None:
    target = builder.tensor()
    if target is None:
        return None
    tensor = builder.get(target)
    methods = ["len({0})", "{0}.grad_fn", "{0}.tolist()", "{0}.numpy().sum()"]
    single = tensor.numel() == 1 or builder.chance(5)
    if single:
        methods += ["{0}.item()", "float({0})"]
    if is_clear_cut(tensor):  # printing and truncation show rounding
        methods += ["repr({0})", "repr({0})", *(["bool({0})", "int({0})"] if single else [])]
    method = builder.choose(methods)
    return Step(f"read {method.format('x')}", f"value = {method.format(target)}")


@operation("delete", 1)
def delete(builder: Builder) -> str | None:
    target = builder.tensor()
    return None if target is None else f"del {target}"
