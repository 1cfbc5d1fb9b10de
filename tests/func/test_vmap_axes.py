"""vmap: where axes go, what may be returned, random numbers, parts, and what is refused."""

from __future__ import annotations

import functools
from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_vmap_axes")


def table(torch: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return torch.arange(float(count), dtype=torch.float64).reshape(shape)


# ---- where axes come from ----
@program
def axes_by_position_and_from_the_end(torch):
    x, vmap = table(torch, 2, 3, 4), torch.vmap
    return [vmap(torch.sum, in_dims=d)(x) for d in (0, 1, 2, -1, -2, -3)]


@program
def nested_structures_of_axes(torch):
    x, y = table(torch, 2, 3), table(torch, 3, 2)
    f = lambda d: d["a"][0] * d["b"]  # noqa: E731
    return torch.vmap(f, in_dims=({"a": (0,), "b": 1},))({"a": (x,), "b": y})


@program
def one_axis_for_a_whole_structure(torch):
    x = table(torch, 2, 3)
    return torch.vmap(lambda d: d["a"] + d["b"][0], in_dims=0)({"a": x, "b": [x]})


@program
def axes_of_wrong_length_or_kind(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    f = lambda *a: a[0]  # noqa: E731
    return (
        caught(vmap(f, in_dims=(0, 0)), x),
        caught(vmap(f, in_dims=()), x),
        caught(vmap(f, in_dims=[0]), x),
        caught(vmap(f, in_dims="0"), x),
        caught(vmap(f, in_dims=(0.5,)), x),
        caught(vmap(f, in_dims=({"a": 0},)), x),
        caught(vmap(f, in_dims=(None,)), x),
        caught(vmap(f, in_dims=None), x),
        caught(vmap(f, in_dims=(0, None)), x, x),
        caught(vmap(f, in_dims=((0, 1),)), (x,)),
        caught(vmap(f, in_dims=(2,)), x),
        caught(vmap(f, in_dims=(-3,)), x),
    )


@program
def arguments_that_cannot_be_mapped(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    f = lambda *a, **k: x  # noqa: E731
    return (
        caught(vmap(f)),
        caught(vmap(f), 3),
        caught(vmap(f), "text"),
        caught(vmap(f), None),
        caught(vmap(f), x, 3),
        caught(vmap(f), torch.tensor(1.0)),
        caught(vmap(f), x, table(torch, 3, 2)),
        caught(vmap(f), table(torch, 0, 2)),
        caught(vmap(f), []),
        caught(vmap(f, in_dims=(0, None)), x, 3),
    )


@program
def keyword_arguments_are_mapped_over_the_first_axis(torch):
    x, y = table(torch, 2, 3), table(torch, 2, 3)
    return torch.vmap(lambda a, b: a * b)(x, b=y), caught(torch.vmap(lambda a, b: a * b), x, b=2)


# ---- where axes go ----
@program
def outputs_on_chosen_axes(torch):
    x, vmap = table(torch, 2, 3, 4), torch.vmap
    same = lambda t: t * 1  # noqa: E731
    return [list(vmap(same, out_dims=d)(x).shape) for d in (0, 1, 2, -1, -2, -3)]


@program
def outputs_on_axes_that_do_not_exist(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    same = lambda t: t * 1  # noqa: E731
    return (
        caught(vmap(same, out_dims=2), x),
        caught(vmap(same, out_dims=-3), x),
        caught(vmap(same, out_dims="0"), x),
        caught(vmap(same, out_dims=(0, 0)), x),
        caught(vmap(same, out_dims=(0.5,)), x),
        caught(vmap(same, out_dims=None), x),
        caught(vmap(lambda t: (t, t), out_dims=(0,)), x),
        caught(vmap(lambda t: (t, t), out_dims=(0, 0, 0)), x),
        caught(vmap(lambda t: {"a": t}, out_dims={"b": 0}), x),
    )


@program
def outputs_in_structures(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    return (
        vmap(lambda t: {"a": t, "b": (t * 2, [t * 3])})(x),
        vmap(lambda t: {"a": t, "b": t * 2}, out_dims={"a": 0, "b": 1})(x),
        vmap(lambda t: (t, t.sum()), out_dims=(1, 0))(x),
        vmap(lambda t: [t, t])(x),
        vmap(lambda t: ((t,), t), out_dims=((1,), 0))(x),
    )


@program
def outputs_that_do_not_depend_on_the_batch(torch):
    x, y, vmap = table(torch, 2, 3), table(torch, 2), torch.vmap
    return (
        vmap(lambda t: y)(x),
        vmap(lambda t: (t, y), out_dims=(0, None))(x),
        caught(vmap(lambda t: t, out_dims=None), x),
    )


@program
def outputs_that_are_no_tensors(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    return [caught(vmap(lambda t, v=v: v), x) for v in (3, None, "s", (1, 2), [None], {"a": 1}, 2.5, True)]


# ---- inside ----
@program
def shapes_inside(torch):
    seen = []
    torch.vmap(lambda t: seen.append([list(t.shape), t.ndim, t.numel(), t.size(0), t.stride(), len(t)]) or t)(
        table(torch, 2, 3)
    )
    return seen


@program
def what_depends_on_values_is_refused(torch):
    x, vmap = table(torch, 2, 3), torch.vmap
    return (
        caught(vmap(lambda t: t if t.sum() > 0 else -t), x),
        caught(vmap(lambda t: t * t.sum().item()), x),
        caught(vmap(lambda t: t * float(t.sum())), x),
        caught(vmap(lambda t: t.nonzero()), x),
        caught(vmap(lambda t: torch.unique(t)), x),
    )


@program
def writes_inside(torch):
    vmap = torch.vmap
    x, y = table(torch, 2, 3), torch.zeros(3, dtype=torch.float64)
    found = [
        type(caught(vmap(lambda t: y.add_(t)), x)).__name__,
        vmap(lambda t: t.clone().add_(1))(x),
        caught(vmap(lambda t: t.add_(1)), x.clone()),
    ]
    z = torch.zeros(2, 3, dtype=torch.float64)
    vmap(lambda a, b: a.copy_(b))(z, x)
    return found, z


@program
def writing_a_number_of_the_batch_into_an_element(torch):
    x = table(torch, 2, 3)

    def f(t):
        t = t.clone()
        t[0] = t[1] * 10
        return t

    return torch.vmap(f)(x)


@program
def backward_through_vmap(torch):
    x = table(torch, 2, 3).requires_grad_()
    torch.vmap(lambda t: (t * t).sum())(x).sum().backward()
    return x.grad


@program
def gradients_of_captured_tensors(torch):
    w = table(torch, 3).requires_grad_()
    torch.vmap(lambda t: (t * w).sum())(table(torch, 2, 3)).sum().backward()
    return w.grad


@program
def levels_nested(torch):
    x, y, vmap = table(torch, 2), table(torch, 3), torch.vmap
    return vmap(vmap(torch.mul, in_dims=(None, 0)), in_dims=(0, None))(x, y)


@program
def escaped_tensors(torch):
    kept = []
    torch.vmap(lambda t: kept.append(t) or t)(table(torch, 2, 3))
    return caught(lambda: kept[0] + 1), caught(lambda: repr(kept[0])) is not None


@program
def functions_that_raise(torch):
    def fails(t):
        raise ValueError("inside")

    return caught(torch.vmap(fails), table(torch, 2, 3)), torch.vmap(lambda t: t * 2)(table(torch, 2))


@program
def names_of_functions_in_errors(torch):
    def named(t):
        return 3

    class Called:
        def __call__(self, t):
            return 3

    x = table(torch, 2)
    return str(caught(torch.vmap(named), x))[:30], str(caught(torch.vmap(functools.partial(named)), x))[:12]


# ---- random numbers ----
def drawn(torch, randomness, draw):
    torch.manual_seed(0)
    return torch.vmap(draw, randomness=randomness)(torch.zeros(3, 2))


@program
def random_numbers_as_an_error(torch):
    return [
        caught(drawn, torch, "error", draw)
        for draw in (
            lambda t: torch.rand(2),
            lambda t: torch.randn_like(t),
            lambda t: torch.bernoulli(t),
            lambda t: torch.nn.functional.dropout(t),
            lambda t: torch.randperm(3),
            lambda t: t.clone().normal_(),
        )
    ]


@program
def random_numbers_are_the_same_or_different(torch):
    found = []
    for draw in (
        lambda t: torch.rand(2),
        lambda t: torch.randn(2),
        lambda t: torch.rand_like(t),
        lambda t: torch.randint(0, 1000, (2,)),
        lambda t: torch.randperm(20),
        lambda t: torch.nn.functional.dropout(t + 1, 0.5),
        lambda t: t.clone().uniform_(),
    ):
        row = []
        for randomness in ("same", "different"):
            out = caught(drawn, torch, randomness, draw)
            if isinstance(out, Exception):
                row.append(out)
            else:
                row.append(
                    [
                        list(out.shape),
                        bool((out == out[:1]).all()) if out.numel() > 12 or randomness == "same" else None,
                    ]
                )
        found.append(row)
    return found


@program
def unknown_randomness(torch):
    return caught(torch.vmap(lambda t: t, randomness="no"), torch.ones(2)), caught(drawn, torch, None, lambda t: t)


@program
def randomness_of_the_outer_level_rules(torch):
    inner = torch.vmap(lambda t: torch.rand(1), randomness="error")
    return caught(torch.vmap(lambda t: inner(t), randomness="different"), torch.zeros(2, 3))


# ---- parts ----
@program
def parts_of_every_size(torch):
    x = table(torch, 5, 2)
    return [torch.vmap(lambda t: t.sum(), chunk_size=n)(x) for n in (1, 2, 3, 5, 10, None)]


@program
def parts_and_their_calls(torch):
    calls = []
    torch.vmap(lambda t: calls.append(list(t.shape)) or t, chunk_size=2)(table(torch, 5, 2))
    return len(calls)


@program
def parts_with_structures_and_axes(torch):
    x, y = table(torch, 4, 2), table(torch, 3, 4)
    f = lambda a, b: {"s": a.sum() * b, "t": (a,)}  # noqa: E731
    return torch.vmap(f, in_dims=(0, 1), out_dims={"s": 1, "t": (0,)}, chunk_size=3)(x, y)


@program
def parts_of_a_bad_size(torch):
    x = table(torch, 4)
    return [caught(lambda n=n: torch.vmap(lambda t: t, chunk_size=n)(x)) for n in (0, -1)]


@program
def parts_with_random_numbers(torch):
    torch.manual_seed(0)
    out = torch.vmap(lambda t: torch.rand(3), randomness="different", chunk_size=2)(torch.zeros(4))
    same = torch.vmap(lambda t: torch.rand(3), randomness="same", chunk_size=4)(torch.zeros(4))
    return list(out.shape), bool((same == same[:1]).all())


test_as_torch, test_recording_is_torchs = program.tests()
