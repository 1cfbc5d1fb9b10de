# ruff: noqa: E501, PT018 - tables of cases, and programs that hold several things
"""vmap: axes, structures, views, operations against a loop over samples, gradients of batches, random numbers."""

from __future__ import annotations

import functools
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

from tests.torch_tests.suite import Suite, near, refused

api = Suite("TestVmapAPI")
operators = Suite("TestVmapOperators")
gradients = Suite("TestVmapBatchedGradient")
random = Suite("TestRandomness")
failure = Suite("TestTransformFailure")
others = Suite("TestVmapOperatorsOpInfo")

api.cannot("torch's own fallback and its warnings", "fallback_does_not_warn_by_default", "fallback_warns_when_warnings_are_enabled",
           "fallback_zero_dim", "fallback_masked_fill", "inplace_fallback_nary_different_levels", "fallback_with_undefined_grad")  # fmt: skip
api.cannot(
    "torch skips it, or expects it to fail",
    "backward_unsupported_interaction",
    "grad_unsupported_interaction",
    "vmap_autocast_cpu",
)
api.cannot("needs CUDA", "vmap_autocast_cuda")
api.cannot("functions of torch._C", "reshape_dim_into", "reshape_dim_outof")
others.cannot(
    "the table of operations is compared by tests/ops",
    "vmap_exhaustive",
    "op_has_batch_rule",
    "vmap_linalg_failure_1D_input",
)
others.cannot("names of torch's dispatcher", "conv_double_backward", "fill__Tensor")


def numbers(torch: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) * 0.37).sin().reshape(shape) + 1.5


def as_a_loop(torch: Any, op: Any, inputs: Any, in_dims: Any = 0, out_dims: int = 0, view: bool = False) -> None:
    """Hold that vmap gives what a loop over the samples gives, and, of views, views of the first input."""
    dims = (in_dims,) * len(inputs) if in_dims is None or isinstance(in_dims, int) else in_dims
    size = next(one.shape[d] for one, d in zip(inputs, dims, strict=True) if d is not None)
    cut = [
        [one if d is None else one.select(d, k).clone() for one, d in zip(inputs, dims, strict=True)]
        for k in range(size)
    ]
    loop = [op(*args) for args in cut]
    out = torch.vmap(op, in_dims, out_dims)(
        *[one.clone() if hasattr(one, "clone") and not view else one for one in inputs]
    )
    parts, wanted = (out, list(zip(*loop, strict=True))) if isinstance(out, tuple) else ((out,), [loop])
    for one, samples in zip(parts, wanted, strict=True):
        expected = torch.stack(list(samples), out_dims)
        assert one.shape == expected.shape, (one.shape, expected.shape)
        assert near(one, expected)
        if view:
            assert one is inputs[0] or one._base is (inputs[0] if inputs[0]._base is None else inputs[0]._base), (
                "no view"
            )


def everywhere(torch: Any, op: Any, shape: tuple[int, ...] = (2, 3), view: bool = False) -> None:
    """Hold it for a batch on every axis, and for one vmap in another."""
    for axis in range(len(shape) + 1):
        x = numbers(torch, *shape[:axis], 4, *shape[axis:])
        as_a_loop(torch, op, (x,), axis, 0, view)
    as_a_loop(torch, torch.vmap(op), (numbers(torch, 2, 4, *shape),), 0, 0, view)
    as_a_loop(torch, torch.vmap(op, in_dims=1), (numbers(torch, shape[0], 4, 2, *shape[1:]),), 2, 0, view)


# ---- the interface ----
@api
def non_tensor_output_raises(torch):
    for out, kind in ((3.14, "float"), (3, "int")):
        with refused(f"got type <class '{kind}'>", ValueError):
            torch.vmap(lambda t, out=out: (t, out))(torch.ones(3))


@api
def different_map_dim_size_raises(torch):
    x, y = torch.ones(2), torch.ones(3)
    with refused("same size in the mapped dimension", ValueError):
        torch.vmap(torch.mul)(x, y)
    with refused("same size in the mapped dimension", ValueError):
        torch.vmap(lambda z: z["x"] + z["y"], in_dims=({"x": 0, "y": 0},))({"x": x, "y": y})


@api
def func_with_no_inputs(torch):
    with refused("got no inputs", ValueError):
        torch.vmap(lambda: torch.ones(3))()


@api
def func_with_no_tensors(torch):
    with refused("at least one Tensor", ValueError):
        torch.vmap(lambda x: torch.ones(3), (None,))(1)


@api
def constant_function(torch):
    assert near(torch.vmap(lambda x: torch.tensor(3.14))(torch.ones(3)), torch.tensor([3.14] * 3))


@api
def single_input(torch):
    as_a_loop(torch, lambda x: x * x, (numbers(torch, 2, 3),))


@api
def multiple_inputs(torch):
    as_a_loop(torch, torch.mul, (numbers(torch, 2, 3), numbers(torch, 2, 3)))


@api
def multiple_outputs(torch):
    as_a_loop(torch, lambda x: (x * x, x * x * x), (numbers(torch, 3),))


@api
def multiple_outputs2(torch):
    x = torch.ones(3)
    assert [type(torch.vmap(f)(x)) for f in (lambda t: (t, t), lambda t: [t, t], lambda t: [t])] == [tuple, list, list]


@api
def nested_with_same_map_dim(torch):
    x, y = numbers(torch, 2, 3, 5), numbers(torch, 2, 3, 5)
    assert near(torch.vmap(torch.vmap(torch.vmap(torch.mul)))(x, y), x * y)


@api
def nested_with_diag_embed(torch):
    x = numbers(torch, 3, 3, 5)
    assert near(torch.vmap(torch.vmap(torch.diag_embed))(x), torch.diag_embed(x))


@api
def nested_with_different_map_dim(torch):
    x, y, z = numbers(torch, 2, 3), numbers(torch, 5, 3), numbers(torch, 7, 3)
    out = torch.vmap(lambda a: torch.vmap(lambda b: torch.vmap(lambda c: a * b * c)(z))(y))(x)
    assert near(out, x.view(2, 1, 1, 3) * y.view(5, 1, 3) * z)


@api
def noop_in_inner_vmap(torch):
    x, y = numbers(torch, 3), numbers(torch, 5)
    assert near(torch.vmap(lambda a: torch.vmap(lambda b: a)(y))(x), x.view(3, 1).expand(3, 5))


@api
def unsupported_op_err_msg(torch):
    x = torch.ones(2, 3)
    with refused("Batching rule not implemented for aten::.+; the fallback path doesn't work on out= or view ops"):
        torch.vmap(lambda a, b: torch.abs(a, out=b))(x, x)
    with refused("Batching rule not implemented"):
        torch.vmap(torch.equal)(x, x)


