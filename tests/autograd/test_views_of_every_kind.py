"""Views of every kind written in place: gradients, versions, bases, retained gradients and hooks, and what is refused."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("views_of_every_kind")

KINDS = {
    "as_strided": lambda t: t.as_strided((2, 2), (1, 3), 1),
    "expand": lambda t: t.unsqueeze(0).expand(1, *t.shape),
    "expand more": lambda t: t[:1].expand(3, t.shape[1]),
    "diagonal": lambda t: t.diagonal(),
    "diagonal off": lambda t: t.diagonal(1),
    "squeeze": lambda t: t.unsqueeze(1).squeeze(),
    "squeeze dim": lambda t: t[:, :1].squeeze(1),
    "movedim": lambda t: t.movedim(0, 1),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "unfold over": lambda t: t.unfold(1, 2, 1),
    "narrow": lambda t: t.narrow(1, 1, 2),
    "select": lambda t: t.select(0, 1),
    "index": lambda t: t[1:, ::2],
    "transpose": lambda t: t.t(),
    "permute": lambda t: t.permute(1, 0),
    "view": lambda t: t.view(-1),
    "reshape": lambda t: t.reshape(2, -1),
    "flatten": lambda t: t.flatten(),
    "unflatten": lambda t: t.unflatten(0, (3, 1)),
    "swapaxes": lambda t: t.swapaxes(0, 1),
    "view_as": lambda t: t.view_as(t),
    "expand_as": lambda t: t.expand_as(t),
    "split": lambda t: t.split(1)[1],
    "chunk": lambda t: t.chunk(2)[1],
    "unbind": lambda t: t.unbind()[2],
    "tensor_split": lambda t: t.tensor_split(2)[0],
    "hsplit": lambda t: t.hsplit(2)[1],
    "vsplit": lambda t: t.vsplit(3)[1],
    "unsafe_split": lambda t: t.unsafe_split(1)[1],
    "unsafe_chunk": lambda t: t.unsafe_chunk(2)[1],
    "T": lambda t: t.T,
    "mT": lambda t: t.mT,
    "real": lambda t: t.real,
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "alias": lambda t: t[...],
    "contiguous": lambda t: t.contiguous(),
    "ravel": lambda t: t.ravel(),
    "broadcast_to": lambda t: t.broadcast_to((3, 4)),
}


def grid(torch: Any, grad: bool = True) -> Any:
    values = torch.arange(12, dtype=torch.float64).reshape(3, 4) / 4 + 1
    return values.clone().requires_grad_(grad)


def weights(torch: Any, like: Any) -> Any:
    return (torch.arange(like.numel(), dtype=torch.float64) + 1).reshape(like.shape)


def facts(t: Any) -> list[Any]:
    """What there is to see of a tensor's place among views."""
    base = caught(lambda: t._base)
    node = caught(lambda: t.grad_fn)
    return [
        t._is_view() if not isinstance(base, Exception) else base,
        None if base is None else list(base.shape) if not isinstance(base, Exception) else base,
        t._version,
        list(t.shape),
        list(t.stride()),
        t.storage_offset(),
        node if isinstance(node, Exception) else None if node is None else node.name(),
        caught(lambda: t.requires_grad),
        caught(lambda: t.is_leaf),
        caught(lambda: t.output_nr),
    ]


WRITABLE = {name: view for name, view in KINDS.items() if name != "unfold over"}  # whose elements overlap
FOLLOWED = {name: view for name, view in WRITABLE.items() if not name.startswith("unsafe")}


@program
def every_kind_of_a_recorded_base(torch):
    found = []
    for name, view in KINDS.items():
        b = grid(torch) * 1
        v = view(b)
        found.append([name, facts(v), v._base is b])
    return found


@program
def every_kind_of_a_leaf_and_of_a_constant(torch):
    found = []
    for name, view in WRITABLE.items():
        for grad in (True, False):
            b = grid(torch, grad)
            v = view(b)
            found.append([name, facts(v), v._base is b, caught(v.mul_, 2), facts(v), b._version])
    return found


@program
def every_kind_under_no_grad_and_inference(torch):
    found = []
    for name, view in FOLLOWED.items():
        for mode in (torch.no_grad, torch.inference_mode):
            for grad in (True, False):
                b = grid(torch, grad)
                with mode():
                    v = view(b)
                first = facts(v)
                error = caught(v.mul_, 2)
                found.append([name, mode.__name__, grad, first, error if isinstance(error, Exception) else None])
                found[-1] += [v._version, b._version, caught(lambda v=v: v.grad_fn)]
    return found


