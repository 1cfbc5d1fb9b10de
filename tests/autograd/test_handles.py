"""What registering a hook returns, and what hooks of nodes and modules are shown."""

from __future__ import annotations

import gc
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import retrograd
from retrograd.autograd.graph import register_multi_grad_hook
from retrograd.utils.hooks import RemovableHandle
from tests.oracle import before_the_hint, outcome, without_tracker


def test_a_handle_refers_weakly_to_its_hooks() -> None:
    hooks: OrderedDict[int, Any] = OrderedDict()
    handle = RemovableHandle(hooks)
    assert handle.hooks_dict_ref() is hooks
    assert handle.extra_dict_ref == ()
    del hooks
    gc.collect()
    assert handle.hooks_dict_ref() is None
    handle.remove()


def test_numbers_rise() -> None:
    hooks: OrderedDict[int, Any] = OrderedDict()
    first, second = RemovableHandle(hooks), RemovableHandle(hooks)
    assert second.id == first.id + 1 == RemovableHandle.next_id - 1


@pytest.mark.parametrize("several", [False, True])
def test_entries_in_other_dicts_go_with_the_hook(several: bool) -> None:
    hooks: OrderedDict[int, Any] = OrderedDict()
    extra: OrderedDict[int, Any] = OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=[extra] if several else extra)
    hooks[handle.id] = extra[handle.id] = True
    with handle:
        assert hooks
        assert extra
    assert not hooks
    assert not extra


def test_handles_can_be_pickled() -> None:
    hooks: OrderedDict[int, Any] = OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=hooks)
    again = pickle.loads(pickle.dumps(handle))
    assert again.id == handle.id
    assert again.hooks_dict_ref() is None  # nobody else holds the copy
    again.remove()


def test_a_plain_dict_cannot_be_referred_to() -> None:
    with pytest.raises(TypeError, match="cannot create weak reference to 'dict' object"):
        RemovableHandle({})


def test_every_way_to_register_returns_a_handle_on_live_hooks() -> None:
    a = retrograd.ones(2, requires_grad=True)
    y = a * 2
    node = y.grad_fn
    made = [
        a.register_hook(print),
        a.register_post_accumulate_grad_hook(print),
        y.register_hook(print),
        node.register_hook(print),
        node.register_prehook(print),
        node.next_functions[0][0].register_hook(print),
        node.next_functions[0][0].register_prehook(print),
    ]
    for handle in made:
        assert type(handle) is RemovableHandle
        assert handle.hooks_dict_ref() == {handle.id: print}
        handle.remove()
        assert handle.hooks_dict_ref() == {}
    y.sum().backward()


def test_hooks_of_modules_forget_their_options() -> None:
    module = retrograd.nn.Linear(2, 2)
    after = module.register_forward_hook(lambda *args: None, with_kwargs=True, always_call=True)
    before = module.register_forward_pre_hook(lambda *args: None, with_kwargs=True)
    after.remove()
    before.remove()
    assert not module._forward_hooks_with_kwargs
    assert not module._forward_hooks_always_called
    assert not module._forward_pre_hooks_with_kwargs


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_several_tensors(mode: str) -> None:
    tensors = [retrograd.ones(2, requires_grad=True) for _ in range(2)]
    seen: list[Any] = []
    handle = register_multi_grad_hook(tensors, seen.append, mode=mode)
    assert type(handle).__name__ == "_MultiHandle"
    assert isinstance(handle, RemovableHandle)
    assert isinstance(handle.handles, tuple)
    with handle as entered:
        assert entered is handle
    (tensors[0] * tensors[1]).sum().backward()
    assert not seen


# ---- what hooks are shown ----
def gradients_shown(t: Any) -> Any:
    seen: list[Any] = []

    class Pair(t.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x * 1, y * 2

    module = Pair()
    module.register_full_backward_hook(lambda m, i, o: seen.append((str(i), str(o))))
    x = t.ones(2, requires_grad=True)
    module(x, t.ones(2))[0].sum().backward()
    module(x, t.ones(2))[0].sum().backward()
    return seen


def gradients_of_constants_shown(t: Any) -> Any:
    class Function(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: Any) -> Any:
            ctx.mark_non_differentiable(y)
            return x * 1, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g, g * 5 + h, None

    seen: list[str] = []
    x = t.ones(2, requires_grad=True)
    for take in (lambda o: o.sum().backward(), lambda o: t.autograd.grad(o.sum(), x)):
        out, _ = Function.apply(x, t.ones(2), t.ones(2))
        out.grad_fn.register_hook(lambda i, o: seen.append((str(i), str(o))))
        take(out)
    return seen


def texts(t: Any) -> Any:
    """Return the words of small errors."""

    def accumulated(hook: Any, how: str) -> Any:
        x = t.ones(2, requires_grad=True)
        y = (x * 2).sum()
        if how == "post":
            x.register_post_accumulate_grad_hook(hook)
        else:
            held = (x * 2).grad_fn.next_functions[0][0]
            held.register_hook(hook)
        y.backward()

    x = t.ones(2, requires_grad=True)
    cases = [
        lambda: accumulated(lambda p: 3, "post"),
        lambda: accumulated(lambda p: t.ones(2), "post"),
        lambda: accumulated(lambda i, o: 3, "node"),
        lambda: (x * 1)[:1].detach_(),
        lambda: t.autograd.graph.increment_version(3),
        lambda: t.autograd.graph.increment_version([3]),
    ]
    kinds = (RuntimeError, TypeError)
    return [outcome(case, words=before_the_hint, kinds=kinds, ignore_warnings=False) for case in cases]


def inference_versions(t: Any) -> Any:
    with t.inference_mode():
        made = t.ones(2)
    t.autograd.graph.increment_version(made)
    t.autograd.graph.increment_version([made, t.ones(2)])
    plain = t.ones(2)
    t.autograd.graph.increment_version(plain)
    return plain._version


def warned(t: Any) -> str:
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed") as caught:
        (t.ones(2, requires_grad=True) * 2).grad  # noqa: B018 - it warns
    return without_tracker(str(caught[0].message).partition(" (Triggered")[0])


@pytest.mark.oracle
@pytest.mark.parametrize("program", [gradients_shown, gradients_of_constants_shown, texts, inference_versions, warned])
def test_like_torch(program: Any) -> None:
    assert program(retrograd) == program(pytest.importorskip("torch"))


def test_constants_of_a_module_have_zero_gradients() -> None:
    assert gradients_shown(retrograd)[0] == (
        "(tensor([1., 1.]), tensor([0., 0.]))",
        "(tensor([1., 1.]), None)",
    )