@api
def nonzero_out_dims(torch):
    x = numbers(torch, 2, 3, 5, 7)
    for axis, order in ((1, (1, 0, 2, 3)), (2, (1, 2, 0, 3)), (-1, (1, 2, 3, 0))):
        out = torch.vmap(lambda t: t, out_dims=axis)(x)
        assert near(out, x.permute(order)) and out.data_ptr() == x.data_ptr()
    wide = torch.ones([2] + [1] * 31)
    assert torch.vmap(lambda t: t, out_dims=2)(wide).shape == (1, 1, 2, *[1] * 29)


@api
def multiple_out_dims(torch):
    x, y = numbers(torch, 2, 3, 5), numbers(torch, 2, 3, 5)
    a, b, c = torch.vmap(lambda s, t: (s, s, s * t), out_dims=(-1, 1, 2))(x, y)
    assert near(a, x.permute(1, 2, 0)) and near(b, x.permute(1, 0, 2)) and near(c, (x * y).permute(1, 2, 0))


@api
def nested_out_dims(torch):
    y = numbers(torch, 2, 3, 5, 7)
    same = lambda t: t  # noqa: E731
    assert near(torch.vmap(lambda t: torch.vmap(same, out_dims=1)(t))(y), y.permute(0, 2, 1, 3))
    assert near(torch.vmap(lambda t: torch.vmap(same, out_dims=1)(t), out_dims=1)(y), y.permute(2, 0, 1, 3))
    assert near(torch.vmap(lambda t: torch.vmap(same, out_dims=-1)(t), out_dims=-1)(y), y.permute(2, 3, 1, 0))


@api
def out_dims_edge_case(torch):
    x = numbers(torch, 2, 3)
    assert near(torch.vmap(lambda t: t, out_dims=(1,))(x), x.t())


@api
def out_dims_none_tuple(torch):
    x = numbers(torch, 2, 3)
    out = torch.vmap(lambda t: (t, "text"), out_dims=(0, None))(x)
    assert out[1] == "text" and near(out[0], x)
    assert torch.vmap(lambda t: (None, "text"), out_dims=(None, None))(x) == (None, "text")


@api
def out_dims_none(torch):
    x = numbers(torch, 2, 3)
    with refused("can not return a BatchedTensor when out_dim is None", ValueError):
        torch.vmap(lambda t: t, out_dims=None)(x)
    assert torch.vmap(lambda t: "text", out_dims=None)(x) == "text"


@api
def out_dims_normal_tensor(torch):
    x = torch.ones(2, 3)
    assert torch.vmap(lambda t: torch.arange(3))(x).shape == (2, 3)
    assert near(torch.vmap(lambda t: torch.arange(3), out_dims=None)(x), torch.arange(3))


@api
def pytree_returns(torch):
    x = numbers(torch, 2, 3)
    a, (b, c), [d, (e, f)] = torch.vmap(lambda t: (t.sin(), (t.sin(), t.sin()), [t.sin(), (t.sin(), t.sin())]))(x)
    assert all(near(one, x.sin()) for one in (a, b, c, d, e, f))


@api
def pytree_odict_returns(torch):
    x = numbers(torch, 2, 3)
    out = torch.vmap(lambda t: OrderedDict([("s", t.sin()), ("c", t.cos())]))(x)
    assert isinstance(out, OrderedDict) and near(out["s"], x.sin()) and near(out["c"], x.cos())


@api
def pytree_returns_outdims(torch):
    x = numbers(torch, 2, 3)
    a, (b, c) = torch.vmap(lambda t: (t.sin(), (t.sin(), t.sin())), out_dims=(0, (0, 1)))(x)
    assert near(a, x.sin()) and near(b, x.sin()) and near(c, x.sin().t())


@api
def pytree_returns_broadcast_simple(torch):
    x = numbers(torch, 2, 3)
    a, (b, c) = torch.vmap(lambda t: (t.sin(), (t.sin(), t.sin())), out_dims=1)(x)
    assert all(near(one, x.sin().t()) for one in (a, b, c))


@api
def pytree_returns_broadcast_nested(torch):
    x = numbers(torch, 2, 3)
    a, (b, c) = torch.vmap(lambda t: (t.sin(), (t.sin(), t.sin())), out_dims=(0, 1))(x)
    assert near(a, x.sin()) and near(b, x.sin().t()) and near(c, x.sin().t())


@api
def out_dims_must_be_int_or_collection_of_int_err_msg(torch):
    for dims in ("text", ("text",)):
        with refused("must be an int, None or a python collection of ints", ValueError):
            torch.vmap(lambda t: t, out_dims=dims)(torch.ones(2, 3))


@api
def out_dims_and_num_outputs_mismatch_err_msg(torch):
    for f, dims in (
        (lambda t: t, (0, 0)),
        (lambda t: (t, t, t), (0,) * 4),
        (lambda t: (t, t), (0,)),
        (lambda t: (t, t, t), (0, 0)),
    ):
        with refused("not compatible", ValueError):
            torch.vmap(f, out_dims=dims)(torch.ones(2, 3, 5))


@api
def out_dim_out_of_bounds_err_msg(torch):
    for dim in (3, -4):
        with refused("Dimension out of range", IndexError):
            torch.vmap(lambda t: t, out_dims=dim)(torch.ones(2, 3, 5))


@api
def non_zero_in_dims(torch):
    x = numbers(torch, 2, 3, 5)
    out = torch.vmap(lambda t: t, (1,))(x)
    assert near(out, x.permute(1, 0, 2)) and out.data_ptr() == x.data_ptr()
    as_a_loop(torch, torch.mul, (numbers(torch, 2, 3), numbers(torch, 3, 2)), (0, 1))


@api
def none_in_dims(torch):
    x, y = numbers(torch, 2, 3), numbers(torch, 2, 3)
    assert near(torch.vmap(torch.mul, (0, None))(x, y), x.view(2, 1, 3) * y) and near(
        torch.vmap(torch.mul, (0, None))(x, 2), x * 2
    )


@api
def nested_non_default_in_dims(torch):
    x, y = numbers(torch, 5, 2, 3), numbers(torch, 3, 5, 2)
    out = torch.vmap(torch.vmap(torch.vmap(torch.mul), (1, 0)), (1, 2))(x, y)
    assert near(out, x.permute(1, 2, 0) * y.permute(2, 0, 1))


@api
def nested_negative_in_dims(torch):
    x = numbers(torch, 2, 3)
    assert near(torch.vmap(torch.mul, (-1, -1))(x, x), (x * x).t())


@api
def non_default_in_dims_out_dims(torch):
    x = numbers(torch, 2, 3, 5)
    same, turned = torch.vmap(lambda t: t, 1, 1)(x), torch.vmap(lambda t: t, 2, 1)(x)
    assert near(same, x) and near(turned, x.transpose(1, 2)) and turned.data_ptr() == same.data_ptr() == x.data_ptr()
    assert near(torch.vmap(torch.vmap(lambda t: t * 2, 1, 1), 1, 1)(x), x * 2)


