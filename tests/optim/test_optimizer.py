"""The base of optimizers: groups, errors, hooks, saving, and what a step leaves behind."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd._native import machine
from retrograd.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from tests.optim.test_trajectories import OPTIONS
from tests.optim.trajectories import assert_alike, gradients, numbers, start, train
from tests.oracle import outcome_and_warnings, whole

PROGRAMS = """O.SGD([],lr=.1)
(setattr(p,'grad',p.detach()*0+float('nan')),(o:=O.Rprop([p],lr=.1)).step(),o.step(),p.tolist(),o.state[p])[-2:]
(setattr(p,'grad',p.detach()),(o:=O.Adam([p])).step(),o.state[p].update(step=5),o.step())
base._default_to_fused_or_foreach([p],False,True), base._default_to_fused_or_foreach([p],True)
base._get_value(torch.tensor(2.0)), base._to_scalar(torch.ones(1)), base._stack_if_compiling(3)
base._get_capturable_supported_devices()
(l:=[torch.ones(1,dtype=torch.complex64)],base._view_as_real(l),l)[-1]
O.SGD(p,lr=.1)
O.SGD([1],lr=.1)
O.SGD([p*2],lr=.1)
O.SGD([x],lr=.1)
O.SGD([p],lr=-1)
O.SGD([p,p],lr=.1)
O.SGD([{'params':[p]},{'params':[p]}],lr=.1)
O.SGD([{'params':{p}}],lr=.1)
O.SGD([('w',p),b],lr=.1)
O.SGD([('w',p),('v',b)],lr=.1)
O.SGD([{'params':[('w',p)]},{'params':[b]}],lr=.1)
O.SGD([{'params':[p]},{'params':[('w',b)]}],lr=.1)
O.SGD([p],lr=.1,momentum=-1)
O.SGD([p],lr=.1,weight_decay=-1)
O.SGD([p],lr=.1,nesterov=True)
O.SGD([p],lr=.1,fused=True,foreach=True)
O.SGD([p],lr=.1,fused=True,differentiable=True)
O.SGD([p],lr=torch.ones(2))
O.SGD([p],lr=torch.tensor(.1),foreach=True)
O.Adam([p],lr=torch.tensor(.1),foreach=True)
O.Adam([p],lr=torch.ones(2))
O.Adam([p],lr=torch.tensor(-1.))
O.Adam([p],lr=-1)
O.Adam([p],eps=-1)
O.Adam([p],betas=(1.5,.9))
O.Adam([p],betas=(.5,-.9))
O.Adam([p],weight_decay=-1)
O.Adam([p],betas=(torch.tensor(.9),.9))
O.Adam([p],betas=(torch.tensor(.9),torch.tensor(.9)),foreach=True)
O.Adam([p],fused=True,differentiable=True)
O.Adam([p],fused=True,foreach=True)
O.AdamW([p],lr=-1)
O.Adamax([p],lr=-1)
O.Adamax([p],eps=-1)
O.Adamax([p],betas=(.5,1.9))
O.Adamax([p],weight_decay=-1)
O.NAdam([p],momentum_decay=-1)
O.NAdam([p],weight_decay=-1)
O.RAdam([p],betas=(1.5,.9))
O.RAdam([p],weight_decay=-1)
O.RMSprop([p],eps=-1)
O.RMSprop([p],momentum=-1)
O.RMSprop([p],alpha=-1)
O.RMSprop([p],weight_decay=-1)
O.Adagrad([p],lr_decay=-1)
O.Adagrad([p],weight_decay=-1)
O.Adagrad([p],initial_accumulator_value=-1)
O.Adagrad([p],eps=-1)
O.Adagrad([p],fused=True,foreach=True)
O.Adadelta([p],rho=-1)
O.Adadelta([p],eps=-1)
O.Adadelta([p],weight_decay=-1)
O.ASGD([p],lr=-1)
O.ASGD([p],weight_decay=-1)
O.ASGD([p],lr=torch.ones(2))
O.Rprop([p],lr=-1)
O.Rprop([p],etas=(1.5,1.2))
O.LBFGS([p],lr=-1)
O.LBFGS([p],lr=torch.ones(2))
O.LBFGS([{'params':[p]},{'params':[b]}])
O.LBFGS([p]).step()
O.Adafactor([p],lr=-1)
O.Adafactor([p],lr=torch.ones(2))
O.Adafactor([p],beta2_decay=1)
O.Adafactor([p],eps=(-1,1e-3))
O.Adafactor([p],eps=(None,-1))
O.Adafactor([p],d=.5)
O.Adafactor([p],weight_decay=-1)
O.Muon([p],lr=-1)
O.Muon([p],lr=torch.ones(2))
O.Muon([b])
O.Muon([p],momentum=-1)
O.Muon([p],weight_decay=-1)
O.Muon([p],adjust_lr_fn='x')
O.SGD([p],lr=.1).add_param_group([1])
O.SGD([p],lr=.1).add_param_group({'params':[p]})
O.SGD([p],lr=.1).add_param_group({'params':{b}})
O.Optimizer([p],{}).step()
O.SGD([p],lr=.1).load_state_dict({'param_groups':[],'state':{}})
O.SGD([p],lr=.1).load_state_dict({'param_groups':[{'params':[0,1]}],'state':{}})
O.SGD(iter([p]),lr=.1)
O.SGD(dict(a=p),lr=.1)
O.SGD([p],lr=.1).step(3)
O.SGD(None,lr=.1)
O.SGD([{'lr':.1}],lr=.1)
O.Adam([{'params':[p],'lr':.2},{'params':b}]).param_groups[1]['lr']
O.Adam([{'params':[p],'lr':.2},{'params':b}])
O.Adam([('w',p)]).state_dict()
O.Adagrad([p],initial_accumulator_value=.5).state_dict()
(lambda o:(o.load_state_dict(O.Adam([p]).state_dict()),o.param_groups[0]['param_names']))(O.Adam([('w',p)]))
O.SGD([p],lr=.1).register_step_pre_hook(lambda *a:3) and None"""


def said(library: Any, program: str) -> Any:
    """Return what a program answers or raises, and its warnings."""
    p, b = (library.nn.Parameter(library.ones(*shape)) for shape in ((2, 2), (2,)))
    base = import_module(f"{library.__name__}.optim.optimizer")
    scope = {"torch": library, "O": library.optim, "base": base, "p": p, "b": b, "x": library.ones(2)}
    return outcome_and_warnings(lambda: str(eval(program, scope)), words=whole)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS.split("\n"))
def test_words(torch: Any, program: str) -> None:
    assert said(retrograd, program) == said(torch, program)


def one() -> Any:
    p = retrograd.nn.Parameter(retrograd.ones(3))
    p.grad = retrograd.ones(3)
    return p


# ---- groups ----
def test_a_refused_group_changes_nothing() -> None:
    p, other = one(), one()
    optimizer = retrograd.optim.SGD([p], lr=0.1)
    group = {"params": [other, p]}
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1
    assert list(group) == ["params"]


@pytest.mark.oracle
def test_groups_have_options_of_their_own(torch: Any) -> None:
    found = []
    for library in (retrograd, torch):
        a, b, c, d = start(library)
        optimizer = library.optim.AdamW(
            [{"params": [a], "lr": 0.1}, {"params": (b, c), "weight_decay": 0.5, "amsgrad": True}], lr=0.01
        )
        optimizer.add_param_group({"params": d, "betas": (0.5, 0.6), "maximize": True})
        for step in range(100):
            gradients([a, b, c, d], step, library)
            optimizer.step()
        found.append([a, b, c, d])
    assert_alike(*found)


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIONS)
def test_parameters_without_gradients_stay(torch: Any, name: str) -> None:
    found = []
    for library in (retrograd, torch):
        params = start(library)
        optimizer = getattr(library.optim, name)(params, **OPTIONS[name][1])
        for step in range(10):
            gradients(params, step, library)
            params[step % 3].grad = None
            optimizer.step()
        found.append(params)
    assert_alike(*found)


@pytest.mark.oracle
def test_rates_may_be_tensors(torch: Any) -> None:
    for name, more in (("SGD", {"momentum": 0.9}), ("Adam", {}), ("RMSprop", {}), ("ASGD", {}), ("Rprop", {})):
        ours, _ = train(retrograd, name, {"lr": retrograd.tensor(0.05), **more})
        theirs, _ = train(torch, name, {"lr": torch.tensor(0.05), **more})
        assert_alike(ours, theirs)
    ours, _ = train(retrograd, "Adam", {"betas": (retrograd.tensor(0.8), retrograd.tensor(0.9))})
    theirs, _ = train(torch, "Adam", {"betas": (torch.tensor(0.8), torch.tensor(0.9))})
    assert_alike(ours, theirs)


def test_zero_grad() -> None:
    p = one()
    optimizer = retrograd.optim.SGD([p], lr=0.1)
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert p.grad is None


# ---- steps ----
def test_closures_run_with_gradients_and_their_value_is_returned() -> None:
    p = one()
    optimizer = retrograd.optim.SGD([p], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with retrograd.no_grad():
        assert optimizer.step(closure).item() == 3.0
    assert p.tolist() == pytest.approx([0.8] * 3)


def test_hooks_in_torchs_order() -> None:
    heard: list[str] = []
    handles = [
        register_optimizer_step_pre_hook(lambda *args: heard.append("all before")),
        register_optimizer_step_post_hook(lambda *args: heard.append("all after")),
    ]
    optimizer = retrograd.optim.SGD([one()], lr=0.1)
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: heard.append(f"before {len(args)} {kwargs}"))
    optimizer.register_step_post_hook(lambda *args: heard.append("after"))
    optimizer.step()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert heard == ["all before", "before 1 {}", "after", "all after", "before 1 {}", "after"]


def test_a_pre_hook_may_change_arguments() -> None:
    optimizer = retrograd.optim.SGD([one()], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((optimizer, lambda: 7), {}))
    assert optimizer.step() == 7
    handle.remove()
    optimizer.register_step_pre_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of .new_args, new_kwargs., but got 3"):
        optimizer.step()


def test_hooks_of_saving() -> None:
    optimizer = retrograd.optim.SGD([one()], lr=0.1)
    heard: list[Any] = []
    optimizer.register_state_dict_pre_hook(lambda optimizer: heard.append("saving"))
    optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: heard.append(state.pop("more")))
    optimizer.register_load_state_dict_post_hook(lambda optimizer: heard.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert heard == ["saving", 1, "loaded"]


def test_subclasses_of_users_step_with_hooks() -> None:
    class Own(retrograd.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.5})

        @retrograd.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                params = group["params"]
                retrograd._foreach_add_(params, [p.grad for p in params], alpha=-group["lr"])

    heard: list[int] = []
    p = one()
    optimizer = Own([p])
    optimizer.register_step_post_hook(lambda *args: heard.append(1))
    optimizer.step()
    assert (p.tolist(), heard) == ([0.5] * 3, [1])


def test_one_optimizer_per_parameter_in_backward() -> None:
    params = [one(), one()]
    optimizers = {p: retrograd.optim.Adam([p], lr=0.1) for p in params}

    def hook(p: Any) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in params:
        p.grad = None
        p.register_post_accumulate_grad_hook(hook)
    for _ in range(3):
        (params[0] * params[1]).sum().backward()
    assert params[0].tolist() == pytest.approx([0.7] * 3, rel=1e-2)
    assert params[0].grad is None


def test_a_step_moves_the_version_and_notes_the_place() -> None:
    p = one()
    optimizer = retrograd.optim.Adam([p])
    optimizer.step()
    loss = (p * p).sum()
    before = p._version
    optimizer.step()
    assert p._version > before
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation") as caught:
        loss.backward()
    assert "optimizer.step()" in str(caught.value)


def test_views_and_detached_aliases_see_the_step() -> None:
    p = one()
    view, alias = p.detach()[:2], p.data
    retrograd.optim.SGD([p], lr=0.5).step()
    assert view.tolist() == [0.5, 0.5]
    assert alias.tolist() == [0.5] * 3


@pytest.mark.skipif(not machine.is_available(), reason="without kernels, NumPy makes arrays for what is between")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Rprop"])
def test_a_step_allocates_nothing(name: str) -> None:
    """After the first, a step makes no array: neither of a small parameter's size nor of a block's.

    A thread makes its memory when it first takes a block, in whichever step that is: so the best of a few steps counts.
    """
    params = [retrograd.nn.Parameter(retrograd.ones(700, 403)), retrograd.nn.Parameter(retrograd.ones(100, 100))]
    for p in params:
        p.grad = retrograd.full_like(p, 0.01)
    optimizer = getattr(retrograd.optim, name)(params, **OPTIONS[name][1])
    for _ in range(3):
        optimizer.step()
    allocated = []
    tracemalloc.start()
    try:
        for _ in range(6):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            optimizer.step()
            allocated.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert min(allocated) < 20_000


# ---- saving ----
@pytest.mark.parametrize("how", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))])
def test_copies_go_on_alone(how: Any) -> None:
    params, optimizer = train(retrograd, "Adam", {}, steps=5)
    other = how(optimizer)
    theirs = other.param_groups[0]["params"]
    assert theirs[0] is not params[0]
    for optimizer_, ones in ((optimizer, params), (other, theirs)):
        for step in range(5, 10):
            gradients(ones, step, retrograd)
            optimizer_.step()
    assert_alike(params, theirs)


def test_state_from_old_versions() -> None:
    """Counts that were numbers become tensors, missing options get their defaults."""
    _, optimizer = train(retrograd, "NAdam", {}, steps=3)
    state = copy.deepcopy(optimizer.state_dict())
    for one_state in state["state"].values():
        one_state["step"], one_state["mu_product"] = 3, one_state["mu_product"].item()
    for name in ("maximize", "foreach", "capturable", "differentiable", "decoupled_weight_decay"):
        del state["param_groups"][0][name]
    other = retrograd.optim.NAdam(start(retrograd))
    other.load_state_dict(state)
    gradients(other.param_groups[0]["params"], 3, retrograd)
    other.step()
    assert other.state_dict()["state"][0]["step"].item() == 4


def test_loaded_state_comes_to_the_parameters_dtype() -> None:
    _, optimizer = train(retrograd, "Adam", {}, steps=3)
    other = retrograd.optim.Adam(start(retrograd, "float64"))
    other.load_state_dict(optimizer.state_dict())
    state = other.state[other.param_groups[0]["params"][0]]
    assert (state["exp_avg"].dtype, state["step"].dtype) == (retrograd.float64, retrograd.float32)


def test_state_that_was_replaced_is_used() -> None:
    (p, *_), optimizer = train(retrograd, "SGD", {"lr": 0.1, "momentum": 0.5}, steps=2)
    optimizer.state[p]["momentum_buffer"] = retrograd.zeros_like(p)
    before = numbers(p)
    p.grad = retrograd.ones_like(p)
    optimizer.step()
    np.testing.assert_allclose(numbers(p), before - 0.1, rtol=1e-6)


def test_parameters_whose_memory_was_replaced() -> None:
    (p, *_), optimizer = train(retrograd, "SGD", {"lr": 0.5}, steps=2)
    p.data = retrograd.zeros_like(p)
    p.grad = retrograd.ones_like(p)
    optimizer.step()
    assert (numbers(p) == -0.5).all()


# ---- gradients through steps ----
@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("Adafactor", "Rprop")])
def test_meta_gradients_through_three_steps(name: str) -> None:
    """The derivative of where training ends, by where it began, is that of finite differences."""
    target = retrograd.tensor([0.5, -0.3, 0.9], dtype=retrograd.float64)

    def end(begin: Any) -> Any:
        p = begin.clone()
        optimizer = getattr(retrograd.optim, name)([p], **{**OPTIONS[name][1], "differentiable": True})
        for _ in range(3):
            loss = ((p - target) ** 4).sum() + (p * p).sum()
            p.grad = retrograd.autograd.grad(loss, p, create_graph=True)[0]
            # the graph keeps what p was: the step writes into a copy
            q = p.clone()
            q.grad = p.grad
            optimizer.state[q] = optimizer.state.pop(p, {})
            optimizer.param_groups[0]["params"] = [q]
            optimizer.step()
            p = q
        return p

    begin = retrograd.tensor([1.0, 2.0, -1.5], dtype=retrograd.float64, requires_grad=True)
    assert retrograd.autograd.gradcheck(end, (begin,))


def test_meta_gradients_of_the_rate() -> None:
    """The rate of SGD and of Adam may require grad."""
    for name in ("SGD", "Adam", "AdamW"):

        def end(lr: Any, name: str = name) -> Any:
            p = retrograd.tensor([1.0, -2.0], dtype=retrograd.float64, requires_grad=True).clone()
            p.grad = retrograd.tensor([0.3, 0.1], dtype=retrograd.float64)
            getattr(retrograd.optim, name)([p], lr=lr, differentiable=True).step()
            return p

        assert retrograd.autograd.gradcheck(end, (retrograd.tensor(0.1, dtype=retrograd.float64, requires_grad=True),))


def test_sparse_adam_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"Use torch\.optim\.Adam"):
        retrograd.optim.SparseAdam([one()])