@program
def every_kind_written(torch):
    found = []
    for name, view in WRITABLE.items():
        x = grid(torch)
        b = x * 1
        v = view(b)
        error = caught(v.mul_, weights(torch, v))
        if isinstance(error, Exception):
            found.append([name, error, facts(v), facts(b)])
            continue
        seen = [facts(v), facts(b)]
        (b * b).sum().backward()
        found.append([name, seen, b, x.grad])
    return found


@program
def base_written_under_every_kind(torch):
    found = []
    for name, view in KINDS.items():
        x = grid(torch)
        b = x * 1
        v = view(b)
        b.mul_(weights(torch, b))
        seen = [facts(v), facts(b)]
        error = caught(lambda v=v, b=b: (v.sum() * b.sum()).backward())
        found.append([name, seen, error, x.grad])
    return found


@program
def views_of_views_written(torch):
    found = []
    names = (
        "expand",
        "diagonal",
        "squeeze dim",
        "narrow",
        "transpose",
        "split",
        "as_strided",
        "unfold",
        "real",
        "view",
    )
    for first in names:
        for second in names:
            x = grid(torch)
            b = x * 1
            v = KINDS[first](b)
            w = caught(KINDS[second], v)
            if isinstance(w, Exception):
                found.append([first, second, type(w)])
                continue
            z = w[...]
            error = caught(w.mul_, weights(torch, w))
            seen = [[t._version, caught(lambda t=t: t.grad_fn)] for t in (w, v, b, z)]
            ran = caught(lambda b=b, v=v, z=z: (b.sum() * v.sum() + z.sum()).backward())
            found.append([first, second, error if isinstance(error, Exception) else None, seen, ran, x.grad])
    return found


@program
def three_writes_through_a_chain(torch):
    x = grid(torch)
    b = x * 1
    v = b.t()
    w = v[1:3]
    u = w.diagonal()
    u.mul_(3)
    v.add_(1)
    w.mul_(v[1:3].detach().clone())
    b.div_(2)
    u.copy_(x[0, :2])
    (b * weights(torch, b)).sum().backward()
    return b, x.grad, [facts(t) for t in (b, v, w, u)]


# ---- several views of one tensor ----
SPLITS = {
    "split": lambda t: t.split(2, 1),
    "split sizes": lambda t: t.split([1, 3], 1),
    "chunk": lambda t: t.chunk(2, 1),
    "unbind": lambda t: t.unbind(1),
    "tensor_split": lambda t: t.tensor_split(2, 1),
    "tensor_split at": lambda t: t.tensor_split((1, 3), 1),
    "hsplit": lambda t: t.hsplit(2),
    "vsplit": lambda t: t.vsplit(3),
    "dsplit": lambda t: t.unsqueeze(0).dsplit(2),
    "unsafe_split": lambda t: t.unsafe_split(2, 1),
    "unsafe_chunk": lambda t: t.unsafe_chunk(2, 1),
    "unsafe_split_with_sizes": lambda t: t.unsafe_split_with_sizes((1, 3), 1),
    "iteration": lambda t: tuple(t),
    "split_with_sizes": lambda t: t.split_with_sizes((1, 3), 1),
}


@program
def one_of_several_views_written(torch):
    found = []
    for name, split in SPLITS.items():
        x = grid(torch)
        b = x * 1
        parts = split(b)
        error = caught(parts[0].mul_, 3)
        seen = [facts(parts[0]), facts(parts[-1]), facts(b)]
        ran = caught(lambda b=b, parts=parts: (b.sum() + parts[-1].sum()).backward())
        found.append([name, error if isinstance(error, Exception) else None, seen, ran, x.grad])
    return found


@program
def base_of_several_views_written(torch):
    found = []
    for name, split in SPLITS.items():
        x = grid(torch)
        b = x * 1
        parts = split(b)
        whole = b[...]
        b.mul_(3)
        seen = [facts(parts[0]), facts(parts[-1]), facts(whole)]
        ran = caught(lambda parts=parts: parts[0].sum().backward(retain_graph=True))
        found.append([name, seen, ran, caught(whole.sum().backward), x.grad])
    return found