@api
def item_throws(torch):
    with refused(r"item\(\) on a Tensor"):
        torch.vmap(lambda t: t.item())(torch.ones(3))


@api
def data_dependent_control_flow_throws(torch):
    with refused("data-dependent control flow"):
        torch.vmap(lambda t: t if t else 0)(torch.ones(3))


@api
def accepts_nested_inputs(torch):
    x, y = numbers(torch, 2, 3), numbers(torch, 2, 3)
    for dims in (0, (0,), ((0, 0),)):
        assert near(torch.vmap(lambda z: z[0] + z[1], in_dims=dims)((x, y)), x + y)
    assert near(torch.vmap(lambda z: z["x"][0] + z["y"][1][0])({"x": [x, x], "y": [y, (y,)]}), x + y)


@api
def in_dims_wrong_type_err_msg(torch):
    x = torch.ones(3)
    for dims in ([0, 0], {0}, "text"):
        with refused(r"expected `in_dims` to be int or a \(potentially nested\) tuple", ValueError):
            torch.vmap(torch.mul, dims)(x, x)


@api
def not_enough_in_dims_err_msg(torch):
    x = torch.ones(3)
    for dims in ((0,), (0, 0, 0)):
        with refused("in_dims is not compatible with the structure of `inputs`", ValueError):
            torch.vmap(torch.mul, dims)(x, x)
    with refused("in_dims is not compatible", ValueError):
        torch.vmap(lambda z: z[0], in_dims=((0, 0),))([x, x])


@api
def integer_in_dim_but_not_tensor_input_err_msg(torch):
    for dims in (0, (0, 0)):
        with refused("Got in_dim=0 for an input but the input is of type", ValueError):
            torch.vmap(torch.sum, dims)(torch.ones(2, 3), 0)
    torch.vmap(torch.sum, (0, None))(torch.ones(2, 3), 0)


@api
def in_dim_not_in_tensor_err_msg(torch):
    for x, dims in ((torch.ones([]), 0), (torch.ones(2, 3), (-3,)), (torch.ones(2, 3), (2,))):
        with refused(r"Got in_dim=-?\w for some input, but that input is a Tensor of dimensionality \w", ValueError):
            torch.vmap(lambda t: t * t, in_dims=dims)(x)


@api
def fallback_atan2(torch):
    as_a_loop(torch, torch.copysign, (numbers(torch, 7, 3, 5), numbers(torch, 5, 7, 3)), (2, 0))
    as_a_loop(torch, torch.vmap(torch.copysign), (numbers(torch, 7, 3, 5), numbers(torch, 5, 7, 3)), (2, 0))


@api
def fallback_multiple_returns(torch):
    as_a_loop(torch, torch.var_mean, (numbers(torch, 2, 10),))
    as_a_loop(torch, torch.vmap(torch.var_mean), (numbers(torch, 2, 3, 10),))


@api
def inplace_fallback_unary(torch):
    x, y, z = torch.rand(2, 5), torch.rand(2, 5), torch.rand(2, 3, 5)
    wanted = x.acos()
    out, turned = torch.vmap(torch.Tensor.acos_)(x), torch.vmap(torch.Tensor.acos_, out_dims=(1,))(y)
    assert out is x and near(x, wanted) and turned._base is y
    assert torch.vmap(torch.vmap(torch.Tensor.acos_))(z) is z


@api
def inplace_fallback_nary_same_levels(torch):
    x, y = numbers(torch, 7, 3, 5), numbers(torch, 5, 7, 3)
    wanted = torch.atan2(x, y.movedim(0, 2))
    torch.vmap(torch.Tensor.atan2_, (2, 0))(x, y)
    assert near(x, wanted)


@api
def batched_gradient_basic(torch):
    x, y = torch.ones(3, requires_grad=True), numbers(torch, 3).float()
    rows = torch.vmap(lambda v: torch.autograd.grad([x * y], [x], grad_outputs=[v])[0])(torch.eye(3))
    assert near(rows, torch.diagflat(y))


@api
def functools_partial(torch):
    x, y = numbers(torch, 3), numbers(torch, 2, 3)
    assert near(torch.vmap(functools.partial(torch.mul, x))(y), x * y)


@api
def nn_module(torch):
    x, model = torch.rand(2, 3), torch.nn.Linear(3, 3, bias=False)
    assert near(torch.vmap(model)(x), model(x))


@api
def batch_rule_does_not_need_to_handle_no_batched_input(torch):
    x, y = torch.rand(7, 5), torch.rand(3, 2)
    out = torch.vmap(torch.vmap(lambda a, b: a + torch.dot(b, torch.ones(2)), (0, None)), (None, 0))(x, y)
    assert near(out, torch.mv(y, torch.ones(2)).view(3, 1, 1) + x)


def _restored(torch, f, dims, *args):
    import importlib

    name = f"{torch.__name__}._functorch.vmap"
    return importlib.import_module(name).restore_vmap(f, dims, 2, "error")(*args)


@api
def restore_vmap_pytree_input_output(torch):
    x, y = (numbers(torch, 2, 3), numbers(torch, 2)), numbers(torch, 4, 2)
    out, dims = _restored(torch, lambda a, b: {"a": a[0] + a[1], "b": b}, ((0, 0), 1), x, y)
    assert dims == {"a": 0, "b": 1} and near(out["a"], x[0] + x[1][:, None]) and near(out["b"], y)


@api
def restore_vmap_no_vmapped_inputs(torch):
    x, y = numbers(torch, 3), numbers(torch, 4)
    out, dims = _restored(torch, lambda a, b, c: (a, b * c, c), (None, None, None), x, y, 5)
    assert dims == (None, None, None) and near(out[1], y * 5)


@api
def restore_vmap_unexpanded_outputs(torch):
    x, y = numbers(torch, 2, 3), numbers(torch, 4)
    out, dims = _restored(torch, lambda a, b: (3 * b, b.sum(), None), (0, None), x, y)
    assert dims == (None, None, None) and near(out[0], 3 * y) and out[2] is None


# ---- operations against a loop: by the name of torch's test, the function and the shape of a sample ----
def _add(suite: Suite, name: str, program: Callable[[Any], None]) -> None:
    program.__name__ = name
    suite(program)


UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


@operators
def unary_pointwise(torch):
    for name in UNARY:
        scale = 0.1 if name in ("acos", "asin") else 1
        everywhere(torch, lambda t, name=name, scale=scale: getattr(torch, name)(t * scale))
        everywhere(torch, lambda t, name=name, scale=scale: getattr(t * scale, name + "_")())


