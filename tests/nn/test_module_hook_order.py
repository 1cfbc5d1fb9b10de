"""Hooks of modules: in which order they run, what they are given and may return, and what double backward does with them."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("module_hook_order")


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def times(torch: Any, factor: float = 2.0) -> Any:
    class Times(torch.nn.Module):
        def forward(self, x):
            return x * factor

    return Times()


def several(torch: Any) -> Any:
    class Several(torch.nn.Module):
        def forward(self, a, n, b=None, *, c=None, flag=False):
            out = a * n
            if b is not None:
                out = out + b
            if c is not None:
                out = out * c
            return (out, "text", out * 2) if flag else out

    return Several()


@program
def all_hooks_of_a_module(torch):
    log, module, x = [], times(torch), leaf(torch)
    module.register_forward_pre_hook(lambda m, i: log.append(["forward pre", shown(i)]) or (i[0] * 2,))
    module.register_forward_hook(lambda m, i, o: log.append(["forward", shown(i), shown(o)]) or o * 3)
    module.register_full_backward_pre_hook(lambda m, g: log.append(["backward pre", shown(g)]) or (g[0] * 5,))
    module.register_full_backward_hook(lambda m, i, o: log.append(["backward", shown(i), shown(o)]) or (i[0] * 7,))
    y = module(x)
    y.sum().backward()
    return log, y, x.grad


@program
def first_and_last_hooks(torch):
    log, module, x = [], times(torch), leaf(torch)
    for k, prepend in enumerate((False, True, False, True)):
        module.register_forward_pre_hook(lambda m, i, k=k: log.append(["forward pre", k]), prepend=prepend)
        module.register_forward_hook(lambda m, i, o, k=k: log.append(["forward", k]), prepend=prepend)
        module.register_full_backward_pre_hook(lambda m, g, k=k: log.append(["backward pre", k]), prepend=prepend)
        module.register_full_backward_hook(lambda m, i, o, k=k: log.append(["backward", k]), prepend=prepend)
    module(x).sum().backward()
    return log


@program
def nested_modules(torch):
    log, x = [], leaf(torch)
    net = torch.nn.Sequential(times(torch, 2.0), torch.nn.Sequential(times(torch, 3.0), times(torch, 5.0)))
    for name, module in net.named_modules():
        module.register_full_backward_pre_hook(lambda m, g, name=name: log.append(["pre", name, shown(g)]))
        module.register_full_backward_hook(lambda m, i, o, name=name: log.append(["post", name, shown(i), shown(o)]))
    net(x).sum().backward()
    return log, x.grad


@program
def hooks_for_all_modules(torch):
    log, x = [], leaf(torch)
    common = torch.nn.modules.module
    module = times(torch)
    handles = [
        common.register_module_forward_pre_hook(lambda m, i: log.append("all forward pre")),
        common.register_module_forward_hook(lambda m, i, o: log.append("all forward")),
        common.register_module_full_backward_pre_hook(lambda m, g: log.append("all backward pre")),
        common.register_module_full_backward_hook(lambda m, i, o: log.append("all backward")),
    ]
    module.register_forward_pre_hook(lambda m, i: log.append("forward pre"))
    module.register_forward_hook(lambda m, i, o: log.append("forward"))
    module.register_full_backward_pre_hook(lambda m, g: log.append("backward pre"))
    module.register_full_backward_hook(lambda m, i, o: log.append("backward"))
    try:
        module(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    module(x).sum().backward()
    return log


@program
def inputs_that_are_no_tensors(torch):
    found = []
    for flag in (False, True):
        log, module = [], several(torch)
        module.register_full_backward_pre_hook(lambda m, g, log=log: log.append(["pre", shown(g)]))
        module.register_full_backward_hook(lambda m, i, o, log=log: log.append(["post", shown(i), shown(o)]))
        a, b, c = leaf(torch), leaf(torch), leaf(torch)
        out = module(a, 2, b, c=c, flag=flag)
        (out[0] + out[2] if flag else out).sum().backward()
        found.append([log, a.grad, b.grad, c.grad])
    return found


@program
def inputs_without_gradients(torch):
    log, module = [], several(torch)
    module.register_full_backward_hook(lambda m, i, o: log.append(["post", shown(i), shown(o)]))
    b = leaf(torch)
    module(torch.ones(3, dtype=torch.float64), 2, b).sum().backward()
    c = leaf(torch)
    module(torch.ones(3, dtype=torch.float64), 2, c=c).sum().backward()
    return log, b.grad, c.grad


@program
def one_of_several_outputs_used(torch):
    log, module, x = [], several(torch), leaf(torch)
    module.register_full_backward_pre_hook(lambda m, g: log.append(["pre", shown(g)]))
    module.register_full_backward_hook(lambda m, i, o: log.append(["post", shown(i), shown(o)]))
    out = module(x, 2, flag=True)
    out[2].sum().backward()
    return log, x.grad


@program
def no_input_that_needs_a_gradient(torch):
    log = []
    module = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        module.weight.fill_(1.0)
    module.register_full_backward_pre_hook(lambda m, g: log.append(["pre", shown(g)]))
    module.register_full_backward_hook(lambda m, i, o: log.append(["post", shown(i), shown(o)]))
    seen = warned(lambda: module(torch.ones(3, 2, dtype=torch.float64)).sum().backward())
    return log, seen, module.weight.grad


@program
def output_of_another_kind(torch):
    class Odd(torch.nn.Module):
        def forward(self, x, kind):
            y = x * 2
            return {"dict": {"y": y}, "list": [y], "nested": (y, (y,)), "number": 3, "none": None}[kind]

    found = []
    for kind in ("dict", "list", "nested", "number", "none"):
        log, module, x = [], Odd(), leaf(torch)
        module.register_full_backward_hook(lambda m, i, o, log=log: log.append([shown(i), shown(o)]))
        out = caught(module, x, kind)
        if isinstance(out, dict):
            caught(out["y"].sum().backward)
        elif isinstance(out, (list, tuple)):
            caught(out[0].sum().backward)
        found.append([kind, out if isinstance(out, Exception) else type(out).__name__, log, x.grad])
    return found


@program
def results_of_backward_hooks_that_do_not_fit(torch):
    found = []
    ones = torch.ones(3, dtype=torch.float64)
    for result in (ones, (ones,), (ones, ones), (), "a", [ones], (torch.ones(2),), (None,), 1):
        for kind in ("register_full_backward_hook", "register_full_backward_pre_hook"):
            module, x = times(torch), leaf(torch)

            def hook(*_, result=result):
                return result

            getattr(module, kind)(hook)
            y = module(x)
            found.append([kind, caught(y.sum().backward), x.grad])
    return found


@program
def double_backward_through_hooks(torch):
    log, x = [], leaf(torch)

    class Cube(torch.nn.Module):
        def forward(self, x):
            return x**3

    module = Cube()
    module.register_full_backward_pre_hook(
        lambda m, g: log.append(["pre", [t.requires_grad for t in g]]) or (g[0] * 2,)
    )
    module.register_full_backward_hook(lambda m, i, o: log.append(["post", shown(i), shown(o)]) or (i[0] * x,))
    y = module(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    log.append("second")
    (h,) = torch.autograd.grad(g.sum(), x)
    return log, g, h


@program
def double_backward_of_a_layer(torch):
    log, x = [], leaf(torch, 1.0, 2.0)
    module = torch.nn.Linear(2, 2, dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        module.bias.zero_()
    module.register_full_backward_hook(lambda m, i, o: log.append([shown(i), shown(o)]))
    y = torch.tanh(module(x) * 0.1)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    log.append("second")
    g.sum().backward()
    return log, g, x.grad, module.weight.grad


@program
def a_module_used_twice(torch):
    log, module, x = [], times(torch), leaf(torch)
    module.register_full_backward_pre_hook(lambda m, g: log.append(["pre", shown(g)]))
    module.register_full_backward_hook(lambda m, i, o: log.append(["post", shown(i), shown(o)]))
    (module(x) + module(module(x))).sum().backward()
    return log, x.grad


@program
def hooks_removed_and_added_meanwhile(torch):
    log, module, x = [], times(torch), leaf(torch)

    def pre(m, g):
        log.append("pre")
        post.remove()
        m.register_full_backward_hook(lambda m, i, o: log.append("added"))

    module.register_full_backward_pre_hook(pre)
    post = module.register_full_backward_hook(lambda m, i, o: log.append("post"))
    module(x).sum().backward()
    log.append("again")
    module(x).sum().backward()
    return log


@program
def hooks_registered_after_forward(torch):
    log, module, x = [], times(torch), leaf(torch)
    y = module(x)
    module.register_full_backward_hook(lambda m, i, o: log.append("post"))
    y.sum().backward()
    return log


@program
def forward_hooks_that_come_and_go(torch):
    log, module, x = [], times(torch), leaf(torch)

    def first(m, i):
        log.append("first")
        handles[0].remove()
        m.register_forward_hook(lambda m, i, o: log.append("added"))

    module.register_forward_pre_hook(first)
    handles = [module.register_forward_pre_hook(lambda m, i: log.append("second"))]
    for _ in range(2):
        caught(module, x)
        log.append("end")
    return log


@program
def forward_hooks_with_keywords(torch):
    log, module, a = [], several(torch), leaf(torch)

    def pre(m, args, kwargs):
        log.append(["pre", shown(args), shown(kwargs)])
        return (args[0] * 2, args[1]), {**kwargs, "c": leaf(torch, 1.0, 1.0, 2.0)}

    def post(m, args, kwargs, out):
        log.append(["post", shown(args), shown(kwargs), shown(out)])
        return out * 10

    module.register_forward_pre_hook(pre, with_kwargs=True)
    module.register_forward_hook(post, with_kwargs=True)
    return log, module(a, 3, b=leaf(torch)), log


@program
def forward_pre_hooks_that_return_oddly(torch):
    found = []
    for kwargs in (False, True):
        for result in (5, (5,), None, (), "ab", ((leaf(torch),), {}), ((leaf(torch),),), [leaf(torch)]):
            module = times(torch)

            def hook(*_, result=result):
                return result

            module.register_forward_pre_hook(hook, with_kwargs=kwargs)
            found.append(caught(module, leaf(torch)))
    return found


@program
def always_called_hooks(torch):
    log = []

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module = Fails()
    module.register_forward_hook(lambda m, i, o: log.append(["plain", shown(o)]))
    module.register_forward_hook(lambda m, i, o: log.append(["always", shown(o)]), always_call=True)
    return caught(module, leaf(torch)), log


@program
def always_called_hooks_that_fail(torch):
    log = []

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    def fail(m, i, o):
        log.append("always")
        raise KeyError("hook")

    module = Fails()
    module.register_forward_hook(fail, always_call=True)
    module.register_forward_hook(lambda m, i, o: log.append("second"), always_call=True)
    return warned(caught, module, leaf(torch)), log


@program
def a_failing_backward_hook(torch):
    module, x = times(torch), leaf(torch)

    def fail(*_):
        raise ValueError("no")

    handle = module.register_full_backward_hook(fail)
    first = caught(module(x).sum().backward)
    handle.remove()
    return first, x.grad, caught(module(x).sum().backward), x.grad


@program
def old_backward_hooks(torch):
    log, x = [], leaf(torch)
    module = times(torch)
    module.register_backward_hook(lambda m, i, o: log.append([shown(i), shown(o)]))
    module(x).sum().backward()
    return log, x.grad, caught(module.register_full_backward_hook, print)


@program
def old_and_new_backward_hooks(torch):
    module = times(torch)
    module.register_full_backward_hook(lambda m, i, o: None)
    return caught(module.register_backward_hook, print)


@program
def old_backward_hooks_that_warn(torch):
    class Two(torch.nn.Module):
        def forward(self, x):
            return x * 2 + x, x * 3

    class Long(torch.nn.Module):
        def forward(self, x):
            return (x * 2) + (x * 3)

    found = []
    for kind in (Two, Long):
        module = kind()
        module.register_backward_hook(lambda m, i, o: None)
        found.append(warned(module, leaf(torch)))
    return found


@program
def old_backward_hooks_on_odd_values(torch):
    class Pack(torch.nn.Module):
        def forward(self, x, kind):
            y = x * 2
            return {"dict": {"y": y}, "list": [y], "nested": (y, (y,)), "tensor": y}[kind]

    found = []
    for kind in ("dict", "list", "nested", "tensor"):
        log, module, x = [], Pack(), leaf(torch)
        module.register_backward_hook(lambda m, i, o, log=log: log.append([shown(i), shown(o)]))
        found.append([kind, warned(module, x, kind), warned(module, x * 1, kind)])
    plain = times(torch)
    plain.register_backward_hook(lambda m, i, o: None)
    return found, warned(plain, leaf(torch) * 1), warned(plain, leaf(torch)), warned(plain, torch.ones(3))


@program
def always_called_hooks_see_what_others_changed(torch):
    log, module, x = [], times(torch), leaf(torch)

    def fail(m, i, o):
        raise ValueError("no")

    module.register_forward_pre_hook(lambda m, i: (i[0] * 10,))
    module.register_forward_hook(lambda m, i, o: o * 2)
    module.register_forward_hook(fail)
    module.register_forward_hook(lambda m, i, o: log.append([shown(i), shown(o)]), always_call=True)
    return caught(module, x), log


@program
def a_forward_pre_hook_adds_backward_hooks(torch):
    log, module, x = [], times(torch), leaf(torch)
    module.register_forward_pre_hook(
        lambda m, i: m.register_full_backward_hook(lambda m, i, o: log.append("backward")) and None
    )
    module(x).sum().backward()
    log.append("again")
    module(x).sum().backward()
    return log


@program
def full_hooks_and_in_place(torch):
    found = []
    for kind in ("input", "output", "both"):
        net = torch.nn.Sequential(torch.nn.ReLU(inplace=kind != "output"), torch.nn.ReLU(inplace=kind != "input"))
        net[0].register_full_backward_hook(lambda m, i, o: None)
        x = leaf(torch)
        found.append([kind, caught(lambda net=net, x=x: net(x.clone()).sum().backward()), x.grad])
    return found


@program
def full_hook_and_a_written_output(torch):
    module, x = times(torch), leaf(torch)
    module.register_full_backward_hook(lambda m, i, o: None)
    y = module(x)
    return caught(y.mul_, 2), caught(lambda: (y + 0).mul_(2).sum().backward()), x.grad


@program
def full_hook_and_a_written_input(torch):
    class Writes(torch.nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x * 3

    module, x = Writes(), leaf(torch)
    module.register_full_backward_hook(lambda m, i, o: None)
    return caught(module, x * 1), caught(module, torch.ones(3))


@program
def nodes_of_a_hooked_module(torch):
    module, x = times(torch), leaf(torch)
    module.register_full_backward_hook(lambda m, i, o: None)
    y = module(x)
    names, node = [], y.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names, y.is_leaf, y._is_view()


@program
def hooks_and_no_grad(torch):
    log, module, x = [], times(torch), leaf(torch)
    module.register_full_backward_pre_hook(lambda m, g: log.append("pre"))
    module.register_full_backward_hook(lambda m, i, o: log.append("post"))
    with torch.no_grad():
        y = module(x)
    z = module(torch.ones(3))
    return y.requires_grad, z.requires_grad, log


@program
def hooks_and_chosen_inputs(torch):
    log, x = [], leaf(torch)
    net = torch.nn.Sequential(times(torch, 2.0), times(torch, 3.0))
    for k, module in enumerate(net):
        module.register_full_backward_pre_hook(lambda m, g, k=k: log.append(["pre", k]))
        module.register_full_backward_hook(lambda m, i, o, k=k: log.append(["post", k]))
    y = net[0](x)
    z = net[1](y)
    torch.autograd.grad(z.sum(), y, retain_graph=True)
    log.append("to x")
    z.sum().backward(inputs=(x,))
    return log, x.grad


test_as_torch, test_recording_is_torchs = program.tests()
