"""What leaves a vmap shows the memory of what entered it; what leaves without a batch is left alone."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_views_that_leave")

VIEWS = {
    "the sample itself": lambda x: x,
    "t": lambda x: x.t(),
    "select": lambda x: x[0],
    "slice": lambda x: x[:, 0:2],
    "narrow": lambda x: x.narrow(0, 0, 1),
    "expand": lambda x: x.expand(4, 2, 3),
    "diagonal": lambda x: x.diagonal(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x[:1].squeeze(0),
    "permute": lambda x: x.permute(1, 0),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split(1),
    "tensor_split": lambda x: x.tensor_split(2),
    "view": lambda x: x.unsqueeze(0).view(2, 3, 1),
    "reshape": lambda x: x.reshape(3, 2),
    "contiguous": lambda x: x.contiguous(),
    "two steps": lambda x: x.t()[1:],
}


def facts(one: Any, x: Any) -> Any:
    return one is x, one._base is x, one._is_view(), list(one.stride()), one.storage_offset(), one._version


def shown(torch: Any, view: Any, in_dim: int, out_dim: int) -> Any:
    shape = [2, 3]
    shape.insert(in_dim, 5)
    x = torch.arange(30.0).reshape(shape)
    out = torch.vmap(view, in_dims=in_dim, out_dims=out_dim)(x)
    parts = out if isinstance(out, tuple) else (out,)
    first = [facts(one, x) for one in parts]
    x.mul_(2)
    seen = [one.sum() for one in parts]
    return first, seen, caught(parts[0].fill_, -1.0), x.sum(), x._version


@program
def views_of_the_input(torch):
    return {f"{name} {i} {o}": shown(torch, f, i, o) for name, f in VIEWS.items() for i in (0, 1, 2) for o in (0, 1)}


@program
def views_of_complex_numbers(torch):
    x = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]])
    pairs = torch.arange(12.0).reshape(2, 3, 2)
    out = [torch.vmap(f)(x) for f in (torch.real, torch.imag, torch.view_as_real)]
    out.append(torch.vmap(torch.view_as_complex)(pairs))
    based = [one._base is base for one, base in zip(out, (x, x, x, pairs), strict=True)]
    out[1].fill_(7.0)
    return based, x, out


@program
def views_of_a_view(torch):
    whole = torch.zeros(2, 5, 3)
    out = torch.vmap(lambda t: t[0:1])(whole[1])
    nested = torch.vmap(torch.vmap(lambda t: t[1:], in_dims=1), in_dims=1)(whole)
    nested += 1
    return out._base is whole, nested._base is whole, nested.stride(), whole.sum()


@program
def an_operation_in_place_returns_the_input(torch):
    x, y, z = torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 3, 4)
    one = torch.vmap(torch.Tensor.acos_)(x)
    turned = torch.vmap(torch.Tensor.acos_, out_dims=(1,))(y)
    nested = torch.vmap(torch.vmap(torch.Tensor.acos_))(z)
    return one is x, turned._base is y, nested is z, [t._version for t in (x, y, z)]


@program
def a_parameter_returned_as_it_is(torch):
    w = torch.nn.Parameter(torch.ones(2, 3))
    same, turned = torch.vmap(lambda t: t)(w), torch.vmap(lambda t: t, out_dims=1)(w)
    turned.sum().backward()
    return same is w, turned._base is w, type(turned).__name__, w.grad, caught(turned.mul_, 2)


@program
def a_write_after_the_vmap_is_followed(torch):
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    y = x * 1
    out = torch.vmap(lambda t: t[0])(y)
    out.mul_(3)
    (y * y).sum().backward()
    return x.grad, y.grad_fn, out.grad_fn, out


@program
def a_write_into_the_input_is_followed(torch):
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    y = x * 1
    out = torch.vmap(lambda t: t.flip(0)[0] + 0 * t[1:].sum(), in_dims=1)(y)
    view = torch.vmap(lambda t: t[1:], in_dims=1, out_dims=1)(y)
    y.mul_(x.detach() + 1)
    (view * view).sum().backward()
    return out, view, x.grad, view.grad_fn


@program
def a_write_into_an_imaginary_part_is_followed(torch):
    x = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]], requires_grad=True)
    y = x * 1
    torch.vmap(lambda t: t.imag[0])(y).mul_(3)
    (y * y.conj()).real.sum().backward()
    return x.grad, y


@program
def second_derivatives_of_a_written_view(torch):
    x = torch.arange(6.0, dtype=torch.float64).reshape(3, 2).requires_grad_()

    def f(x):
        y = x * x
        torch.vmap(lambda t: t[0], in_dims=1)(y).mul_(x[0])
        return (y**2).sum()

    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), x)
    return first, second


@program
def one_of_several_views_cannot_be_written(torch):
    y = torch.ones(3, 2, requires_grad=True) * 1
    parts = torch.vmap(lambda t: t.unbind(0))(y)
    refused = str(caught(parts[0].mul_, 2)).partition("is a view and")[
        2
    ]  # the node before it has no name of torch's here
    return refused.partition(".")[0], [p._base is y for p in parts]


@program
def a_view_made_without_gradients_cannot_be_written(torch):
    y = torch.ones(3, 2, requires_grad=True) * 1
    with torch.no_grad():
        out = torch.vmap(lambda t: t[0])(y)
    return caught(out.mul_, 2)


@program
def outputs_share_what_they_shared_inside(torch):
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()

    def f(t):
        made = t * 2
        return made, made[0]

    whole, part = torch.vmap(f)(x)
    part.mul_(3)
    whole.sum().backward()
    return x.grad, whole, part._is_view(), part._base is whole, whole._version


@program
def a_saved_output_that_was_written(torch):
    x = torch.rand(3, 2, requires_grad=True)
    kept = (torch.exp, torch.tanh, torch.sigmoid, torch.sqrt, lambda t: t.softmax(0), lambda t: t.cumprod(0))
    found = []
    for f in kept:
        out = torch.vmap(f)(x)
        out.mul_(3.0)
        found.append(type(caught(out.sum().backward)).__name__)
    return found


@program
def what_does_not_depend_on_the_batch_is_expanded(torch):
    x, y = torch.ones(2, 3), torch.arange(2.0)
    out = torch.vmap(lambda t: y)(x)
    return out._base is y, out.stride(), caught(out.fill_, 1.0)


@program
def a_new_result_on_another_axis_is_a_view(torch):
    x = torch.ones(2, 3)
    return [torch.vmap(lambda t: t * 2, out_dims=k)(x)._is_view() for k in (0, 1)]


# ---- outputs without an axis ----
@program
def outputs_of_any_kind(torch):
    x, vmap = torch.ones(2, 3), torch.vmap
    return [
        caught(vmap(f, out_dims=dims), x)
        for f, dims in (
            (lambda t: (t, "text"), (0, None)),
            (lambda t: "text", None),
            (lambda t: (None, 3), None),
            (lambda t: (None, 3), (None, None)),
            (lambda t: {"a": t, "b": [1, None, t]}, {"a": 0, "b": [None, None, 1]}),
            (lambda t: (t, 3), (0, 0)),
            (lambda t: (t, 3), 0),
            (lambda t: (t, None), (0, None)),
            (lambda t: torch.arange(3), None),
            (lambda t: (torch.arange(3), t.sum()), (None, 0)),
            (lambda t: t, None),
            (lambda t: [t, {"a": t}], [0, None]),
            (lambda t: [t, {"a": 3}], [0, None]),
            (lambda t: vmap(lambda u: t, out_dims=None)(t), 0),
        )
    ]


@program
def inputs_of_any_kind(torch):
    x, vmap = torch.ones(2, 3), torch.vmap
    add = lambda t, o: t * o["n"] + len(o["s"])  # noqa: E731
    return (
        vmap(torch.mul, (0, None))(x, 2),
        vmap(add, (0, {"n": None, "s": None}))(x, {"n": 2, "s": "abc"}),
        vmap(add, (0, None))(x, {"n": 2, "s": "abc"}),
        caught(vmap(add, (0, {"n": 0, "s": None})), x, {"n": 2, "s": "abc"}),
        caught(vmap(add, (0, {"n": None})), x, {"n": 2, "s": "abc"}),
        caught(vmap(add), x, {"n": 2, "s": "abc"}),
    )


test_as_torch, test_recording_is_torchs = program.tests()