@operators
def arithmetic(torch):
    shapes = (
        ((4, 3), (4, 3), (0, 0)),
        ((4,), (4, 2, 3), (0, 0)),
        ((4,), (2, 4, 3), (0, 1)),
        ((4,), (2, 3), (0, None)),
        ((2, 3), (4, 3), (None, 0)),
    )
    for op in (torch.add, torch.sub, torch.mul, torch.div, torch.pow):
        for a, b, dims in shapes:
            as_a_loop(torch, op, (numbers(torch, *a), numbers(torch, *b)), dims)
        as_a_loop(torch, op, (numbers(torch, 4).float(), numbers(torch, 4, 2)))
        everywhere(torch, lambda t, op=op: op(t, 2.5))
        everywhere(torch, lambda t, op=op: op(2.5 + t * 0, t))


@operators
def comparison_ops(torch):
    for op in (torch.eq, torch.gt, torch.ge, torch.le, torch.lt, torch.ne):
        as_a_loop(torch, op, (numbers(torch, 4), numbers(torch, 2, 4, 3)), (0, 1))
        everywhere(torch, lambda t, op=op: op(t, 1.5))


@operators
def clone(torch):
    everywhere(torch, lambda t: t.clone())
    x = numbers(torch, 2, 3, 7)
    out = torch.vmap(lambda t: t.clone(memory_format=torch.contiguous_format), 1, 1)(x)
    assert out.movedim(1, 0).is_contiguous()
    with refused("only supported with memory_format torch.preserve_format or torch.contiguous_format"):
        torch.vmap(lambda t: t.clone(memory_format=torch.channels_last))(torch.ones(3))


@operators
def contiguous(torch):
    everywhere(torch, torch.Tensor.contiguous)
    x = numbers(torch, 3, 2, 5, 7).movedim(0, 2)
    assert torch.vmap(torch.Tensor.contiguous, 2, 2)(x) is x
    with refused("NYI: querying is_contiguous inside of vmap for memory_format"):
        torch.vmap(lambda t: t.contiguous(memory_format=torch.channels_last))(torch.ones(3, 3))


@operators
def copy__(torch):
    x, y = numbers(torch, 3), numbers(torch, 3, 2)
    torch.vmap(torch.Tensor.copy_, in_dims=(1, None))(y, x)
    assert near(y, x.expand(2, 3).t())
    with refused("inplace"):
        torch.vmap(torch.Tensor.copy_, in_dims=(None, 0))(x, numbers(torch, 2, 3))


@operators
def fill_and_zero_inplace(torch):
    for op in (lambda t: t.fill_(0.1), lambda t: t.fill_(torch.tensor(0.2)), lambda t: t.zero_()):
        everywhere(torch, op)
    as_a_loop(torch, torch.Tensor.fill_, (numbers(torch, 3, 5), numbers(torch, 3)))
    with refused(""):
        torch.vmap(torch.Tensor.fill_, (None, 0))(torch.ones(3, 5), torch.ones(3))


@operators
def conj(torch):
    as_a_loop(torch, torch.conj, (numbers(torch, 2, 3) * (1 + 2j),))
    x = torch.ones(3)
    assert torch.vmap(torch.conj)(x).data_ptr() == x.data_ptr()


@operators
def conj_bit(torch):
    x, seen = torch.tensor([1 + 1j, 2 + 1j]), []
    out = torch.vmap(lambda t: (seen.append((t.is_conj(), t.conj().is_conj())), t.conj())[1])(x)
    assert seen == [(False, True)] and near(out, x.conj())


@operators
def real(torch):
    as_a_loop(torch, torch.real, (numbers(torch, 2, 4, 3) * (1 + 2j),), 1, 0, True)


@operators
def imag(torch):
    as_a_loop(torch, torch.imag, (numbers(torch, 2, 4, 3) * (1 + 2j),), 1, 0, True)


@operators
def view_as_real(torch):
    as_a_loop(torch, torch.view_as_real, (numbers(torch, 2, 4, 3) * (1 + 2j),), 1, 0, True)


@operators
def view_as_complex(torch):
    as_a_loop(torch, torch.view_as_complex, (numbers(torch, 2, 4, 3, 2),), 1, 0, True)
    with refused("Tensor must have a last dimension with stride 1"):
        torch.vmap(torch.view_as_complex, in_dims=1)(numbers(torch, 2, 4))
    with refused("Input tensor must have one or more dimensions"):
        torch.vmap(torch.view_as_complex)(numbers(torch, 4))
    with refused("Tensor must have a last dimension of size 2"):
        torch.vmap(torch.view_as_complex, in_dims=1)(numbers(torch, 3, 2))


@operators
def is_complex(torch):
    f = lambda t: torch.tensor(int(t.is_complex()))  # noqa: E731
    assert near(torch.vmap(f)(torch.ones(3) + 1j), torch.ones(3)) and near(torch.vmap(f)(torch.ones(3)), torch.zeros(3))


@operators
def is_floating_point(torch):
    f = lambda t: torch.tensor(int(t.is_floating_point()))  # noqa: E731
    assert near(torch.vmap(f)(torch.ones(3)), torch.ones(3)) and near(
        torch.vmap(f)(torch.tensor([1, 2])), torch.zeros(2)
    )


@operators
def is_contiguous(torch):
    f = lambda t: torch.tensor(float(t.is_contiguous()))  # noqa: E731
    for x, dim, one in (
        (torch.ones(3, 2, 7), 0, 1),
        (torch.ones(2, 3, 7), 1, 0),
        (torch.ones(2, 3, 7).movedim(1, 0), 0, 0),
    ):
        assert near(torch.vmap(f, in_dims=dim)(x), torch.full((3,), float(one)))
    with refused("NYI: querying is_contiguous inside of vmap for memory_format"):
        torch.vmap(lambda t: (t.is_contiguous(memory_format=torch.channels_last), t)[1])(torch.ones(3, 2, 7, 3))


@operators
def stride(torch):
    seen = []
    for x in (torch.ones(3, 2, 5, 7), torch.ones(2, 3, 5, 7).movedim(1, 0)):
        torch.vmap(lambda t: (seen.append(t.stride()), t)[1])(x)
    assert seen == [(35, 7, 1), (105, 7, 1)]


@operators
def as_strided(torch):
    for x in (numbers(torch, 5, 2, 3), numbers(torch, 5, 3, 2).transpose(1, 2), numbers(torch, 2, 5, 2, 3)[1]):
        s0, s1 = x.stride()[1:]
        at = x.storage_offset()
        for size, steps, offset, f in (
            ([4, 2, 3], [0, s0, s1], at, lambda t: t.expand(4, 2, 3)), ([3, 2], [s1, s0], at, lambda t: t.t()),
            ([2], [s0], at + s1, lambda t: t[:, 1]), ([2], [s0 + s1], at, lambda t: t.diagonal()),
        ):  # fmt: skip
            for y, dim in ((x, 0), (x.movedim(0, -1), -1)):
                out, wanted = torch.vmap(lambda t: t.as_strided(size, steps, offset), dim)(y), torch.vmap(f, dim)(y)
                assert near(out, wanted) and out._base is wanted._base
    for size, steps, offset in (([3], [1], 1), ([4], [1], 0)):
        with refused("This is not supported inside of vmap"):
            torch.vmap(lambda t: t.as_strided(size, steps, offset))(torch.ones(5, 3))