@program
def several_views_with_retained_gradients_and_hooks(torch):
    found = []
    for name, split in SPLITS.items():
        log, x = [], grid(torch)
        b = x * 1
        parts = split(b)
        for k, part in enumerate(parts):
            part.retain_grad()
            part.register_hook(lambda g, k=k, log=log: log.append([k, None if g is None else g.sum().item()]))
        b.retain_grad()
        b.register_hook(lambda g, log=log: log.append(["base", g.sum().item()]))
        ran = caught(lambda parts=parts: (parts[0].sum() * 2 + parts[-1].sum()).backward())
        found.append([name, ran, log, [part.grad for part in parts], b.grad, x.grad])
    return found


@program
def base_written_after_views_retain_gradients(torch):
    found = []
    for name in ("select", "index", "transpose", "diagonal", "view", "split", "unbind"):
        log, x = [], grid(torch)
        b = x * 1
        v = KINDS[name](b)
        v.retain_grad()
        b.mul_(2)
        node = caught(lambda v=v: v.grad_fn.name())
        hooked = caught(lambda v=v, log=log: v.register_hook(lambda g: log.append(g.sum().item())) and None)
        ran = caught(lambda v=v, b=b: (v.sum() * 3 + b.sum()).backward())
        found.append([name, node, hooked, ran, log, caught(lambda v=v: v.grad), x.grad, v.retains_grad])
    return found


@program
def base_written_after_a_view_was_hooked(torch):
    log, x = [], grid(torch)
    b = x * 1
    v = b[0]
    handle = v.register_hook(lambda g: log.append(g.sum().item()))
    b.mul_(2)
    (v.sum() * 3 + b.sum()).backward(retain_graph=True)
    handle.remove()
    v.sum().backward()
    return log, x.grad


@program
def several_views_of_a_leaf_written_under_no_grad(torch):
    found = []
    for name, split in SPLITS.items():
        x = grid(torch)
        parts = split(x)
        with torch.no_grad():
            error = caught(parts[0].mul_, 3)
        found.append([name, error if isinstance(error, Exception) else None, facts(parts[0]), facts(x)])
        ran = caught(lambda parts=parts: parts[0].sum().backward())
        found[-1] += [ran, x.grad]
    return found


@program
def several_views_of_a_constant_written_with_a_leaf(torch):
    found = []
    for name, split in SPLITS.items():
        b, w = grid(torch, False), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        parts = split(b)
        error = caught(parts[0].mul_, w)
        found.append(
            [name, error if isinstance(error, Exception) else None, facts(parts[0]), facts(b), facts(parts[-1])]
        )
    return found


@program
def views_of_several_views(torch):
    found = []
    for name, split in SPLITS.items():
        x = grid(torch)
        b = x * 1
        v = split(b)[0][...]
        error = caught(v.mul_, 3)
        found.append([name, facts(v), error if isinstance(error, Exception) else None])
        with torch.no_grad():
            u = split(b)[0]
        w = u[...]
        found[-1] += [
            facts(u),
            facts(w),
            caught(lambda u=u: u.mul_(3) and None),
            caught(lambda w=w: w.mul_(3) and None),
        ]
    return found


# ---- other dtypes, real and imaginary parts ----
def complex_grid(torch: Any, grad: bool = True) -> Any:
    values = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]], dtype=torch.complex128)
    return values.requires_grad_(grad)


@program
def parts_of_complex_numbers(torch):
    found = []
    for view in (torch.real, torch.imag, torch.view_as_real, torch.view_as_complex, torch.resolve_conj):
        x = complex_grid(torch)
        b = x * 1
        v = caught(view, b)
        if isinstance(v, Exception):
            found.append(v)
            continue
        before = facts(v)[:2] + facts(v)[3:4] + facts(v)[6:]
        error = caught(v.mul_, 3)
        after = (
            None if isinstance(error, Exception) else [b, v._version, b._version, v.grad_fn.name(), b.grad_fn.name()]
        )
        (torch.view_as_real(b) * weights(torch, torch.view_as_real(b))).sum().backward()
        found.append([before, error if isinstance(error, Exception) else None, after, x.grad])
    return found


@program
def real_numbers_viewed_as_complex(torch):
    x = grid(torch)
    b = x * 1
    v = torch.view_as_complex(b.view(3, 2, 2))
    v.mul_(1j)
    b.mul_(2)
    v.real.add_(1)
    (b * weights(torch, b)).sum().backward()
    return facts(v), v.grad_fn.next_functions[0][0].name(), facts(b), b, x.grad


