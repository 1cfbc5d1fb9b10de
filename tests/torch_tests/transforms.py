# ruff: noqa: E501, PT018 - tables of cases, and programs that hold several things
"""grad, vjp, jvp and the Jacobians: structures, what is refused, modes, views and writes, custom Functions."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from tests.torch_tests.suite import Suite, near, refused

argnums = Suite("TestSliceArgnums")
grads = Suite("TestGradTransform")
functions = Suite("TestAutogradFunctionVmapAPI")
of_grad = Suite("TestVmapOfGrad")
jacobians = Suite("TestJac")
hessians = Suite("TestHessian")
pushed = Suite("TestJvp")
linear = Suite("TestLinearize")
written = Suite("TestVmapJvpInplaceView")
composed = Suite("TestComposability")
stacked = Suite("TestMakeFunctional")
plain = Suite("TestFunctionalize")

grads.cannot("functions of torch._C", "escaped_wrappers_are_marked_as_dead", "escaped_wrappers_are_ignored",
             "pop_dynamic_layer_stack_to_depth_single", "pop_dynamic_layer_stack_to_depth_mixed", "linear_nd_inplace_activation")  # fmt: skip
grads.cannot("sparse tensors", "layout_sparse")
composed.cannot(
    "make_fx", "make_fx_vmap", "make_fx_jacrev", "make_fx_vjp", "can_use_functionalize_when_key_is_excluded"
)
composed.cannot("keys of torch's dispatcher", "can_use_vmap_when_key_is_excluded", "can_use_grad_when_key_is_excluded")
plain.cannot("make_fx", "functionalize_opt_tensor_list", "functionalize_fx_simple", "functionalize_fx_transpose_simple", "functionalize_fx_out_op",
             "functionalize_fx_multi_out_op", "functionalize_fx_reapply_views_simple", "functionalize_nonfunctional_output",
             "functionalize_optional_tensorlist1", "functionalize_optional_tensorlist2", "resize_program_inputs", "functionalize_fake_tensors")  # fmt: skip


def x3(torch: Any) -> Any:
    return torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)


def _slice(torch: Any, *given: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}._functorch.eager_transforms")._slice_argnums(*given)


@argnums
def invalid_argnum_type(torch):
    for numbers, words in (
        (0.0, "int or Tuple"),
        ([0], "int or Tuple"),
        ((0.0,), "must be int"),
        (((0, 1), 2), "must be int"),
    ):
        with refused(words):
            _slice(torch, (1, 2, 3), numbers)


@argnums
def out_of_bounds_argnum_values(torch):
    for numbers in (1, -2, (-2,)):
        with refused("positional inputs"):
            _slice(torch, (1,), numbers)


@argnums
def not_enough_argnums(torch):
    with refused("must be non-empty"):
        _slice(torch, (1,), ())


@argnums
def duplicate_argnums(torch):
    for numbers in ((0, 0), (0, -2)):
        with refused("must be unique"):
            _slice(torch, (1, 2), numbers)


@argnums
def flat_args_with_positive_int_argnum(torch):
    assert _slice(torch, (1, 2, 3), 0) == (1,) and _slice(torch, (1, 2, 3), 2) == (3,)


@argnums
def flat_args_with_negative_int_argnum(torch):
    assert _slice(torch, (1, 2, 3), -1) == (3,) and _slice(torch, (1, 2, 3), -3) == (1,)


@argnums
def flat_args_with_tuple_argnum(torch):
    assert _slice(torch, (1, 2, 3), (0, 1, 2)) == (1, 2, 3) and _slice(torch, (1, 2, 3), (0, -1)) == (1, 3)


@argnums
def pytree_args(torch):
    assert _slice(torch, ((1, 2), 3, [4]), (0, -2)) == ((1, 2), 3) and _slice(torch, ((1, 2), 3, [4]), -1) == ([4],)


@argnums
def argnums_reorders(torch):
    assert _slice(torch, ((1, 2), 3), (1, 0)) == (3, (1, 2))


# ---- grad and vjp ----
@grads
def primitive(torch):
    x = torch.tensor(0.4)
    assert near(torch.func.grad(torch.sin)(x), x.cos())


@grads
def composite_simple(torch):
    x = torch.rand(2, 3, 4)
    assert near(torch.func.grad(lambda t: torch.flatten(t).sum())(x), torch.ones_like(x))


@grads
def fn_with_kwargs(torch):
    x, f = x3(torch), lambda x, y: (x * y).sum()
    assert near(torch.func.grad(f)(x, y=x * 2), x * 2)


@grads
def composite_complicated(torch):
    x, y = x3(torch), torch.ones(3, 5, dtype=torch.float64) * 2
    assert near(torch.func.grad(lambda a, b: (a @ b).sum())(x, y), y.sum(1))


@grads
def composite_two_ops(torch):
    y, t = torch.rand(2, 5), torch.tensor([1, 4])
    ours = torch.func.grad(torch.nn.functional.cross_entropy)(y, t)
    y.requires_grad_()
    assert near(ours, torch.autograd.grad(torch.nn.functional.cross_entropy(y, t), y)[0])


def _attribute(name: str, read: Any) -> None:
    def program(torch: Any) -> None:
        x, seen = torch.ones(2, 3, 5, dtype=torch.float64), []
        torch.func.grad(lambda t: (seen.append(read(t)), t.sum())[1])(x)
        assert seen == [read(x)]

    program.__name__ = name
    grads(program)


_attribute("shape", lambda t: tuple(t.shape))
_attribute("dtype", lambda t: t.dtype)
_attribute("is_cuda", lambda t: t.is_cuda)
_attribute("numel", lambda t: t.numel())


@grads
def inplace(torch):
    x = torch.tensor(0.4)
    assert near(torch.func.grad(lambda t: t.clone().sin_())(x), x.cos())


@grads
def inplace_on_view(torch):
    def f(t):
        y = t.clone()
        y[0].sin_()
        return y.sum()

    x = x3(torch)
    assert near(torch.func.grad(f)(x), torch.stack([x[0].cos(), x[0] * 0 + 1, x[0] * 0 + 1]))


@grads
def inplace_on_view_base(torch):
    def f(t):
        y = t.clone()
        first = y[0]
        y.sin_()
        return first

    x = x3(torch)
    assert near(torch.func.grad(f)(x), torch.stack([x[0].cos(), x[0] * 0, x[0] * 0]))


def _captured(torch: Any) -> None:
    kept = torch.ones(3)

    def f(t):
        kept.copy_(t)
        return (t * kept).sum()

    with refused("mutate a captured Tensor"):
        torch.func.grad(f)(torch.ones(3))


for _suite in (grads, pushed):
    _suite.programs["inplace_on_captures"] = _captured


@grads
def nesting_simple(torch):
    x = torch.tensor(0.4)
    assert near(torch.func.grad(torch.func.grad(torch.sin))(x), -x.sin())


@grads
def manual_seed_inside_grad(torch):
    def f(t):
        torch.manual_seed(0)
        return t * torch.randn_like(t)

    x = torch.tensor(0.4, requires_grad=True)
    assert near(torch.func.grad(f)(x.detach()), torch.autograd.grad(f(x), x)[0])


@grads
def vjp(torch):
    x = torch.tensor(0.4)
    out, pull = torch.func.vjp(torch.sin, x)
    assert near(out, x.sin()) and near(pull(torch.tensor(2.0))[0], 2 * x.cos())


@grads
def vjp_two_outputs(torch):
    out, pull = torch.func.vjp(lambda t: (t, t), torch.tensor(1.0))
    assert near(pull(out)[0], 2.0)


@grads
def conj_bit(torch):
    x, seen = torch.tensor(1 + 1j), []
    out = torch.func.grad(lambda t: (seen.append((t.is_conj(), t.conj().is_conj())), t.conj().abs())[1])(x)
    assert seen == [(False, True)] and near(out, torch.sgn(x))


@grads
def composed_with_autograd(torch):
    x = torch.tensor(0.4, requires_grad=True)
    assert near(torch.autograd.grad(torch.func.grad(torch.sin)(x), x)[0], -x.sin())


@grads
def grad_of_vjp_composition(torch):
    x, y = torch.tensor(0.4), torch.tensor(2.0)
    pull = torch.func.vjp(torch.sin, x)[1]
    assert near(torch.func.grad(lambda v: pull(v)[0])(y), x.cos())


@grads
def vjp_of_grad_composition(torch):
    x, y = torch.tensor(0.4), torch.tensor(2.0)
    assert near(torch.func.vjp(torch.func.grad(torch.sin), x)[1](y)[0], -y * x.sin())


@grads
def grad_of_vjp_of_grad_composition(torch):
    x = torch.tensor(0.4)
    pull = torch.func.vjp(torch.func.grad(lambda t: -torch.cos(t)), x)[1]
    assert near(torch.func.grad(lambda v: pull(v)[0])(torch.tensor(2.0)), x.cos())


@grads
def views(torch):
    x, y = torch.tensor(0.4, requires_grad=True), torch.tensor(0.5, requires_grad=True)
    out = torch.func.grad(lambda t: t.view([]).sin())(x) + torch.cos(y)
    a, b = torch.autograd.grad(out, [x, y])
    assert near(a, -x.sin()) and near(b, -y.sin())


@grads
def view_inplace_simple(torch):
    def f(t):
        t = t.clone()
        t.view([]).sin_()
        return t

    x = torch.tensor(0.4, requires_grad=True)
    assert near(torch.func.grad(f)(x), x.cos())


@grads
def invalid_argnums(torch):
    x = torch.tensor(0.4)
    cases = (
        (-3, "but only"),
        (2, "but only"),
        ([0], "int or Tuple"),
        (("0",), "must be int"),
        ((0, 0), "must be unique"),
        ((0, -2), "must be unique"),
    )
    for numbers, words in cases:
        with refused(words):
            torch.func.grad(torch.mul, argnums=numbers)(x, x)


def _products(torch: Any) -> None:
    x, y = torch.tensor(2.0), torch.tensor(3.0)
    for numbers, wanted in ((0, y), (1, x), (-1, x), (-2, y), ((0,), [y]), ((1, 0), [x, y]), ((-2, -1), [y, x])):
        assert near(torch.func.grad(torch.mul, argnums=numbers)(x, y), wanted)


for _name in ("argnums", "out_of_order_argnums", "negative_argnums"):
    grads.programs[_name] = _products


@grads
def grad_pytree_inputs(torch):
    x = torch.tensor(1.0)
    f = lambda a, b: a[0] + 2 * a[1] + 3 * b["foo"]  # noqa: E731
    (a, b), c = torch.func.grad(f, argnums=(0, 1))((x, x), {"foo": x})
    assert near([a, b, c["foo"]], [1.0, 2.0, 3.0])


@grads
def grad_aux_tensor(torch):
    x = x3(torch)
    for f in (lambda t: [t, t], lambda t: (t, t, t)):
        with refused(r"grad_and_value\(f\)\(\*args\): output of function f should be a tuple"):
            torch.func.grad(f, has_aux=True)(x)
    out, aux = torch.func.grad(lambda t: (t.sin().sum(), t.cos()), has_aux=True)(x)
    assert near(out, x.cos()) and near(aux, x.cos())


def _aux(torch: Any, run: Any) -> None:
    for aux in (1, 1.0, "abc"):
        for given in (aux, [torch.ones(2), aux]):
            with refused("Expected tensors, got unsupported type"):
                run(lambda t, given=given: (t.sum(), given))


@grads
def grad_aux_pytree(torch):
    _aux(torch, lambda f: torch.func.grad(f, has_aux=True)(x3(torch)))


@grads
def vjp_aux_pytree(torch):
    _aux(torch, lambda f: torch.func.vjp(f, x3(torch), has_aux=True))


@pushed
def aux_pytree(torch):
    _aux(torch, lambda f: torch.func.jvp(f, (x3(torch),), (x3(torch),), has_aux=True))


@grads
def zero_grad(torch):
    out = torch.func.grad(lambda d: (d["a"] ** 2).sum())({"a": torch.ones(3), "b": torch.ones(3)})
    assert near(out["a"], 2.0) and near(out["b"], 0.0)


@grads
def unrelated_grad(torch):
    y = torch.tensor(2.0)
    assert near(torch.func.grad(lambda t: y)(torch.tensor(1.0)), 0.0)


@grads
def unrelated_vjp(torch):
    y = torch.tensor(2.0)
    assert near(torch.func.vjp(lambda t: y, torch.tensor(1.0))[1](y)[0], 0.0)


@grads
def unrelated_vjp_multiple_inputs_outputs(torch):
    y, one = torch.tensor(2.0), torch.tensor(1.0)
    assert near(torch.func.vjp(lambda w, x: (y, y, x), one, one)[1]((one, one, one)), [0.0, 1.0])


@grads
def unrelated_hessian(torch):
    w = torch.rand(5, 3)
    assert near(torch.func.jacrev(torch.func.jacrev(lambda t: w @ t))(torch.rand(3)), 0.0)


@grads
def vjp_pytree_input(torch):
    x, v = torch.tensor(3.0), torch.tensor(2.0)
    out, pull = torch.func.vjp(lambda t: t[0] * t[1][0], (x, (x, x)))
    ((a, (b, c)),) = pull(v)
    assert near([out, a, b, c], [9.0, 6.0, 6.0, 0.0])


@grads
def vjp_pytree_output(torch):
    one = torch.tensor(1.0)
    assert near(torch.func.vjp(lambda t: (t, (t, t)), one)[1]((one, (one, one)))[0], 3.0)


def _outputs(torch: Any, run: Any, name: str) -> None:
    for output in (None, ()):
        with refused(f"{name}.*: Expected f to be a function that has non-empty output"):
            run(lambda _, output=output: output)
    for output in (1, True, 12.2, "abc"):
        with refused(rf"{name}.*: expected f\(\*primals\) to return only tensors"):
            run(lambda _, output=output: output)
    for f in (
        lambda t: [t, t.sum()],
        lambda t: {"x": t, "s": t.sum()},
        lambda t: [(t.sum(), {"a": t, "out": [t, t.sum()]})],
    ):
        run(f)


@grads
def vjp_outputs_can_any_pytree(torch):
    _outputs(torch, lambda f: torch.func.vjp(f, x3(torch)), "vjp")


@pushed
def outputs_can_any_pytree(torch):
    _outputs(torch, lambda f: torch.func.jvp(f, (x3(torch),), (x3(torch),)), "jvp")


@grads
def vjp_pytree_error(torch):
    one = torch.tensor(1.0)
    with refused("Expected pytree structure"):
        torch.func.vjp(lambda t: (t, (t, t)), one)[1](((one, (one, one)),))


@grads
def vjp_aux_tensor(torch):
    x = x3(torch)
    with refused(r"vjp\(f, \*primals\): output of function f should be a tuple"):
        torch.func.vjp(lambda t: [t, t], x, has_aux=True)
    out, pull, aux = torch.func.vjp(lambda t: (t.sin(), t.cos()), x, has_aux=True)
    assert near(out, x.sin()) and near(aux, x.cos()) and near(pull(x)[0], x * x.cos())


@grads
def advanced_indexing(torch):
    def f(t):
        t = t.clone()
        t[t > 0] = 0
        return t.sum()

    x = x3(torch)
    assert near(torch.func.grad(f)(x), (x <= 0).double())


@grads
def tensor_ctor_inside_grad(torch):
    assert near(torch.func.grad(lambda t: t * torch.tensor(2.0))(torch.tensor(3.0)), 2.0)


@grads
def tensor_print(torch):
    texts = []
    look = lambda t: (texts.append(repr(t)), t.mean())[1]  # noqa: E731
    torch.vmap(look)(torch.ones(4, 2))
    torch.func.grad(look)(torch.ones(4, 2))
    torch.vmap(torch.func.grad(look))(torch.ones(4, 2))
    assert texts[0].startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor(") and texts[1].startswith(
        "GradTrackingTensor(lvl=1, value=\n"
    )
    assert texts[2].startswith(
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n        tensor("
    )


@grads
def print_captured_tensor_inside_transform(torch):
    x, texts = torch.tensor([1.0, 2.0]), []
    torch.func.vjp(lambda t: (texts.append(repr(x)), t)[1], torch.ones(4))
    assert texts == [repr(x)]


@grads
def no_grad_outside(torch):
    x = torch.tensor(0.4, requires_grad=True)
    with torch.no_grad():
        y = torch.func.grad(torch.sin)(x)
    assert near(y, x.cos()) and not y.requires_grad


def _shifted(torch: Any) -> Any:
    def f(t):
        with torch.no_grad():
            shift = t**2
        return t**2 - shift

    return f


@grads
def no_grad_inside(torch):
    x, f, grad = torch.tensor(0.4, requires_grad=True), _shifted(torch), torch.func.grad
    assert near(grad(f)(x.detach()), 0.8) and near(grad(grad(f))(x.detach()), 2.0)
    assert near(torch.autograd.grad(grad(f)(x), x)[0], 2.0)


@grads
def no_grad_mixed(torch):
    x = torch.tensor(0.4, requires_grad=True)
    with torch.no_grad():
        y = torch.func.grad(_shifted(torch))(x)
    assert near(y, 0.8) and not y.requires_grad


@grads
def no_grad_nested_simple(torch):
    def h(t):
        with torch.no_grad():
            shift = torch.func.grad(lambda u: 0.25 * u**4)(t)
        return t**3 - shift

    x = torch.tensor(1.5, requires_grad=True)
    y = torch.func.grad(h)(x)
    assert near(y, 3 * x**2) and near(torch.autograd.grad(y, x)[0], 6 * x)


@grads
def no_grad_nested_complicated(torch):
    def f(t):
        with torch.no_grad():
            shift = t**3
        return t**3 - shift

    def g(t):
        first = torch.func.grad(f)(t)
        with torch.no_grad():
            shift = torch.func.grad(f)(t)
        return first - shift

    x = torch.tensor(0.7, requires_grad=True)
    y = torch.func.grad(g)(x)
    assert near(y, 6 * x) and near(torch.autograd.grad(y, x)[0], 6.0)


@grads
def no_grad_value(torch):
    def h(t):
        with torch.no_grad():
            _, value = torch.func.grad_and_value(lambda u: u**3)(t)
        return t**3 - value

    x = torch.tensor(1.6, requires_grad=True)
    y = torch.func.grad(h)(x)
    assert near(y, 3 * x**2) and near(torch.autograd.grad(y, x)[0], 6 * x)


@grads
def no_grad_outside_vjp(torch):
    x = torch.tensor(2.0, requires_grad=True)
    with torch.no_grad():
        out, pull = torch.func.vjp(lambda t: t**2, x)
        (y,) = pull(torch.tensor(1.0))
    assert near(y, 4.0) and not y.requires_grad and not out.requires_grad


@grads
def no_grad_outside_vjp_fn(torch):
    x = torch.tensor(2.0, requires_grad=True)
    out, pull = torch.func.vjp(lambda t: t**2, x)
    with torch.no_grad():
        (y,) = pull(torch.tensor(1.0))
    assert near(y, 4.0) and not y.requires_grad and near(torch.autograd.grad(out, x)[0], 4.0)


@grads
def no_grad_outside_vjp_only(torch):
    x = torch.tensor(2.0, requires_grad=True)
    with torch.no_grad():
        out, pull = torch.func.vjp(lambda t: t**2, x)
    (y,) = pull(torch.tensor(1.0))
    assert not out.requires_grad and near(torch.autograd.grad(y, x)[0], 2.0)


INFERENCE = {
    "outside_grad": lambda torch, x: (torch.func.grad(lambda t: (t**2).sum())(x), 2 * x),
    "outside_vjp": lambda torch, x: (
        torch.func.vjp(lambda t: (t**2).sum(), x)[1](torch.tensor(1.0).double())[0],
        2 * x,
    ),
    "outside_jvp": lambda torch, x: (torch.func.jvp(lambda t: (t**2).sum(), (x,), (x * 0 + 1,))[1], (2 * x).sum()),
    "outside_jacrev": lambda torch, x: (torch.func.jacrev(lambda t: t**2)(x), torch.diag(2 * x)),
    "outside_vmap_grad": lambda torch, x: (torch.vmap(torch.func.grad(lambda t: (t**2).sum()))(x[None]), 2 * x[None]),
    "outside_grad_vmap": lambda torch, x: (
        torch.func.grad(lambda t: torch.vmap(lambda u: (u**2).sum())(t).sum())(x),
        2 * x,
    ),
    "nested_grad": lambda torch, x: (torch.func.grad(torch.func.grad(lambda t: t**3))(x[0]), 6 * x[0]),
    "jacrev_grad": lambda torch, x: (torch.func.jacrev(torch.func.grad(lambda t: (t**3).sum()))(x), torch.diag(6 * x)),
}


def _inference(run: Any) -> Any:
    def program(torch: Any) -> None:
        x = x3(torch)
        with torch.inference_mode():
            ours, wanted = run(torch, x)
        assert near(ours, wanted) and not torch.is_inference_mode_enabled()

    return program


for _name, _run in INFERENCE.items():
    grads.programs[f"inference_mode_{_name}"] = _inference(_run)


# ---- Functions under vmap ----
def _function(torch: Any, **methods: Any) -> Any:
    given = {
        "forward": lambda x: x * 1,
        "setup_context": lambda ctx, inputs, output: None,
        "backward": lambda ctx, g: g,
        **methods,
    }
    return type("Own", (torch.autograd.Function,), {n: staticmethod(m) if callable(m) else m for n, m in given.items()})


@functions
def no_vmap_staticmethod_and_no_generate_vmap_rule(torch):
    with refused("does not have vmap support"):
        torch.vmap(_function(torch).apply)(torch.ones(3))


@functions
def has_vmap_staticmethod_and_has_generate_vmap_rule(torch):
    with refused("generate_vmap_rule=True and"):
        torch.vmap(_function(torch, generate_vmap_rule=True, vmap=lambda i, d, x: (x, 0)).apply)(torch.ones(3))


@functions
def info_object(torch):
    seen = []
    own = _function(torch, vmap=lambda i, d, x: (seen.append((i.batch_size, i.randomness)), (x, d[0]))[1])
    for randomness in ("error", "different", "same"):
        torch.vmap(own.apply, randomness=randomness)(torch.ones(10, 3))
    assert seen == [(10, "error"), (10, "different"), (10, "same")]


@functions
def in_dims_single_input(torch):
    seen = []
    own = _function(torch, vmap=lambda i, d, x: (seen.append((d, tuple(x.shape))), (x, d[0]))[1])
    torch.vmap(own.apply, in_dims=1)(torch.ones(3, 10))
    assert seen == [((1,), (3, 10))]


@functions
def in_dims_multiple_inputs(torch):
    seen = []
    own = _function(torch, forward=lambda x, y: None, vmap=lambda i, d, x, y: (seen.append(d), ((x, y), d))[1])
    torch.vmap(own.apply)(torch.ones(2), [torch.ones(2), torch.ones(2)])
    assert seen == [(0, [0, 0])] and isinstance(seen[0][1], list)


@functions
def skips_empty_layer(torch):
    def never(i, d, x):
        raise AssertionError("called")

    torch.vmap(lambda t: (_function(torch, vmap=never).apply(torch.tensor(1.0)), t * 1)[1])(torch.ones(2, 3))


@functions
def none_returns(torch):
    zeros = _function(torch, vmap=lambda i, d, x: (torch.zeros(3), None))
    assert near(torch.vmap(zeros.apply)(torch.ones(2, 3)), 0.0)
    two = _function(torch, vmap=lambda i, d, x: ((torch.zeros(3), torch.zeros(3)), None))
    out = torch.vmap(two.apply)(torch.ones(2, 3))
    assert isinstance(out, tuple) and out[0].shape == (2, 3)


@functions
def should_have_two_returns(torch):
    for rule in (lambda i, d, x: x, lambda i, d, x: (x, x, 0, 0)):
        with refused("to have two returns"):
            torch.vmap(_function(torch, vmap=rule).apply)(torch.ones(2, 3))


@functions
def incompatible_out_dims_error_msg(torch):
    for rule in (lambda i, d, x: (x, (None,)), lambda i, d, x: ([x], (None,))):
        with refused("returned an incompatible"):
            torch.vmap(_function(torch, vmap=rule).apply)(torch.ones(2, 3))


@functions
def kwarg_only_tensors(torch):
    with refused("kwarg-only Tensor args", NotImplementedError):
        own = _function(torch, forward=lambda x, *, y: x + y, vmap=lambda i, d, x, *, y: (x + y, 0))
        torch.vmap(own.apply)(torch.ones(3), y=torch.ones(3))


# ---- gradients of samples ----
def _samples(name: str, loss: Any, *shapes: tuple[int, ...]) -> None:
    def program(torch: Any) -> None:
        first, *rest = [(torch.arange(float(torch.tensor(s).prod())) * 0.3).cos().reshape(s) for s in shapes]
        run = partial(torch.func.grad(partial(loss, torch)), first)
        wanted = torch.stack([run(*[one[k] for one in rest]) for k in range(rest[0].shape[0])])
        assert near(torch.vmap(run)(*rest), wanted, 1e-4)

    of_grad.programs[name] = program


_samples("per_sample_grads_simple", lambda torch, w, x, t: ((x @ w - t) ** 2).sum(), (6, 2), (4, 6), (4, 2))
_samples(
    "per_sample_grads_inplace_view", lambda torch, w, x, t: (x.mm(w).squeeze_(0) - t).sum(), (6, 2), (4, 1, 6), (4, 2)
)
_samples("new_zeros_materializes_tensor", lambda torch, w, x: x.new_zeros((5,)).copy_(w * x[0]).sum(), (5,), (3, 2))
_samples("new_empty_materializes_tensor", lambda torch, w, x: x.new_empty((5,)).copy_(w * x[0]).sum(), (5,), (3, 2))
_samples("log_softmax", lambda torch, w, x: (torch.log_softmax(x * w, -1) * x).sum(), (5,), (3, 5))


@of_grad
def per_sample_grads_embeddingnet(torch):
    net = torch.nn.Sequential(torch.nn.Embedding(20, 4), torch.nn.Flatten(0), torch.nn.Linear(20, 2))
    params = dict(net.named_parameters())
    data, target = torch.arange(15).reshape(3, 5), torch.tensor([0, 1, 1])
    loss = lambda p, x, t: torch.nn.functional.cross_entropy(torch.func.functional_call(net, p, (x,)), t)  # noqa: E731
    ours = torch.vmap(torch.func.grad(loss), (None, 0, 0))(params, data, target)
    for k in range(3):
        alone = torch.func.grad(loss)(params, data[k], target[k])
        assert all(near(ours[n][k], alone[n], 1e-4) for n in params)


# ---- Jacobians: each program runs jacrev and jacfwd ----
def of_jacobians(program: Any) -> Any:
    def run(torch: Any) -> None:
        for jac in (torch.func.jacrev, torch.func.jacfwd):
            program(torch, jac)

    jacobians.programs[program.__name__] = run
    return program


@of_jacobians
def simple(torch, jac):
    x = x3(torch)
    assert near(jac(torch.sin)(x), torch.diagflat(x.cos()))


@of_jacobians
def simple_not_flat(torch, jac):
    x = x3(torch).repeat(2, 1)
    assert near(jac(torch.sin)(x), torch.diagflat(x.view(-1).cos()).view(2, 3, 2, 3))


@of_jacobians
def take(torch, jac):
    f = lambda t: torch.take(t, torch.ones(3, dtype=torch.long))  # noqa: E731
    assert near(jac(f)(torch.rand(5)), torch.autograd.functional.jacobian(f, torch.rand(5)))


@of_jacobians
def diff_numel(torch, jac):
    out = jac(lambda t: t[0, 1:].unsqueeze(-1))(torch.rand(2, 4))
    assert out.shape == (3, 1, 2, 4) and near(out.sum(), 3.0)


@of_jacobians
def vmap_on_jac_simple(torch, jac):
    x = torch.rand(2, 3)
    assert near(torch.vmap(jac(torch.sin))(x), torch.diag_embed(x.cos()))


@of_jacobians
def nested_jac_simple(torch, jac):
    x = x3(torch)
    assert near(jac(jac(lambda t: t.sin().sum()))(x), torch.diagflat(-x.sin()))


@of_jacobians
def multiple_args(torch, jac):
    x = x3(torch)
    assert near(jac(torch.multiply, argnums=1)(x, x * 2), torch.diagflat(x))


@of_jacobians
def multiple_outputs_multiple_argnums(torch, jac):
    x, eye = x3(torch), torch.eye(3)
    out = jac(lambda a, b: (2 * a + 3 * b, 4 * a + 5 * b), argnums=(0, 1))(x, x)
    assert near(out, ((2 * eye, 3 * eye), (4 * eye, 5 * eye))) and isinstance(out[0], tuple)


@of_jacobians
def multiple_outputs_single_argnums(torch, jac):
    x, eye, f = x3(torch), torch.eye(3), lambda a, b: (2 * a + 3 * b, 4 * a + 5 * b)
    assert near(jac(f, argnums=0)(x, x), (2 * eye, 4 * eye)) and near(
        jac(f, argnums=(0,))(x, x), ((2 * eye,), (4 * eye,))
    )


@of_jacobians
def multiple_outputs_pytree(torch, jac):
    x, eye = x3(torch), torch.eye(3)
    out = jac(lambda a, b: {"left": 2 * a + 3 * b, "right": 4 * a}, argnums=(0, 1))(x, x)
    assert near(out["left"], (2 * eye, 3 * eye)) and near(out["right"], (4 * eye, 0 * eye))


@of_jacobians
def multiple_inputs_pytree(torch, jac):
    x = torch.tensor(1.0)
    f = lambda a, b, c: a[0] + a[1] * 2 + b * 3 + c * 4  # noqa: E731
    assert near(jac(f, argnums=(0, 1, 2))((x, x), x, x), ((1.0, 2.0), 3.0, 4.0)) and near(
        jac(f)((x, x), x, x), (1.0, 2.0)
    )


@of_jacobians
def dimensionality(torch, jac):
    assert jac(lambda t: t)(torch.rand([])).dim() == 0 and jac(lambda t: t)(torch.rand(1)).shape == (1, 1)


@of_jacobians
def aux_tensor(torch, jac):
    x = x3(torch)
    out, aux = jac(lambda t: (t.clone(), t.cos()), has_aux=True)(x)
    assert near(out, torch.eye(3)) and near(aux, x.cos())


jacobians.programs["aux_pytree"] = lambda torch: [
    _aux(torch, lambda f, jac=jac: jac(f, has_aux=True)(x3(torch))) for jac in (torch.func.jacrev, torch.func.jacfwd)
]
jacobians.programs["outputs_can_any_pytree"] = lambda torch: [
    _outputs(torch, lambda f, jac=jac: jac(f)(x3(torch)), "(vjp|jvp)") for jac in (torch.func.jacrev, torch.func.jacfwd)
]


@of_jacobians
def multiple_inputs_outputs_pytree(torch, jac):
    x = torch.tensor(1.0)
    out = jac(lambda a, b, c: (a[0] + a[1] * 2, {"foo": b * 3 + c * 4}), argnums=(0, 1))((x, x), x, x)
    assert near(out[0], ((1.0, 2.0), 0.0)) and near(out[1]["foo"], ((0.0, 0.0), 3.0))


@of_jacobians
def multiple_inputs_outputs_pytree_multidim(torch, jac):
    x = x3(torch)
    out = jac(lambda d: {"c": d["a"].sin(), "d": d["b"].cos()})({"a": x, "b": x})
    assert (
        near(out["c"]["a"], x.cos().diagflat())
        and near(out["c"]["b"], 0.0)
        and near(out["d"]["b"], -x.sin().diagflat())
    )


@of_jacobians
def unrelated_input(torch, jac):
    x = torch.rand(2, 3)
    out = jac(lambda a, b: a, argnums=(0, 1))(x, x)
    assert near(out[0], torch.eye(6).view(2, 3, 2, 3)) and near(out[1], torch.zeros(2, 3, 2, 3))


@of_jacobians
def unrelated_output(torch, jac):
    y = torch.rand(2, 3)
    assert near(jac(lambda t: y)(y), torch.zeros(2, 3, 2, 3))


@of_jacobians
def empty_output(torch, jac):
    with refused("xpected"):
        jac(lambda a: ())(torch.rand(3))


def _argument_numbers(torch, jac):
    x = x3(torch)
    assert near(jac(torch.multiply, argnums=(0, 1))(x, x * 2), (torch.diagflat(x * 2), torch.diagflat(x)))
    assert isinstance(jac(torch.multiply, argnums=(0,))(x, x), tuple) and not isinstance(
        jac(torch.multiply)(x, x), tuple
    )
    for numbers, words in (((), "must be non-empty"), (2, "only 1 positional inputs"), (-2, "only 1 positional inputs"),
                           ((0, 0), "must be unique"), (0.0, "must be int or Tuple"), ((0.0,), "must be int")):  # fmt: skip
        with refused(words):
            jac(torch.sin, argnums=numbers)(x)


for _name in ("argnums_tuple", "argnums_effect_on_return", "argnums_defaults_to_zero", "empty_argnums", "out_of_bounds_argnums", "negative_argnums",
              "repeated_argnums", "float_argnums"):  # fmt: skip
    _argument_numbers.__name__ = _name
    of_jacobians(_argument_numbers)


def _reference(name: str, f: Any, *shapes: tuple[int, ...]) -> None:
    def program(torch: Any, jac: Any) -> None:
        args = tuple((torch.arange(float(torch.tensor(s).prod() if s else 1)) * 0.7).sin().reshape(s) for s in shapes)
        out, wanted = jac(lambda a: f(torch)(*a))(args), torch.autograd.functional.jacobian(f(torch), args)
        assert near(out, wanted, 1e-4)

    program.__name__ = name
    of_jacobians(program)


_reference("against_reference_simple", lambda torch: lambda x: 3 * x**2, (2, 3))
_reference("against_reference_multi_input", lambda torch: lambda x, y: (x.cos() * x) @ y.sin(), (2, 3), (3, 2))
_reference(
    "against_reference_multi_input_multi_output",
    lambda torch: lambda x, y: ((x * x) @ y, x @ (x.sum(1) * y), y.sum()),
    (3, 2),
    (2, 3),
)
_reference("against_reference_unrelated_outputs", lambda torch: lambda x, y: (x, y, x, y), (2,), (3,))
_reference("against_reference_zero_dim", lambda torch: lambda x, y: (y.sum(), x * y), (), (1,))
_reference(
    "against_reference_correctness_different_devices", lambda torch: lambda x, y: (x * y, (x * y).to("cpu")), (3,), (3,)
)
_reference("against_reference_default_arg", lambda torch: lambda x, y, z=3.0: x * y * z, (3,), (3,))


@of_jacobians
def inplace_(torch, jac):
    def f(x, y):
        y.copy_(x)
        return y

    assert near(jac(f)(torch.rand(2), torch.rand(2)), torch.eye(2))


jacobians.programs["inplace"] = jacobians.programs.pop("inplace_")


@of_jacobians
def jac_with_non_tensor_args(torch, jac):
    assert near(jac(lambda t, n: t + n)(torch.rand(3), 3), torch.eye(3))


@jacobians
def chunk_jacrev(torch):
    x, y = torch.rand(4, 2), torch.rand(1, 2)
    f = lambda a, b: ((a.sin(), a + b), (a + 2, a.sum()))  # noqa: E731
    wanted = torch.func.jacrev(f, argnums=(0, 1))(x, y)
    for size in (1, 2, 3, 1000):
        for copy in (True, False):
            assert near(torch.func.jacrev(f, argnums=(0, 1), chunk_size=size, _preallocate_and_copy=copy)(x, y), wanted)
    with refused("jacrev: `chunk_size` should be greater than 0.", ValueError):
        torch.func.jacrev(f, chunk_size=0)(x, y)


@jacobians
def chunk_jacrev_composition(torch):
    x, jac, f = torch.rand(4, 2), torch.func.jacrev, lambda t: (t.sin(), t.sum())
    assert near(torch.vmap(jac(jac(f, chunk_size=3), chunk_size=3))(x), torch.vmap(jac(jac(f)))(x))


@jacobians
def chunk_jacrev_chunksize_one(torch):
    own = _function(torch, forward=lambda x: x, backward=lambda ctx, g: (g.nonzero(), g)[1])
    assert near(torch.func.jacrev(own.apply, chunk_size=1)(torch.rand(3)), torch.eye(3))
    with refused("vmap: We do not support batching operators that can output dynamic shape."):
        torch.func.jacrev(own.apply, chunk_size=2)(torch.rand(3))


@jacobians
def complex_error(torch):
    for name in ("jacrev", "jacfwd"):
        with refused(f"{name}: Expected all inputs"):
            getattr(torch.func, name)(lambda t: t.conj())(torch.ones(1) + 1j)
        with refused(f"{name}: Expected all outputs"):
            getattr(torch.func, name)(lambda t: torch.conj(t * 0.5j))(torch.ones(1))


@jacobians
def hessian_simple(torch):
    assert torch.func.hessian(lambda t: t.sin())(torch.rand(3)).shape == (3, 3, 3)


def _hessian(name: str, f: Any, *shapes: tuple[int, ...]) -> None:
    def program(torch: Any) -> None:
        args = tuple((torch.arange(float(torch.tensor(s).prod())) * 0.7).sin().reshape(s) for s in shapes)
        out, wanted = (
            torch.func.hessian(lambda a: f(torch)(*a))(args),
            torch.autograd.functional.hessian(f(torch), args),
        )
        assert near(out, wanted, 1e-4)

    hessians.programs[name] = program


_hessian("hessian_vectorize_correctness_simple", lambda torch: lambda x: (3 * x**2).sum(), (2, 3))
_hessian(
    "hessian_vectorize_correctness_multi_input",
    lambda torch: lambda x, y: ((x.relu() * x) @ y.sin()).sum(),
    (2, 3),
    (3, 2),
)
_hessian("hessian_vectorize_correctness_unrelated_outputs", lambda torch: lambda x, y: (x**2).sum(), (2,), (3,))


@hessians
def jacfwd_different_levels(torch):
    x, a = torch.rand(2, 5, 2, dtype=torch.float64), torch.rand(2, 2, 2, dtype=torch.float64)
    loss = lambda a, x: ((x - (a @ x.T).T) ** 2).sum()  # noqa: E731
    assert near(
        torch.vmap(torch.func.hessian(loss))(a, x), torch.vmap(torch.func.jacrev(torch.func.jacrev(loss)))(a, x)
    )


# ---- jvp ----
@pushed
def simple(torch):  # noqa: F811
    x = x3(torch)
    assert near(torch.func.jvp(torch.sin, (x,), (x,)), (x.sin(), x.cos() * x))


@pushed
def multiple_inputs(torch):
    x = x3(torch)
    assert near(torch.func.jvp(torch.mul, (x, x * 2), (x, x)), (2 * x * x, 3 * x * x))


@pushed
def pytree_inputs(torch):
    one = torch.tensor(1.0)
    f = lambda x, y, z: x[0] + 2 * x[1] + 3 * y + 4 * z  # noqa: E731
    assert near(torch.func.jvp(f, ((one, one), one, one), ((one, one), one, one)), (10.0, 10.0))


def _refused_inputs(torch: Any) -> None:
    x, f = torch.ones(2), lambda *a: a[0]
    for primals, tangents, words in (
        (x, x, "Expected primals to be a tuple"), (((x, x), x), (x, x), "same python structure"), (((x, x), 1), ((x, x), x), "only contain Tensors"),
        (((),), ((),), "at least one Tensor"), ((x,), (x, x), "same python structure"), ((), (), "at least one Tensor"), ((x,), x, "same python structure"),
        ((x,), [x], "same python structure"), ((1.0,), (x,), "only contain Tensors"), ((x,), (1.0,), "only contain Tensors"),
    ):  # fmt: skip
        with refused(words):
            torch.func.jvp(f, primals, tangents)


for _name in (
    "pytree_inputs_error_cases",
    "primals_tangents_length_mismatch",
    "nonempty_primals_and_tangents",
    "inputs_are_tuples_of_tensors",
):
    pushed.programs[_name] = _refused_inputs


@pushed
def unrelated_input(torch):  # noqa: F811
    x = x3(torch)
    assert near(torch.func.jvp(lambda a, b: a, (x, x), (x * 2, x)), (x, x * 2))


@pushed
def unrelated_output(torch):  # noqa: F811
    x, y = x3(torch), torch.ones(2)
    assert near(torch.func.jvp(lambda a: y, (x,), (x,)), (y, y * 0))


@pushed
def strict_mode(torch):
    x = x3(torch)
    with refused("strict"):
        torch.func.jvp(lambda t: (t, x), (x,), (x,), strict=True)


@pushed
def multiple_outputs(torch):
    x = x3(torch)
    assert near(
        torch.func.jvp(lambda t: (t.sin(), t.cos()), (x,), (x,)), ((x.sin(), x.cos()), (x.cos() * x, -x.sin() * x))
    )


@pushed
def multiple_inputs_outputs(torch):
    x, f = x3(torch), lambda a, b: (2 * a + 3 * b, 4 * a + 5 * b)
    assert near(torch.func.jvp(f, (x, x), (x, x * 2)), (f(x, x), f(x, x * 2)))


@pushed
def jvp_new_tensor(torch):
    x = x3(torch)
    assert near(torch.func.jvp(lambda t: t + t.new_tensor(0.5), (x,), (x * 0,)), (x + 0.5, x * 0))


@pushed
def aux_tensor(torch):  # noqa: F811
    x = x3(torch)
    for f in (lambda t: [t, t], lambda t: (t, t, t)):
        with refused(r"jvp\(f, primals, tangents\): output of function f should be a tuple"):
            torch.func.jvp(f, (x,), (x,), has_aux=True)
    assert near(torch.func.jvp(lambda t: (t.sin(), t.cos()), (x,), (x,), has_aux=True), (x.sin(), x.cos() * x, x.cos()))


@pushed
def autograd_function_disables_fwd_grad(torch):
    seen = []
    own = type("Own", (torch.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: (seen.append(torch.autograd.forward_ad._is_fwd_grad_enabled()), x * x)[1]),
        "backward": staticmethod(lambda ctx, g: g)})  # fmt: skip
    own.apply(torch.ones(3, requires_grad=True))
    assert seen == [False]


@pushed
def disable_fwd_grad_outside(torch):
    x = torch.tensor(0.4)
    with torch.autograd.forward_ad._set_fwd_grad_enabled(False):
        out = torch.func.jvp(torch.sin, (x,), (torch.ones([]),))[1]
    assert near(out, x.cos())


@pushed
def disable_fwd_grad_inside(torch):
    def f(t):
        with torch.autograd.forward_ad._set_fwd_grad_enabled(False):
            shift = t**2
        return t**2 - shift

    x, one = torch.tensor(0.4), torch.ones([])
    push = lambda t: torch.func.jvp(f, (t,), (one,))[1]  # noqa: E731
    assert near(push(x), 0.8) and near(torch.func.jvp(push, (x,), (one,))[1], 2.0)


pushed.programs["disable_fwd_grad_mixed"] = disable_fwd_grad_inside


@pushed
def jvp_inside_autograd_function(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return -torch.func.jvp(torch.cos, (x,), (torch.ones_like(x),))[1]

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]

    own = type(
        "Own", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )
    x = torch.tensor(0.4, requires_grad=True)
    y = own.apply(x)
    assert near(y, x.sin()) and near(torch.autograd.grad(y, x)[0], x.cos())


@pushed
def zerotensor_vmapjvp_interaction(torch):
    x, t = torch.rand(4, 2), torch.rand(2)
    torch.vmap(torch.vmap(lambda d, a: torch.func.jvp(torch.cov, (a,), (t,)), (0, None)))(torch.ones(4, 1), x)


# ---- linearize ----
@linear
def linearize_basic(torch):
    x = x3(torch)
    out, push = torch.func.linearize(torch.cos, x)
    assert near(out, x.cos()) and near(push(x), -x.sin() * x)


@linear
def linearize_return(torch):
    x = x3(torch)
    _, push = torch.func.linearize(lambda t: (t.cos(), t.sum()), x)
    assert near(push(x), (-x.sin() * x, x.sum()))


@linear
def linearize_composition_vmap(torch):
    x = x3(torch)
    push = torch.func.linearize(lambda t: (t.cos(), t.sum()), x)[1]
    assert near(torch.vmap(push)(torch.diag(x))[0], torch.diag(-x.sin() * x))


@linear
def linearize_composition_grad(torch):
    x = x3(torch)
    assert near(torch.func.linearize(lambda t: torch.func.grad(lambda u: (u**2).sum())(t), x)[1](x), 2 * x)


@linear
def linearize_nested_input_nested_output(torch):
    x = x3(torch)
    f = lambda a: {"a": a["x"].sum(), "b": {"c": a["yz"][0] + a["yz"][1]}}  # noqa: E731
    given = {"x": x, "yz": (x, x)}
    out = torch.func.linearize(f, given)[1](given)
    assert near(out["a"], x.sum()) and near(out["b"]["c"], 2 * x)


@linear
def linearize_errors(torch):
    x = x3(torch)
    push = torch.func.linearize(torch.sin, x)[1]
    for given, words in (
        ((x, x), "to have the same argspec as the primals"),
        (x[None], "doesn't match the shape"),
        (x.float(), "doesn't match the dtype"),
    ):
        with refused(words):
            push(given)


# ---- duals, batches, views and writes ----
def _written(name: str, f: Any, expected: Any) -> None:
    def program(torch: Any) -> None:
        x, t = torch.arange(12.0).reshape(2, 2, 3).clone(), torch.arange(12.0).reshape(2, 2, 3).cos()
        y, s = x.sin(), x.cos() * 2
        out = torch.vmap(lambda *a: torch.func.jvp(f, (a[0], a[2]), (a[1], a[3])), in_dims=1)(
            x.clone(), t.clone(), y, s
        )
        loop = [torch.func.jvp(f, (x[:, k].clone(), y[:, k]), (t[:, k].clone(), s[:, k])) for k in range(2)]
        for part in (0, 1):
            for place in (0, 1):
                assert near(out[part][place], torch.stack([one[part][place] for one in loop]))
        expected(x, out)

    written.programs[name] = program


def _copied(x: Any, y: Any) -> Any:
    x.copy_(y)
    return x, x * 1


def _through_view(x: Any, y: Any) -> Any:
    x[:, ::2].copy_(y[:, ::2])
    return x[:, ::2], x


def _through_base(x: Any, y: Any) -> Any:
    part = x[0, ::2]
    x.copy_(y)
    return x, part


def _clone_view(x: Any, y: Any) -> Any:
    x = x.detach().clone()
    x[0].copy_(y[0])
    return x[0], x


def _clone_base(x: Any, y: Any) -> Any:
    x = x.detach().clone()
    part = x[0]
    x.copy_(y)
    return part, x


for _name, _f in (("all_dual_no_view", _copied), ("all_dual_base_view_inplace", _through_view), ("all_dual_base_inplace", _through_base),
                  ("right_dual_view_prop", _clone_view), ("right_dual_base_prop", _clone_base)):  # fmt: skip
    _written(_name, _f, lambda x, out: None)


# ---- transforms of transforms ----
def _compositions(torch: Any) -> None:
    x, f = x3(torch), torch.func
    assert near(f.grad(f.grad(torch.sin))(x[0]), -x[0].sin()) and near(
        f.grad(lambda t: torch.vmap(torch.sin)(t).sum())(x), x.cos()
    )
    assert near(f.grad(lambda t: f.vjp(torch.sin, t)[1](t)[0].sum())(x), x.cos() - x * x.sin()) and near(
        torch.vmap(f.grad(torch.sin))(x), x.cos()
    )
    assert near(torch.vmap(torch.vmap(torch.sin))(x[None]), x[None].sin()) and near(
        torch.vmap(f.vjp(torch.sin, x)[1])(x[None])[0], (x * x.cos())[None]
    )
    assert near(f.vjp(f.grad(torch.sin), x[0])[1](x[1])[0], -x[0].sin() * x[1]) and near(
        f.vjp(torch.vmap(torch.sin), x)[1](x)[0], x * x.cos()
    )
    assert near(f.vjp(lambda t: f.vjp(torch.sin, x)[1](t)[0], x)[0], x * x.cos())


for _name in (
    "grad_grad",
    "grad_vmap",
    "grad_vjp",
    "vmap_grad",
    "vmap_vmap",
    "vmap_vjp",
    "vjp_grad",
    "vjp_vmap",
    "vjp_vjp",
):
    composed.programs[_name] = _compositions


@composed
def requires_grad_inside_transform(torch):
    f = lambda t: (t.requires_grad_(), t.sin().sum())[1]  # noqa: E731
    for run in (torch.vmap(f), torch.func.grad(f), torch.vmap(torch.func.grad(f))):
        with refused(r"Tensor.requires_grad_\(\)"):
            run(torch.ones(3))


@composed
def retain_grad_inside_transform(torch):
    with refused(r"Tensor.retain_grad\(\)"):
        torch.func.grad(lambda t: (t.sin().retain_grad(), t.sum())[1])(torch.ones(3))


def _functional(name: str, run: Any) -> None:
    def program(torch: Any) -> None:
        f = lambda t: run(torch.autograd.functional, lambda u: u.sin().sum(), t)  # noqa: E731
        with refused("torch.autograd.functional"):
            torch.vmap(f)(torch.ones(5, 3))
        with refused("torch.autograd.functional"):
            torch.func.grad(f)(torch.ones([]))

    composed.programs[name] = program


_functional("autograd_functional_jacrev_inside_transform", lambda a, f, t: a.jacobian(f, t))
_functional("autograd_functional_vjp_inside_transform", lambda a, f, t: a.vjp(f, t))
_functional("autograd_functional_jvp_inside_transform", lambda a, f, t: a.jvp(f, (t,), (t * 0 + 1,)))


@composed
def autograd_functional_jacfwd_inside_transform(torch):
    with refused("Batching rule not implemented for aten::_make_dual"):
        torch.vmap(
            lambda t: torch.autograd.functional.jacobian(
                lambda u: u.sin().sum(), t, strategy="forward-mode", vectorize=True
            )
        )(torch.ones(5, 3))


@composed
def autograd_function_no_setup_context(torch):
    own = type(
        "Own",
        (torch.autograd.Function,),
        {"forward": staticmethod(lambda ctx, x: x.sin()), "backward": staticmethod(lambda ctx, g: g)},
    )
    for name in ("vmap", "grad", "jacrev", "jacfwd", "grad_and_value", "hessian", "functionalize"):
        with refused("must override the setup_context"):
            getattr(torch.func, name)(own.apply)(torch.ones(3))


def _hooks(torch: Any, run: Any) -> None:
    with refused("saved tensor hooks"), torch.autograd.graph.save_on_cpu():
        run(lambda t: torch.sin(t).sum())


@composed
def transforms_dont_support_saved_tensor_hooks(torch):
    for name in ("grad", "jacrev", "grad_and_value", "hessian"):
        _hooks(torch, lambda f, name=name: getattr(torch.func, name)(f)(torch.ones(3)))


@composed
def vjp_doesnt_support_saved_tensor_hooks(torch):
    _hooks(torch, lambda f: torch.func.vjp(f, torch.ones(3)))


@composed
def jvp_supports_saved_tensor_hooks(torch):
    with torch.autograd.graph.save_on_cpu():
        torch.func.jvp(lambda t: torch.sin(t).sum(), (torch.ones(3),), (torch.ones(3),))


# ---- modules ----
@stacked
def stack_module_state_smoke(torch):
    torch.func.stack_module_state([torch.nn.Linear(2, 2) for _ in range(3)])


@stacked
def stack_module_state_leaf(torch):
    params, _ = torch.func.stack_module_state([torch.nn.Linear(2, 2) for _ in range(3)])
    assert all(one.requires_grad and one.is_leaf for one in params.values())


@stacked
def stack_module_state_mismatch_error(torch):
    models = [torch.nn.Linear(2, 2) for _ in range(3)]
    models[0].weight.requires_grad_(False)
    with refused("same .requires_grad"):
        torch.func.stack_module_state(models)


@stacked
def stack_module_state_error(torch):
    with refused("stack_module_state:.* Expected at least one model"):
        torch.func.stack_module_state([])
    models = [torch.nn.Linear(2, 2) for _ in range(3)]
    models[1].eval()
    with refused("stack_module_state:.* same training/eval mode."):
        torch.func.stack_module_state(models)
    with refused("stack_module_state:.* models to be of the same class"):
        torch.func.stack_module_state([torch.nn.Linear(2, 2), torch.nn.Conv2d(3, 3, (3, 3))])


@stacked
def using_detach_functional_call(torch):
    net = torch.nn.Linear(3, 3)
    for detach in (True, False):
        params = {n: p.detach() if detach else p for n, p in net.named_parameters()}
        assert (torch.func.functional_call(net, params, torch.ones(2, 3)).grad_fn is None) == detach


# ---- functionalize ----
def _same(name: str, f: Any) -> None:
    def program(torch: Any) -> None:
        run = partial(f, torch)
        given = [torch.zeros(4, 2) for _ in range(3)]
        outs = [
            run(given[0]),
            torch.func.functionalize(run)(given[1]),
            torch.func.functionalize(run, remove="mutations_and_views")(given[2]),
        ]
        assert (
            near(outs[1], outs[0]) and near(outs[2], outs[0]) and near(given[1], given[0]) and near(given[2], given[0])
        )

    plain.programs[name] = program


def _viewed(torch: Any, x: Any) -> Any:
    x.view(4, 2).add_(torch.ones(2))
    return x


def _split(torch: Any, x: Any) -> Any:
    x.split(2)[0].diagonal().add_(torch.ones(2))
    return x


def _turned(torch: Any, x: Any) -> Any:
    y = x + x
    y.transpose(1, 0)[0].add_(torch.ones(4))
    return y


def _many(torch: Any, x: Any) -> Any:
    z = x.view(8).reshape(2, 4).transpose(1, 0)
    z.unsqueeze_(0)
    z.squeeze_()
    z.split(2)[0].add_(torch.ones(2, 2))
    return x


for _name, _f in (
    ("simple_view", _viewed),
    ("multioutput_view", _split),
    ("inplace_view", _turned),
    ("multioutput_inplace_slice_view", _many),
):
    _same(_name, _f)


@plain
def functionalize_grad(torch):
    def f(t):
        y = t + t
        z = y.view(4, 2)
        y.add_(torch.ones(2))
        return z.sum()

    x = torch.ones(4, 2)
    assert near(torch.func.grad(torch.func.functionalize(f))(x), torch.func.grad(f)(x))