@operators
def result_type(torch):
    a, b, c = torch.ones(2), torch.ones(2, dtype=torch.float64), torch.ones(2, 2)
    for x, y in ((a, b), (a, a.long()), (c, b)):
        kind = torch.vmap(lambda s, t: torch.ones([], dtype=torch.result_type(s, t)))(x, y).dtype
        assert kind == torch.result_type(x[0], y[0])


@operators
def to(torch):
    everywhere(torch, lambda t: t.to(torch.float32))
    everywhere(torch, lambda t: t.int())
    as_a_loop(torch, lambda t, o: t.to(o), (numbers(torch, 4), torch.ones(4)), (0, None))


@operators
def weird_matmul_case(torch):
    torch.vmap(torch.vmap(torch.matmul, in_dims=(None, 0)))(torch.ones(5, 2, 2, 2), torch.ones(5, 7, 2))


@operators
def mode_key(torch):
    for shape, drawn in (((2, 3), (2, 3)), ((2, 3, 4), (2, 3, 1))):
        torch.manual_seed(0)
        out = torch.vmap(torch.vmap(lambda t: t + torch.randn(()), randomness="different"), randomness="different")(
            torch.ones(shape)
        )
        torch.manual_seed(0)
        assert near(out, torch.ones(shape) + torch.randn(drawn))


@operators
def vmap_chunksize(torch):
    x, y = numbers(torch, 4, 5, 6), numbers(torch, 4, 5, 6).cos()
    cases = ((lambda t: t.sin(), (x,), 0), (lambda p: p[0] * p[1], ((x, y),), 0), (lambda t: {"a": t, "b": t + 1}, (x,), 0),
             (lambda d: d["a"] + d["b"].cos(), ({"a": 2.0, "b": y},), ({"a": None, "b": 1},)))  # fmt: skip
    for f, args, dims in cases:
        wanted = torch.vmap(f, in_dims=dims)(*args)
        for size in (1, 2, 3, 7, 100):
            out = torch.vmap(f, in_dims=dims, chunk_size=size)(*args)
            pairs = [(out[k], wanted[k]) for k in wanted] if isinstance(wanted, dict) else [(out, wanted)]
            assert all(near(a, b) for a, b in pairs)


@operators
def vmap_chunksize_error(torch):
    for size in (-1, 0):
        with refused("vmap: chunk_size should be None or greater than 0.", ValueError):
            torch.vmap(torch.sin, chunk_size=size)(torch.ones(4))
    with refused("out_dims is not compatible with the structure of `outputs`", ValueError):
        torch.vmap(torch.sin, out_dims=(0, 0), chunk_size=2)(torch.ones(4, 5))


@operators
def vmap_chunksize_composition(torch):
    x = numbers(torch, 4, 5, 6)
    for size in (1, 2, 3, 100):
        assert near(torch.vmap(torch.vmap(torch.sin, 1, 1, chunk_size=size), 1, 1, chunk_size=size)(x), x.sin())


operators.cannot("names of torch's dispatcher", "silu_backward")
operators.cannot("functorch.experimental.chunk_vmap", "chunk_vmap")


def _pairs(*cases: Any) -> Callable[[Any], None]:
    """Make a program of a function of two tensors, on shapes of both and their axes."""
    op, *shapes = cases

    def program(torch: Any) -> None:
        function = op(torch)
        for a, b, dims in shapes:
            as_a_loop(torch, function, (numbers(torch, *a), numbers(torch, *b)), dims)

    return program


BOTH = {
    "bmm": (lambda torch: torch.bmm, ((4, 2, 3, 5), (2, 5, 3), (0, None)), ((2, 5, 3), (4, 2, 3, 5), (None, 0)), ((4, 2, 3, 5), (4, 2, 5, 3), 0)),
    "mm": (lambda torch: torch.mm, ((4, 2, 5), (5, 2), (0, None)), ((2, 5), (4, 5, 2), (None, 0)), ((4, 2, 5), (5, 4, 2), (0, 1))),
    "mv": (lambda torch: torch.mv, ((4, 2, 5), (5,), (0, None)), ((2, 5), (4, 5), (None, 0)), ((4, 2, 5), (4, 5), 0)),
    "dot": (lambda torch: torch.dot, ((4, 5), (5,), (0, None)), ((5,), (4, 5), (None, 0)), ((4, 5), (5, 4), (0, 1))),
    "cross_batch_size_three": (lambda torch: functools.partial(torch.linalg.cross, dim=-1), ((3, 2, 3), (3, 2, 3), 0), ((2, 3), (3, 2, 3), (None, 0))),
    "cat": (lambda torch: lambda a, b: torch.cat([a, b]), ((4, 2), (4, 3), 0), ((2,), (4, 3), (None, 0)), ((2, 7), (3, 7, 4), (None, 2))),
    "stack": (lambda torch: lambda a, b: torch.stack([a, b], -1), ((4, 3), (4, 3), 0), ((3,), (4, 3), (None, 0)), ((2, 7), (2, 7, 4), (None, 2))),
    "clamp_variant": (lambda torch: torch.clamp_min, ((4, 3), (4, 3), 0), ((4,), (2, 4, 3), (0, 1)), ((2, 3), (4, 3), (None, 0))),
    "clamp_inplace_variant": (lambda torch: torch.clamp_max_, ((4, 3), (4, 3), 0), ((4, 2, 3), (1, 1), (0, None)), ((2, 4, 3), (2, 4, 3), 1)),
}  # fmt: skip
ONE: dict[str, tuple[Any, tuple[int, ...], bool]] = {
    "chunk": (lambda torch: lambda t: torch.chunk(t, 2, -1), (2, 6), True),
    "split": (lambda torch: lambda t: torch.split(t, [1, 3, 2], 1), (2, 6), True),
    "tensor_split": (lambda torch: lambda t: torch.tensor_split(t, [1, 4], 1), (2, 6), True),
    "unbind": (lambda torch: lambda t: torch.unbind(t, 1), (2, 3), True),
    "clamp": (lambda torch: lambda t: t.clamp(-0.5, 1.5), (2, 3), False),
    "diagonal": (lambda torch: lambda t: torch.diagonal(t, 0, 0, 1), (2, 3), True),
    "expand_as": (lambda torch: lambda t: t.expand_as(torch.ones(5, 2, 3)), (2, 3), True),
    "unsqueeze": (lambda torch: lambda t: t.unsqueeze(-1), (2, 3), True),
    "movedim": (lambda torch: lambda t: torch.movedim(t, [0, 1], [1, 0]), (2, 3), True),
    "narrow": (lambda torch: lambda t: torch.narrow(t, -1, 1, 2), (2, 3), True),
    "select": (lambda torch: lambda t: torch.select(t, 1, 1), (2, 3), True),
    "slice": (lambda torch: lambda t: t[:, 1:3], (2, 4), True),
    "squeeze": (lambda torch: lambda t: t.squeeze(0), (1, 3), True),
    "transpose": (lambda torch: lambda t: t.transpose(0, 1), (2, 3), True),
    "t": (lambda torch: torch.t, (2, 3), True),
    "T_numpy": (lambda torch: lambda t: t.T, (2, 3), True),
    "unfold": (lambda torch: lambda t: t.unfold(1, 2, 1), (2, 4), True),
    "sum_dim": (lambda torch: lambda t: t.sum(-1), (2, 3), False),
    "mean_dim": (lambda torch: lambda t: t.mean(0), (2, 3), False),
    "sum": (lambda torch: torch.sum, (2, 3), False),
    "mean": (lambda torch: torch.mean, (2, 3), False),
    "argmax_dim": (lambda torch: lambda t: t.argmax(-1), (2, 3), False),
    "repeat": (lambda torch: lambda t: t.repeat(2, 3), (2, 1), False),
    "roll_no_dims": (lambda torch: lambda t: torch.roll(t, 2), (2, 3), False),
    "slogdet": (lambda torch: torch.linalg.slogdet, (2, 2), False),
    "trace": (lambda torch: torch.trace, (2, 3), False),
    "new_zeros": (lambda torch: lambda t: t.new_zeros(2, 3), (2, 3), False),
    "reshape": (lambda torch: lambda t: t.reshape(3, 2), (2, 3), False),
    "reshape_as": (lambda torch: lambda t: t.reshape_as(torch.ones(6)), (2, 3), False),
    "adaptive_avg_pool2d": (lambda torch: lambda t: torch.nn.functional.adaptive_avg_pool2d(t, (2, 2)), (2, 3, 5), False),
}  # fmt: skip
for _name, _case in BOTH.items():
    _add(operators, _name, _pairs(*_case))
