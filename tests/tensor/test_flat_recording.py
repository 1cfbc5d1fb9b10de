"""The flat recorders do what the general way does, for every kind of primitive; and what else makes small calls quick."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import retrograd

EXPRESSIONS = """
a[0]; a[-1]; a[1:]; a[::2]; a[None]; a[...]; m[0, 1]; m[:, 1]; m[..., 0]; m[None, :, 1]; a[k]; m[k]; m[:, k]; m[k, k]; a[mask]
m.t(); m.view(-1); m.reshape(3, 1, 3); m.permute(1, 0); a.unsqueeze(1); m[:1].squeeze(0); m.expand(2, 3, 3); m.diagonal()
a.sum(); m.sum(0); m.mean(1, keepdim=True); m.amax(1); m.max(1)[0]; m.sort(1)[0]; m.softmax(1); m.logsumexp(0); a.prod()
a @ b; m @ a; m @ m; lib.cat([a, b]); lib.stack([a, b], 1); m.gather(1, km); m.index_select(0, k); m.scatter(1, km, m)
lib.index_put(a, (k,), b); a.masked_fill(mask, 2.0); lib.where(mask, a, b); lib.where(mask, a, 0.5); a.clone(); m.cumsum(1)
a ** 2; 2.0 - a; a.clamp(0.0, 1.0); a.clamp(b, b + 1); lib.lerp(a, b, 0.3); lib.lerp(a, b, u); lib.addcmul(a, b, u, value=2)
lib.add(a, b, alpha=2); lib.add(m, a, alpha=2); a.half(); a.round(); lib.rsub(a, b); a * s; s * 2.0; s.view(1); m[1, 1] * a
put(a.clone(), 0, 1.0); put(a.clone(), 0, s); put(m.clone(), (slice(None), 1), b); put(a.clone(), k, b); put(a * 1, slice(1, 3), 2.0)
put(m.clone(), None, 0.0); put(a.clone(), mask, s); a.clone().mul_(b); a.clone().zero_(); a.clone().fill_(s); a.clone().copy_(b)
"""
EVERY = [one.strip() for line in EXPRESSIONS.strip().splitlines() for one in line.split(";")]


def put(target, index, value):
    target[index] = value
    return target


def operands(dtype):
    numbers = np.random.default_rng(0)

    def leaf(*shape):
        return retrograd.tensor(numbers.normal(size=shape), dtype=dtype).requires_grad_()

    found = {"a": leaf(3), "b": leaf(3), "u": leaf(3), "m": leaf(3, 3), "s": leaf()}
    found |= {"k": retrograd.tensor([2, 0, 1]), "km": retrograd.tensor([[2, 0, 1], [0, 1, 2], [1, 1, 0]])}
    return found | {"mask": retrograd.tensor([True, False, True]), "lib": retrograd, "put": put}


def described(node):
    """Describe a graph: names, saved values, edges."""
    saved = {}
    for name in dir(node):
        if name.startswith("_saved"):
            value = getattr(node, name)
            saved[name] = repr(value.tolist() if isinstance(value, retrograd.Tensor) else value)
    following = [
        None if one is None else described(one) for one, _ in node.next_functions if not hasattr(one, "variable")
    ]
    return node.name(), saved, following


def run(expression, dtype, general):
    """Compute, describe the graph, and differentiate; anomaly detection switches the flat recorders off."""
    names = operands(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with retrograd.autograd.set_detect_anomaly(general, check_nan=False):
            out = eval(expression, names)
            graph = described(out.grad_fn)
            values, strides, view = out.tolist(), out.stride(), out._is_view()
            out.backward(retrograd.ones_like(out))
    gradients = {
        n: None if v.grad is None else v.grad.tolist() for n, v in names.items() if n in ("a", "b", "u", "m", "s")
    }
    return values, strides, view, graph, gradients


@pytest.mark.parametrize("expression", EVERY)
@pytest.mark.parametrize("dtype", [retrograd.float32, retrograd.float64, retrograd.bfloat16])
def test_flat_and_general_agree(expression, dtype):
    assert run(expression, dtype, False) == run(expression, dtype, True)


@pytest.mark.parametrize("expression", EVERY)
def test_the_same_without_gradients(expression):
    flat, general = operands(retrograd.float32), operands(retrograd.float32)
    with retrograd.no_grad():
        here = eval(expression, flat)
    with retrograd.inference_mode():
        there = eval(expression, general)
    assert here.tolist() == there.tolist()
    assert here.stride() == there.stride()
    assert here.grad_fn is None
    assert here._is_view() == there._is_view()
    assert not here.is_inference()


WRITES = """
x.add_(1.5); x.sub_(b); x.mul_(2); x.div_(b, rounding_mode=None); x.add_(b, alpha=2); x.add_(x); x.exp_(); x.neg_(); x.sigmoid_()
x.clamp_(0.0, 1.0); x.lerp_(b, 0.3); x.addcmul_(b, u, value=2); x.pow_(2); x.masked_fill_(mask, 0.5); x.masked_fill_(mask, 1)
x.zero_(); x.fill_(2.5); x.fill_(s); x.copy_(b); x.scatter_(0, k, b); x.index_add_(0, k, b); x.index_put_((k,), b)
x.index_put_((k,), b, accumulate=True); put(x, k, b); put(x, mask, s); put(x, (slice(0, 2),), b[:2]); put(x, slice(0, 2), x[1:].clone())
"""


@pytest.mark.parametrize("dtype", [retrograd.float32, retrograd.float16])
@pytest.mark.parametrize("expression", [one.strip() for line in WRITES.strip().splitlines() for one in line.split(";")])
def test_writes_without_gradients(expression, dtype):
    results = []
    for mode in (retrograd.no_grad, retrograd.inference_mode):  # inference mode switches the short ways off
        with mode():
            names = operands(dtype)
            names["x"] = names["a"].clone()
            result = eval(expression, names)
        assert result is names["x"]
        results.append(result.tolist())
        if mode is retrograd.no_grad:
            assert result._version == 1
    assert results[0] == results[1]


@pytest.mark.parametrize("index", [0, -1, slice(1, 3), slice(None), (0,), "k", "mask"])
@pytest.mark.parametrize("value", [1, 2.5, "s", "row"])
def test_writes_at_once_count_versions_and_reach_views(index, value):
    names = operands(retrograd.float32)
    x = names["a"].detach().clone()
    view = x[:2]
    index = names.get(index, index) if isinstance(index, str) else index
    expected = x.numpy().copy()
    place = index.numpy() if isinstance(index, retrograd.Tensor) else index
    if value == "row":
        value = x[index].clone()
    elif value == "s":
        value = names["s"].detach()
    x[index] = value
    expected[place] = value.numpy() if isinstance(value, retrograd.Tensor) else value
    assert x.tolist() == expected.tolist()
    assert x._version == view._version == 1
    assert view.tolist() == expected[:2].tolist()


@pytest.mark.parametrize("index", [3, -4, (0, 0), slice(None, None, -1)])
def test_writes_that_fail_change_nothing(index):
    x = retrograd.ones(3)
    with pytest.raises((IndexError, ValueError)):
        x[index] = 2.0
    assert x.tolist() == [1, 1, 1]
    assert x._version == 0


def test_a_base_forgets_views_that_are_gone_and_keeps_the_others():
    base = retrograd.zeros(4, requires_grad=True) * 1
    kept = [base[i] for i in range(4)]
    for _ in range(1000):
        base[0]
    gc.collect()
    assert len(base._storage.views) < 40
    base.mul_(2)
    assert all(view.grad_fn.name() == "AsStridedBackward0" for view in kept)


def test_many_live_views_take_linear_time():
    base = retrograd.zeros(20_000)
    views = list(
        base[i] for i in range(20_000)
    )  # a reference each: looking through all of them each time takes minutes
    assert len(base._storage.views) == len(views)


@pytest.mark.parametrize(
    "operation", [lambda j: j % 2, lambda j: j // 2, lambda j: j + j, lambda j: j * 2, lambda j: j < 2]
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers_keep_their_dtype_each_time(operation, dtype):
    j = retrograd.tensor([1, 2, 3], dtype=getattr(retrograd, dtype))
    first, second = operation(j), operation(j)
    assert first.dtype == second.dtype == (retrograd.bool if first.dtype == retrograd.bool else j.dtype)
    assert first.tolist() == second.tolist()


def test_a_number_that_changes_the_dtype_still_does():
    j, x = retrograd.tensor([1, 2, 3]), retrograd.tensor([1.0, 2.0])
    assert (j * 2).dtype == retrograd.int64
    assert (j * 2.5).dtype == retrograd.float32
    assert (j * 2).dtype == retrograd.int64
    assert (x * 2j).dtype == retrograd.complex64
    assert (x * 2).dtype == retrograd.float32
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            j // 0


FORMS = """
import retrograd