@program
def base_written_under_complex_parts(torch):
    x = complex_grid(torch)
    b = x * 1
    r, i, a = b.real, b.imag, torch.view_as_real(b)
    b.mul_(2j)
    names = [[t.grad_fn.name(), t.grad_fn.next_functions[0][0].name()] for t in (r, i, a)]
    (r.sum() * 2 + i.sum() * 3 + (a * weights(torch, a)).sum()).backward()
    return names, [t._version for t in (r, i, a)], x.grad


@program
def real_part_of_a_view(torch):
    x = complex_grid(torch)
    b = x * 1
    b[0].real.mul_(3)
    b.t()[1].imag.add_(1)
    b.imag.diagonal().zero_()
    torch.view_as_real(b).sum().backward()
    return b, x.grad


@program
def real_and_imaginary_parts_assigned(torch):
    x, w = complex_grid(torch), grid(torch)
    b = x * 1
    b.real = w[:2, :2]
    b.imag = 2.0
    torch.view_as_real(b).sum().backward()
    return b, x.grad, w.grad


@program
def views_of_another_dtype(torch):
    found = []
    for dtype in (torch.float32, torch.int64, torch.int8, torch.complex128, torch.float64, torch.bool, torch.float16):
        for kind in ("recorded", "leaf", "constant"):
            x = grid(torch, kind != "constant")
            b = x * 1 if kind == "recorded" else x
            v = caught(b.view, dtype)
            if isinstance(v, Exception):
                found.append([str(dtype), kind, v])
                continue
            found.append([str(dtype).split(".")[1], kind, facts(v), v._base is b])
            found[-1].append(caught(lambda v=v: v.mul_(1) and None))
            found[-1].append([v._version, b._version])
    return found


@program
def views_of_integers_as_floats(torch):
    b = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).view(torch.int64)
    v = b.view(torch.float64)
    first = facts(v)
    v.requires_grad_()
    (v * 2).sum().backward()
    return first, v.grad, caught(lambda: b.add_(0) and None), facts(v), caught(lambda: v.mul_(2))


@program
def gradient_through_a_view_of_another_dtype(torch):
    found = []
    for dtype in (torch.float32, torch.complex128, torch.float64, torch.int64):
        x = grid(torch)
        b = x * 1
        v = caught(b.view, dtype)
        if isinstance(v, Exception):
            found.append(v)
            continue
        found.append([caught(lambda v=v: v.abs().sum().backward()), x.grad, v.requires_grad])
        c = x * 1
        v = c.view(dtype)
        c.mul_(2)
        found[-1].append([caught(lambda v=v: facts(v)), caught(lambda v=v: v.abs().sum().backward()), x.grad])
    return found


# ---- views made elsewhere and used here ----
@program
def view_made_under_no_grad_and_its_base_written(torch):
    found = []
    for mode in (torch.no_grad, torch.inference_mode):
        for where in ("view", "base", "both"):
            x = grid(torch)
            b = x * 1
            with mode():
                v = b[0]
                w = v[1:]
            u = caught(lambda w=w: w[:1])
            errors = []
            if where in ("view", "both"):
                errors.append(caught(lambda v=v: v.mul_(2) and None))
                errors.append(caught(lambda u=u: u.mul_(2) and None))
            if where in ("base", "both"):
                errors.append(caught(lambda b=b: b.mul_(2) and None))
            found.append([mode.__name__, where, errors, [facts(t) for t in (b, v, w, u)]])
            found[-1].append(caught(lambda v=v: (v * 2).requires_grad))
            found[-1].append(caught(lambda u=u: (u * 2).requires_grad))
    return found


@program
def view_of_a_leaf_made_and_written_in_different_modes(torch):
    found = []
    modes = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}
    for made in modes:
        for written in modes:
            for grad in (True, False):
                for value in (2.0, "leaf"):
                    x = grid(torch, grad)
                    with modes[made]():
                        v = x[0]
                    factor = torch.tensor(2.0, dtype=torch.float64, requires_grad=True) if value == "leaf" else value
                    with modes[written]():
                        error = caught(lambda v=v, f=factor: v.mul_(f) and None)
                    found.append([made, written, grad, value, error, facts(v), facts(x)])
    return found


@program
def inference_tensors_viewed_and_written(torch):
    found = []
    with torch.inference_mode():
        b = torch.ones(3, 4)
        v = b[0]
        found.append([v.is_inference(), v._is_view()])
        v.mul_(2)
    u = b[1]
    found.append(
        [
            u.is_inference(),
            u._is_view(),
            caught(lambda: u.mul_(2)),
            caught(lambda: b.mul_(2)),
            caught(lambda: u._version),
        ]
    )
    x = torch.ones(4, requires_grad=True)
    found.append([caught(lambda: u.mul_(x)), caught(lambda: u * x), caught(lambda: (x + u).sum().backward()), x.grad])
    with torch.inference_mode():
        w = x.view(2, 2)
    found.append([w.is_inference(), facts(w)])
    return found