for _name, (_op, _shape, _view) in ONE.items():
    _add(operators, _name, lambda torch, op=_op, shape=_shape, view=_view: everywhere(torch, op(torch), shape, view))


@operators
def view(torch):
    with refused(""):
        torch.vmap(torch.Tensor.view, in_dims=(1, None))(numbers(torch, 2, 7, 5), [10])
    as_a_loop(torch, lambda t: t.view(2, 5), (numbers(torch, 7, 10),), 0, 0, True)


@operators
def view_as(torch):
    with refused(""):
        torch.vmap(torch.Tensor.view_as, in_dims=(1, 0))(numbers(torch, 2, 7, 5), numbers(torch, 7, 10))
    as_a_loop(torch, torch.Tensor.view_as, (numbers(torch, 7, 10), numbers(torch, 7, 2, 5)), 0, 0, True)


@operators
def nll_loss(torch):
    y, t = numbers(torch, 3, 2, 5), torch.tensor([[0, 1], [4, 2], [3, 3]])
    for how in ("mean", "sum", "none"):
        f = functools.partial(torch.nn.functional.nll_loss, reduction=how)
        as_a_loop(torch, f, (y, t))
        as_a_loop(torch, f, (y, t[0]), (0, None))


@operators
def new_empty(torch):
    assert torch.vmap(torch.vmap(lambda t: t.new_empty([2, 3])))(torch.ones(7, 11)).shape == (7, 11, 2, 3)


@operators
def new_empty_strided(torch):
    out = torch.vmap(lambda t: t.new_empty_strided([2, 3], [1, 2]))(torch.ones(7))
    assert out.shape == (7, 2, 3) and out.stride() == (6, 1, 2)


@operators
def unsafe_view(torch):
    as_a_loop(torch, torch.func.grad(lambda a, b: (a @ b).sum()), (numbers(torch, 2, 2, 3, 3), numbers(torch, 2, 3, 3)))


@operators
def conv2d(torch):
    x, w, b = numbers(torch, 3, 2, 4, 6, 6), numbers(torch, 3, 8, 4, 3, 3), numbers(torch, 3, 8)
    conv = torch.nn.functional.conv2d
    for dims in ((0, 0, 0), (0, None, None), (None, 0, None)):
        args = [one if d == 0 else one[0] for one, d in zip((x, w, b), dims, strict=True)]
        as_a_loop(torch, functools.partial(conv, padding=1, stride=2), args, dims)
    as_a_loop(torch, lambda a, c: conv(a, c, groups=2), (x, numbers(torch, 3, 8, 2, 3, 3)))


@operators
def one_hot(torch):
    as_a_loop(torch, lambda t: torch.nn.functional.one_hot(t, 4), (torch.tensor([[0, 3], [1, 2]]),))


# ---- what torch's table of operations has no samples for ----
@others
def index_fill(torch):
    x, index = numbers(torch, 2, 5, 5), torch.tensor([[2, 3], [0, 4]])
    as_a_loop(torch, lambda t, i: torch.index_fill(t, -2, i, 5.0), (x, index))
    as_a_loop(torch, lambda t, i: torch.index_fill(t, 0, i, 1), (x[0], index), (None, 0))


@others
def isnan(torch):
    as_a_loop(torch, torch.isnan, (torch.tensor([[1.0, float("nan")], [0.0, 2.0]]),))


@others
def isinf(torch):
    as_a_loop(torch, torch.isinf, (torch.tensor([[1.0, float("inf")], [0.0, 2.0]]),))


@others
def sum_scalar(torch):
    x = torch.tensor([10.0])
    assert all(near(torch.vmap(f)(x), x) for f in (torch.sum, lambda t: t.sum(0), lambda t: t.sum(-1)))


@others
def foo_like(torch):
    as_a_loop(torch, torch.ones_like, (numbers(torch, 2, 3),))
    as_a_loop(torch, torch.zeros_like, (numbers(torch, 2, 3),))


@others
def flatten(torch):
    as_a_loop(torch, lambda t: torch.flatten(t, 1, 2), (numbers(torch, 2, 3, 4, 5),))


@others
def group_norm(torch):
    x, w, b = numbers(torch, 2, 3, 4, 5), numbers(torch, 2, 4), numbers(torch, 2, 4)
    as_a_loop(torch, lambda t, w, b: torch.nn.functional.group_norm(t, 2, w, b), (x, w, b))


@others
def index_put(torch):
    def write(x, y, z):
        x = x.clone()
        x[y] = z
        return x

    x, y, z = numbers(torch, 3, 4, 5), torch.tensor([[0, 1], [2, 3], [1, 1]]), numbers(torch, 3, 2, 5)
    for dims in ((0, 0, 0), (0, None, None), (0, None, 0), (0, 0, None)):
        args = [one if d == 0 else one[0] for one, d in zip((x, y, z), dims, strict=True)]
        as_a_loop(torch, write, args, dims)


