"""no_grad, enable_grad, set_grad_enabled, inference_mode: blocks, decorators, generators, threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught, warned

program = Programs("grad_modes")


def leaf(torch: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)


def modes(torch: Any) -> list[bool]:
    return [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]


@program
def blocks(torch):
    log, x = [modes(torch)], leaf(torch)
    with torch.no_grad():
        log += [modes(torch), (x * 2).requires_grad]
        with torch.enable_grad():
            log += [modes(torch), (x * 2).requires_grad]
        log.append(modes(torch))
    return [*log, modes(torch)]


@program
def blocks_restore_after_errors(torch):
    log = []
    for block in (torch.no_grad(), torch.inference_mode(), torch.set_grad_enabled(False)):

        def fail(block=block):
            with block:
                raise ValueError("inside")

        log += [caught(fail), modes(torch)]
    return log


@program
def leaves_made_under_no_grad(torch):
    with torch.no_grad():
        x = leaf(torch)
        y = x * 2
    (x * x).sum().backward()
    return x.requires_grad, y.requires_grad, x.grad


@program
def set_grad_enabled_as_function(torch):
    log = []
    torch.set_grad_enabled(False)
    log.append(modes(torch))
    torch.set_grad_enabled(True)
    return [*log, modes(torch)]


@program
def set_grad_enabled_as_block(torch):
    log = []
    for value in (True, False):
        with torch.set_grad_enabled(value):
            log.append(modes(torch))
        log.append(modes(torch))
    return log


@program
def set_grad_enabled_made_before_the_block(torch):
    log = []
    block = torch.set_grad_enabled(False)
    log.append(modes(torch))
    with block:
        log.append(modes(torch))
    return [*log, modes(torch)]


@program
def set_grad_enabled_as_decorator(torch):
    @torch.set_grad_enabled(False)
    def f():
        return modes(torch)

    return [modes(torch), f(), modes(torch)]


@program
def decorators(torch):
    log = []
    for mode in (
        torch.no_grad,
        torch.no_grad(),
        torch.enable_grad,
        torch.enable_grad(),
        torch.inference_mode(),
    ):

        @mode
        def f(a, *, b):
            """Say something."""
            return [a, b, modes(torch)]

        log += [f(1, b=2), f.__name__, f.__doc__]
    return [*log, modes(torch)]


@program
def inference_mode_decorator_without_parentheses(torch):
    @torch.inference_mode
    def f():
        return modes(torch)

    return f()


@program
def recursive_decorated_function(torch):
    @torch.no_grad()
    def f(n):
        return [modes(torch)] + (f(n - 1) if n else [])

    return [f(2), modes(torch)]


@program
def decorated_generator(torch):
    @torch.no_grad()
    def count():
        for i in range(3):
            yield [i, modes(torch)]

    log = []
    for item in count():
        log += [item, modes(torch)]
    return log


@program
def decorated_generator_send_throw_return(torch):
    log = []

    @torch.no_grad()
    def talk():
        got = yield modes(torch)
        log.append([got, modes(torch)])
        try:
            yield "second"
        except ValueError:
            log.append(["thrown", modes(torch)])
            yield "third"
        return "end"

    generator = talk()
    log += [next(generator), generator.send("sent"), generator.throw(ValueError("x")), modes(torch)]
    try:
        next(generator)
    except StopIteration as stop:
        log.append(stop.value)
    return log


@program
def decorated_generator_closed(torch):
    log = []

    @torch.no_grad()
    def talk():
        try:
            yield 1
        finally:
            log.append(modes(torch))

    generator = talk()
    next(generator)
    generator.close()
    return [*log, modes(torch)]


@program
def generator_holding_a_block(torch):
    def talk():
        with torch.no_grad():
            yield modes(torch)

    generator = talk()
    first = next(generator)
    between = modes(torch)
    list(generator)
    return [first, between, modes(torch)]


@program
def decorated_class_warns(torch):
    def decorate():
        @torch.no_grad()
        class Thing:
            pass

    return warned(decorate)


@program
def decorated_method(torch):
    class Thing:
        @torch.no_grad()
        def f(self):
            return modes(torch)

    return Thing().f()


@program
def one_block_object_nested_in_itself(torch):
    block = torch.no_grad()
    log = []
    with block:
        log.append(modes(torch))
    with block:
        log.append(modes(torch))
    return [*log, modes(torch)]


@program
def in_place_on_leaf_under_no_grad(torch):
    x = leaf(torch)
    with torch.no_grad():
        x.mul_(2)
    return x, x.requires_grad, x._version, x.grad_fn


@program
def view_under_no_grad(torch):
    x = leaf(torch)
    with torch.no_grad():
        v = x[:2]
    return v.requires_grad, v._is_view(), v.grad_fn, v.is_leaf


@program
def backward_under_no_grad(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.no_grad():
        y.backward()
    return x.grad


@program
def grad_with_create_graph_under_no_grad(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.no_grad():
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.requires_grad, modes(torch)


@program
def grad_mode_inside_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.register_hook(lambda g: log.append(modes(torch)))
    z = y.sum()
    z.backward(retain_graph=True)
    with torch.no_grad():
        z.backward(retain_graph=True)
    torch.autograd.grad(z, x, create_graph=True)
    return log


# ---- inference mode ----
@program
def inference_tensors(torch):
    x = leaf(torch)
    with torch.inference_mode():
        made = torch.ones(3, dtype=torch.float64)
        computed = x * 2
        view = x[:2]
        log = [t.is_inference() for t in (made, computed, view, x)]
        log += [t.requires_grad for t in (made, computed, view, x)]
    return log, made.is_inference(), (x * 2).is_inference()


@program
def inference_mode_off(torch):
    log = []
    with torch.inference_mode():
        with torch.inference_mode(False):
            log += [modes(torch), (leaf(torch) * 2).requires_grad]
        log.append(modes(torch))
    with torch.inference_mode(False):
        log.append(modes(torch))
    with torch.no_grad(), torch.inference_mode(False):
        log.append(modes(torch))
    return [*log, modes(torch)]


@program
def grad_enabled_inside_inference_mode(torch):
    with torch.inference_mode(), torch.enable_grad():
        return modes(torch), (leaf(torch) * 2).requires_grad


@program
def inference_tensor_in_place_inside(torch):
    with torch.inference_mode():
        c = torch.ones(3, dtype=torch.float64)
        c.add_(1)
    return c, c.is_inference()


@program
def normal_tensor_written_in_inference_mode(torch):
    x = leaf(torch) * 1
    before = x._version
    with torch.inference_mode():
        x.add_(1)
    return x._version - before, x, x.is_inference()


@program
def clone_of_inference_tensor_is_normal(torch):
    with torch.inference_mode():
        c = torch.ones(3, dtype=torch.float64)
    d = c.clone()
    x = leaf(torch)
    (x * d).sum().backward()
    return d.is_inference(), x.grad


@program
def inference_tensor_used_without_saving(torch):
    with torch.inference_mode():
        c = torch.ones(3, dtype=torch.float64)
    x = leaf(torch)
    (x + c).sum().backward()
    return x.grad


@program
def view_of_inference_tensor_outside(torch):
    with torch.inference_mode():
        c = torch.ones(3, dtype=torch.float64)
    v = c[:2]
    return v.is_inference(), v._is_view(), caught(v.add_, 1)


@program
def requires_grad_inside_inference_mode(torch):
    with torch.inference_mode():
        c = torch.ones(3, dtype=torch.float64)
        c.requires_grad_()
        return c.requires_grad, (c * 2).requires_grad


# ---- threads ----
@program
def every_thread_has_its_own_modes(torch):
    log = []

    def work():
        log.append(modes(torch))
        torch.set_grad_enabled(False)
        log.append(modes(torch))

    with torch.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        log.append(modes(torch))
    return [*log, modes(torch)]


@program
def anomaly_modes(torch):
    log = [torch.is_anomaly_enabled() if hasattr(torch, "is_anomaly_enabled") else False]
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = (x / x).sum() * (x * 0).sqrt().sum()
        log.append(caught(y.backward))
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = (x / x).sum()
        log.append(caught(y.backward))
    return log


@program
def anomaly_warning_names_the_forward_line(torch):
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)

    def run():
        with torch.autograd.set_detect_anomaly(True):
            y = (x * 0).sqrt().sum()
            caught((y * 0).backward)

    return warned(run)


@pytest.fixture(autouse=True)
def _all_on():
    yield
    retrograd.set_grad_enabled(True)


test_as_torch, test_recording_is_torchs = program.tests()