@program
def detach_in_place_of_views(torch):
    found = []
    for name in ("select", "index", "split", "unbind", "view", "detach"):
        x = grid(torch)
        b = x * 1
        v = KINDS[name](b)
        error = caught(lambda v=v: v.detach_() and None)
        found.append([name, error, facts(v)])
        found[-1].append(caught(lambda b=b: b.detach_() and None))
        found[-1].append([facts(v), facts(b)])
    return found


@program
def requires_grad_of_views(torch):
    found = []
    for name in ("select", "index", "split", "view"):
        for grad in (True, False):
            x = grid(torch, grad)
            v = KINDS[name](x)
            found.append([name, grad, caught(lambda v=v: v.requires_grad_() and None), facts(v)])
            found[-1].append(caught(lambda v=v: v.requires_grad_(False) and None))
        with torch.no_grad():
            v = KINDS[name](grid(torch))
        found.append([name, facts(v), caught(lambda v=v: v.requires_grad_() and None), facts(v)])
    b = grid(torch, False)
    v = b[0]
    v.requires_grad_()
    found.append([caught(lambda: b.mul_(2) and None), facts(v), facts(b), caught(lambda: v.sum().backward()), v.grad])
    return found


@program
def base_that_requires_grad_after_its_view_was_made(torch):
    b = grid(torch, False)
    v = b[0]
    b.requires_grad_()
    found = [facts(v), facts(b)]
    found.append(caught(lambda: v.mul_(2) and None))
    with torch.no_grad():
        found.append(caught(lambda: v.mul_(2) and None))
    found.append([facts(v), caught(lambda: (v * 2).sum().backward()), b.grad, v.grad])
    return found


@program
def data_of_views_and_bases(torch):
    found = []
    x = grid(torch)
    b = x * 1
    v = b[0]
    v.data = torch.zeros(4, dtype=torch.float64)
    found.append([facts(v), facts(b), caught(lambda: v.sum().backward()), x.grad])
    b = x * 1
    v = b[0]
    b.data = torch.zeros(2, 2, dtype=torch.float64)
    found.append([facts(v), facts(b), v, caught(lambda: v.sum().backward()), x.grad])
    for other in (
        torch.zeros(3, 4),
        torch.zeros(3, 4, dtype=torch.int64),
        torch.zeros(12, dtype=torch.float64),
        torch.zeros(3, 4, dtype=torch.complex128),
        x,
        3.0,
        None,
    ):
        y = grid(torch)
        error = caught(setattr, y, "data", other)
        found.append([error, facts(y), str(y.dtype).split(".")[1]])
        z = y * 2 if not isinstance(error, Exception) else None
        found[-1].append(None if z is None else caught(lambda z=z: z.sum().backward()))
        found[-1].append(caught(lambda y=y: y.grad))
    return found


@program
def data_changes_neither_version_nor_graph(torch):
    x = grid(torch)
    y = x.exp()
    version = y._version
    y.data.mul_(2)
    first = y._version == version
    y.data = y.data + 1
    y.sum().backward()
    return first, x.grad, y


@program
def retain_grad_around_writes_of_views(torch):
    found = []
    for when in ("before", "after", "both"):
        x = grid(torch)
        b = x * 1
        v = b[0]
        if when != "after":
            v.retain_grad()
            b.retain_grad()
        v.mul_(3)
        if when != "before":
            v.retain_grad()
            b.retain_grad()
        (b * 2).sum().backward()
        found.append([v.grad, b.grad, x.grad, v.retains_grad, b.retains_grad])
    return found


@program
def grad_of_views_of_leaves(torch):
    x = grid(torch)
    v = x[0]
    seen = warned(lambda: v.grad)
    v.sum().backward()
    x.grad[0].mul_(5)
    return seen, x.grad, warned(lambda: x.grad[0].grad), v.is_leaf