@others
def batch_norm(torch):
    x, mean, var = (
        numbers(torch, 3, 8, 2, 4),
        torch.zeros(3, 2, dtype=torch.float64),
        torch.ones(3, 2, dtype=torch.float64),
    )
    for training in (True, False):
        as_a_loop(torch, lambda a, m, v: torch.nn.functional.batch_norm(a, m, v, training=training), (x, mean, var))


@others
def torch_return_types_returns(torch):
    x = numbers(torch, 3, 2, 2)
    assert isinstance(torch.vmap(torch.min, (0, None))(x, 0), torch.return_types.min)
    assert isinstance(torch.vmap(torch.topk, (0, None, None))(x, 1, 0), torch.return_types.topk)


@others
def namedtuple_returns(torch):
    point = namedtuple("point", ["x", "y"])
    assert isinstance(torch.vmap(lambda a: point(a, a))(torch.ones(2, 5)), point)


@others
def inplace_on_view(torch):
    def f(leaf):
        base = leaf * leaf
        turned = base.transpose(0, 1)
        turned[2:4, 2:4] *= 2
        turned[0:2, 0:2].diagonal().sin_()
        return turned[1:3, 1:3].cos_()

    as_a_loop(torch, lambda x, g: torch.func.vjp(f, x)[1](g)[0], (numbers(torch, 3, 4, 4), numbers(torch, 3, 2, 2)))


@others
def advanced_indexing(torch):
    x, i = numbers(torch, 5, 5, 5), torch.tensor([[0, 1, 2], [1, 1, 0], [2, 0, 4], [3, 3, 3], [4, 0, 1]])
    for f in (lambda t, k: t[:, k], lambda t, k: t[k, :]):
        as_a_loop(torch, f, (x, i))
        as_a_loop(torch, f, (x, i[0]), (0, None))
        as_a_loop(torch, f, (x[0], i), (None, 0))


@others
def nested_advanced_indexing(torch):
    e, i = numbers(torch, 7, 4), torch.tensor([[0], [1]])
    out = torch.vmap(lambda k: torch.vmap(lambda c: c[k], in_dims=1)(e))(i)
    assert near(out, torch.stack([torch.stack([e[:, c][k] for c in range(4)]) for k in i]))


@others
def linalg_svd(torch):
    x = numbers(torch, 3, 4, 2)
    u, s, vh = torch.vmap(lambda t: torch.linalg.svd(t, full_matrices=False))(x)
    assert near(u @ torch.diag_embed(s) @ vh, x)


@others
def linalg_eigh(torch):
    x = numbers(torch, 3, 4, 4)
    x = x + x.mT
    values, q = torch.vmap(torch.linalg.eigh)(x)
    assert near(q @ torch.diag_embed(values) @ q.mT, x)


_add(others, "slogdet", lambda torch: as_a_loop(torch, torch.slogdet, (numbers(torch, 2, 3, 3).sin(),)))


@others
def vmap_multi_dot_failure_1D_input(torch):
    with refused("tensor 1 must be 2D but got 1D"):
        torch.vmap(torch.linalg.multi_dot)(tuple(torch.ones(3, 3) if k == 1 else torch.ones(3, 3, 3) for k in range(3)))


@others
def vmap_escaped_error(torch):
    kept = []
    torch.vmap(lambda t: (kept.append(t), t**2)[1])(torch.ones(3, 3))
    for use in (lambda t: t.sin(), lambda t: t.sin_(), lambda t: t.mul_(1), lambda t: t.argmin()):
        with refused("your tensor may have escaped from inside a function being vmapped"):
            use(kept[0])


@others
def vmap_with_anomaly_detection(torch):
    with torch.autograd.set_detect_anomaly(True):
        x = torch.zeros(3) - 1
        assert near(torch.vmap(torch.func.grad(lambda t: t.sum()))(x), torch.ones(3))
        with refused("Function 'SqrtBackward0' returned nan values in its 0th output."):
            torch.vmap(torch.func.grad(lambda t: t.sqrt().sum()))(x)


# ---- gradients of batches ----
def batched(name: str, op: Any, *shapes: tuple[int, ...], twice: bool = True) -> None:
    """Add a program: gradients for a batch of cotangents are those of a loop, also of the gradient."""

    def program(torch: Any) -> None:
        args = [numbers(torch, *shape).requires_grad_() for shape in shapes]
        out = op(torch)(*args)
        outs = [one for one in (out if isinstance(out, tuple) else (out,)) if one.requires_grad]

        def check(ends: Any) -> None:
            seeds = [numbers(torch, 3, *one.shape) for one in ends]
            pull = lambda *v: tuple(  # noqa: E731
                g for g in torch.autograd.grad(ends, args, v, retain_graph=True, allow_unused=True) if g is not None
            )
            as_a_loop(torch, pull, seeds)

        check(outs)
        if twice:
            ones = [torch.ones_like(one) for one in outs]
            check([g for g in torch.autograd.grad(outs, args, ones, create_graph=True) if g.requires_grad])

    _add(gradients, name, program)


S = (2, 3)
batched("add", lambda torch: torch.add, S, S, twice=False)
batched("sub", lambda torch: torch.sub, S, S, twice=False)
batched("mul", lambda torch: torch.mul, S, S)
batched("div", lambda torch: torch.div, S, S)
batched(
    "binary_cross_entropy",
    lambda torch: lambda x: torch.nn.functional.binary_cross_entropy(x.sigmoid(), torch.full(S, 0.3).double()),
    S,
)
batched("log_softmax", lambda torch: lambda x: torch.log_softmax(x, -1), S)
batched("expand", lambda torch: lambda x: x.expand(5, 5, 2, 3), S, twice=False)
batched("index", lambda torch: lambda x: (x * x)[torch.tensor([[0, 0], [1, 1]])], S)
batched("lgamma", lambda torch: torch.lgamma, S)
batched("log", lambda torch: torch.log, S)
batched("logsumexp", lambda torch: lambda x: torch.logsumexp(x, -1), S)
batched("log1p", lambda torch: torch.log1p, S)
batched("max", lambda torch: torch.max, S, twice=False)
batched("median", lambda torch: torch.median, S, twice=False)
batched("min", lambda torch: torch.min, S, twice=False)
batched("permute", lambda torch: lambda x: x.permute(2, 0, 1), (2, 3, 5), twice=False)
batched("reshape", lambda torch: lambda x: x.reshape(6, 5), (2, 3, 5), twice=False)
batched("sigmoid", lambda torch: torch.sigmoid, S)
batched("stack", lambda torch: lambda x, y: torch.stack([x, y]), S, S, twice=False)
batched("select", lambda torch: lambda x: (x[1], x.select(1, 2)), S, twice=False)
batched("slice", lambda torch: lambda x: (x[0:1], x[..., 1:3]), S, twice=False)
batched("trace", lambda torch: torch.trace, S, twice=False)
batched("threshold", lambda torch: lambda x: torch.nn.functional.threshold(x, 1.5, 0.0), S, twice=False)
batched("inplace_view", lambda torch: lambda x: (x * x)[0].cos_(), (4, 5))
batched("inplace_manyview", lambda torch: lambda x: (x * x).transpose(0, 2)[1].diagonal()[::2].cos_(), (4, 4, 5))
batched("diagonal", lambda torch: lambda x: x.diagonal(1, 0, 1), (4, 5), twice=False)