class Duck:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function.__name__, len(args), kwargs

x = retrograd.tensor([1.0, 2.0])
print(retrograd.sum(Duck()), retrograd.sum(Duck(), 0), retrograd.sum(x, axis=0).item(), retrograd.softmax(x, axis=0).shape)
for call in (lambda: retrograd.softmax(x), lambda: retrograd.sum(), lambda: retrograd.sum(x, other=1)):
    try:
        call()
    except TypeError as error:
        print(str(error).splitlines()[0])

class Mine(retrograd.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print(function.__name__, len(args), kwargs)
        return super().__torch_function__(function, types, args, kwargs or {})

y = x.as_subclass(Mine)
retrograd.sum(y, dim=0)
retrograd.cat([x, y])
print(type(retrograd.sum(x)).__name__)
"""


def test_public_functions_take_calls_before_and_after_something_overrides_them():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FORMS)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "('sum', 1, {}) ('sum', 2, {}) 3.0 torch.Size([2])",
        'softmax() missing 1 required positional arguments: "dim"',
        "sum() received an invalid combination of arguments - got (), but expected one of:",
        "sum() received an invalid combination of arguments - got (Tensor, other=int), but expected one of:",
        "sum 1 {'dim': 0}",
        "cat 1 {}",
        "Tensor",
    ]