@program
def versions_of_views(torch):
    b = grid(torch, False)
    v, d = b[0], b.detach()
    found = [[t._version for t in (b, v, d)]]
    v.add_(1)
    found.append([t._version for t in (b, v, d, b.data, v.detach(), b.t())])
    b.data.add_(1)
    found.append([t._version for t in (b, v, d)])
    d.add_(1)
    w = b.clone()
    found.append([t._version for t in (b, v, d, w)])
    with torch.no_grad():
        b.t().add_(1)
    found.append([t._version for t in (b, v, d, w)])
    b.split(2, 1)[0].add_(1)
    b.set_(torch.zeros(3, 4, dtype=torch.float64))
    found.append([t._version for t in (b, v, d, w)])
    return found


@program
def saved_views_are_checked(torch):
    found = []
    for name in ("select", "index", "diagonal", "transpose", "unbind", "as_strided", "real", "detach"):
        x = grid(torch)
        b = x * 1
        v = KINDS[name](b)
        y = v * v
        with torch.no_grad():
            b[0].add_(1)
        found.append([name, caught(lambda y=y: y.sum().backward())])
    return found


@program
def base_goes_before_its_view_is_written(torch):
    x = grid(torch)
    v = (x * 1)[0]
    v.mul_(2)
    v._base.sum().backward()
    return x.grad, facts(v)


@program
def overlapping_views(torch):
    found = []
    for name in ("expand more", "unfold over"):
        x = grid(torch)
        b = x * 1
        v = KINDS[name](b)
        found.append([name, caught(lambda v=v: v.mul_(2) and None), b._version])
        b.mul_(2)
        found[-1].append([facts(v), caught(lambda v=v: v.sum().backward()), x.grad])
    return found


@program
def some_elements_of_an_expanded_tensor_written(torch):
    found = []
    for write in (
        lambda v: v.index_put_((torch.tensor([0]),), torch.tensor(3.0, dtype=torch.float64)),
        lambda v: v.__setitem__(torch.tensor([0]), 3.0),
        lambda v: v.__setitem__([0, 1], 3.0),
        lambda v: v.__setitem__(torch.tensor([True, False, False]), 3.0),
        lambda v: v.masked_fill_(torch.tensor([[False], [True], [False]]), 3.0),
        lambda v: v.__setitem__((1, slice(1, None)), 3.0),
    ):
        b = torch.tensor([1.0, float("nan")], dtype=torch.float64)
        v = b.expand(3, 2)
        error = caught(write, v)
        found.append([error if isinstance(error, Exception) else None, b, v])
    return found


@program
def masked_fill_with_a_tensor_of_another_dtype(torch):
    found = []
    for dtype in (torch.float32, torch.int64, torch.float64, torch.bool):
        value = torch.ones((), dtype=torch.float64)
        _ = value[None]  # which gives it memory of its own
        t = torch.tensor([0, 1, 0]).to(dtype)
        found += [caught(t.masked_fill, t == 0, value), caught(t.masked_fill_, t == 0, value)]
    return found


@program
def expanding_to_sizes_that_do_not_fit(torch):
    t = torch.ones(3, 3)
    target = torch.ones(1, 2, 2)
    found = [caught(t.expand, 2, 2), caught(t.expand, -1, 5, 4, 3), caught(torch.ones(3).expand, -1, 4)]
    found.append(caught(torch.ones(2).__setitem__, 1, torch.ones(2)))
    return [*found, caught(target.__setitem__, -1, t)]


@program
def subtraction_of_truth_values_with_alpha(torch):
    b, i, f = torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.int64), torch.ones(2)
    pairs = ((b, b), (i, b), (b, f), (i, i), (b, 1))
    found = [caught(torch.sub, *pair, alpha=alpha) for pair in pairs for alpha in (2, 0.5, True)]
    return [*found, caught(torch.add, b, b, alpha=True), caught(torch.add, i, i, alpha=True)]


@program
def moving_dimensions_of_a_number(torch):
    s = torch.ones((), requires_grad=True)
    moved = (
        s.movedim(0, 0),
        s.movedim((), ()),
        s.swapaxes(0, 0),
        s.transpose(0, 0),
        s.permute(()),
        torch.ones(2, requires_grad=True).movedim(0, 0),
    )
    c = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    return [t.grad_fn.name() for t in moved], c.real.grad_fn._saved_dim, c.imag.grad_fn._saved_index


@program
def second_order_through_written_views(torch):
    found = []
    for name in ("select", "index", "diagonal", "transpose", "as_strided", "unfold", "squeeze dim", "movedim"):
        x = grid(torch)
        b = x * 1
        KINDS[name](b).mul_(KINDS[name](x))
        (g,) = torch.autograd.grad((b * b).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        found.append([name, g, h])
    return found


test_as_torch, test_recording_is_torchs = program.tests()