@gradients
def where(torch):
    x = numbers(torch, 3, 2) - 1.5
    as_a_loop(torch, lambda a: torch.where(a > 0, a, torch.ones(2).double()), (x,))
    with refused(
        "Attempted to vmap over aten::where|We do not support batching operators that can output dynamic shape"
    ):
        torch.vmap(lambda t: torch.where(t))(x)


@gradients
def unrelated_output(torch):
    x, y = torch.ones([], requires_grad=True), torch.ones([], requires_grad=True)
    pull = lambda v: torch.zeros_like(x) if (g := torch.autograd.grad(y, x, v, allow_unused=True)[0]) is None else g  # noqa: E731
    assert near(torch.vmap(pull)(torch.ones(3)), torch.zeros(3))


_add(gradients, "unrelated_output_multiple_grad", lambda torch: (unrelated_output(torch), unrelated_output(torch))[0])


# ---- random numbers: what is drawn is held by tests/func/test_random_samples.py ----
def modes(torch: Any, f: Any, x: Any, dims: Any, expected: dict[str, str]) -> None:
    for randomness, what in expected.items():
        torch.manual_seed(1)
        mapped = torch.vmap(f, in_dims=dims, randomness=randomness)
        if what in ("same", "different"):
            out = mapped(x, torch.zeros(4)).double()
            alike = bool((out == out[:1]).all())
            assert alike == (what == "same"), (randomness, what)
        else:
            with refused(what):
                mapped(x, torch.zeros(4))


ERROR = "called random operation while in randomness error mode"
FREE = {"error": ERROR, "same": "same", "different": "different"}
BATCHED = {
    "error": ERROR,
    "same": "Vmap does not currently support same randomness with a batched tensor input",
    "different": "different",
}
FIXED = {"error": ERROR, "same": "same", "different": "different inplace randomness on an unbatched tensor"}


def randomly(name: str, *functions: Any, whole: Any = FREE, single: Any = FREE) -> None:
    """Add a program: functions of a batch on the first axis, on the last, and of a tensor that is no batch."""

    def program(torch: Any) -> None:
        for f in functions:
            run = lambda t, _, f=f: f(torch, t)  # noqa: E731
            modes(torch, run, torch.full((4, 3, 40), 0.4), (0, 0), whole)
            modes(torch, run, torch.full((3, 40, 4), 0.4), (-1, 0), whole)
            modes(torch, run, torch.full((3, 40), 0.4), (None, 0), single)

    _add(random, name, program)


randomly(
    "factory_ops",
    lambda t, x: t.randn(3, 3),
    lambda t, x: t.rand(3, 3),
    lambda t, x: t.randint(100, (3, 3)),
    lambda t, x: t.normal(0.0, 1.0, (3, 3)),
)
randomly("randperm", lambda t, x: t.randperm(10))
randomly("dropout", lambda t, x: t.nn.functional.dropout(x))
randomly("alpha_dropout", lambda t, x: t.nn.functional.alpha_dropout(x, training=True))
randomly(
    "feature_dropout",
    lambda t, x: t.nn.functional.dropout2d(x[:, :, None, None]),
    lambda t, x: t.nn.functional.dropout3d(x[:, :, None, None, None]),
)
randomly("feature_alpha_dropout", lambda t, x: t.nn.functional.feature_alpha_dropout(x, training=True))
randomly(
    "like_functions", lambda t, x: t.randint_like(x, 20), lambda t, x: t.rand_like(x), lambda t, x: t.randn_like(x)
)
randomly("random_unary_inplace", lambda t, x: x.random_(100), lambda t, x: x.normal_(), lambda t, x: x.bernoulli_(), lambda t, x: x.cauchy_(),
         lambda t, x: x.exponential_(), lambda t, x: x.geometric_(0.5), lambda t, x: x.log_normal_(), lambda t, x: x.uniform_(), single=FIXED)  # fmt: skip
randomly("bernoulli_in_place", lambda t, x: x.bernoulli_(t.full((3, 40), 0.5)), single=FIXED)
randomly("random_binary_out_of_place", lambda t, x: t.normal(x, x), lambda t, x: t.binomial(x * 10, x), whole=BATCHED)
randomly("random_unary_out_of_place", lambda t, x: t.normal(0.0, x), lambda t, x: t.normal(x, 1.0), lambda t, x: t.bernoulli(x), lambda t, x: t.bernoulli(x, 0.5),
         lambda t, x: t._standard_gamma(x), lambda t, x: t._sample_dirichlet(x), lambda t, x: t.poisson(x * 5), whole=BATCHED)  # fmt: skip
randomly("multinomial", lambda t, x: t.multinomial(x, 10), lambda t, x: t.multinomial(x[0], 10), whole=BATCHED)
randomly("dropout_unbatched", lambda t, x: t.nn.functional.dropout(t.ones(3, 40)))


@random
def unsupported_random(torch):
    for f in (
        lambda t: torch.randn(3, out=torch.ones(3)),
        lambda t: torch.normal(torch.ones(3), torch.ones(3), out=torch.ones(3)),
    ):
        with refused("calling out variants"):
            torch.vmap(f, randomness="same")(torch.ones(3))
    with refused("do not yet support"):
        torch.vmap(lambda t: torch.rrelu(torch.ones(3)), randomness="same")(torch.ones(3))


_add(random, "vmap_chunksize", lambda torch: [modes(
    torch, lambda t, _: t.sin() + torch.rand_like(t), torch.ones(4, 6), (0, 0), {"different": "different"}) for _ in range(1)] and None)  # fmt: skip
random.cannot("functorch.experimental.chunk_vmap", "chunk_vmap")


@random
def jacfwd_with_random(torch):
    x = torch.full((3, 4), 0.5)
    with refused(ERROR):
        torch.func.jacfwd(torch.bernoulli)(x)
    for randomness in ("same", "different"):
        torch.func.jacfwd(torch.bernoulli, randomness=randomness)(x)


@failure
def fails_with_autograd_function(torch):
    own = type(
        "Own",
        (torch.autograd.Function,),
        {"forward": staticmethod(lambda _, x: x), "backward": staticmethod(lambda _, g: g)},
    )
    f, x = own.apply, torch.ones([])
    for run in (lambda: torch.vmap(f)(torch.ones(5)), lambda: torch.func.grad(f)(x), lambda: torch.func.grad_and_value(f)(x), lambda: torch.func.vjp(f, x),
                lambda: torch.func.jvp(f, (x,), (x,)), lambda: torch.func.jacrev(f)(x), lambda: torch.func.jacfwd(f)(x)):  # fmt: skip
        with refused("autograd.Function"):
            run()
