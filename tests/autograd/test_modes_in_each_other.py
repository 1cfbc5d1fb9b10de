"""Grad modes on coroutines, generators, classes and in each other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("modes_in_each_other")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


@program
def coroutine_function(torch):
    @torch.no_grad()
    async def inside():
        before = torch.is_grad_enabled()
        await asyncio.sleep(0)
        return before, torch.is_grad_enabled()

    return asyncio.run(inside()), torch.is_grad_enabled()


@program
def awaiting_between_modes(torch):
    log = []

    async def other():
        log.append(["other", torch.is_grad_enabled()])
        await asyncio.sleep(0)
        log.append(["other", torch.is_grad_enabled()])

    async def inside():
        with torch.no_grad():
            await asyncio.sleep(0)
            log.append(["inside", torch.is_grad_enabled()])
        log.append(["after", torch.is_grad_enabled()])

    async def main():
        await inside()
        await other()

    asyncio.run(main())
    return log


@program
def async_generator(torch):
    @torch.no_grad()
    async def numbers():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    async def main():
        return [one async for one in numbers()]

    return caught(lambda: asyncio.run(main()))


@program
def generator_that_changes_the_mode_itself(torch):
    @torch.no_grad()
    def numbers():
        yield torch.is_grad_enabled()
        with torch.enable_grad():
            yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    found = []
    for inside in numbers():
        found.append([inside, torch.is_grad_enabled()])
    return found


@program
def generator_with_exceptions(torch):
    log = []

    @torch.no_grad()
    def numbers():
        try:
            yield 1
        except ValueError:
            log.append(torch.is_grad_enabled())
            yield 2

    g = numbers()
    return next(g), g.throw(ValueError()), torch.is_grad_enabled(), log


@program
def enable_grad_and_inference_on_generators(torch):
    @torch.enable_grad()
    def on():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    @torch.inference_mode()
    def inference():
        yield torch.is_inference_mode_enabled()
        yield torch.is_inference_mode_enabled()

    with torch.no_grad():
        first = list(on())
    return first, list(inference()), torch.is_inference_mode_enabled()


@program
def without_parentheses(torch):
    @torch.no_grad
    def off():
        return torch.is_grad_enabled()

    @torch.enable_grad
    def on():
        return torch.is_grad_enabled()

    @torch.inference_mode
    def inference():
        return torch.is_inference_mode_enabled()

    with torch.no_grad():
        found = on()
    return off(), found, inference(), caught(lambda: torch.set_grad_enabled(lambda: None))


@program
def inference_mode_with_false(torch):
    @torch.inference_mode(False)
    def off():
        return torch.is_inference_mode_enabled()

    @torch.inference_mode(mode=True)
    def on():
        return torch.is_inference_mode_enabled()

    with torch.inference_mode():
        inside = off()
    return inside, on()


@program
def decorated_names_and_docs(torch):
    @torch.no_grad()
    def named(a, b=2):
        """Say something."""
        return a + b

    return named.__name__, named.__doc__, named(1), named(1, b=5), hasattr(named, "__wrapped__")


@program
def decorated_lambda_and_method(torch):
    class Holder:
        @torch.no_grad()
        def method(self):
            return torch.is_grad_enabled()

        @classmethod
        @torch.no_grad()
        def of_class(cls):
            return torch.is_grad_enabled()

        @staticmethod
        @torch.no_grad()
        def static():
            return torch.is_grad_enabled()

        @property
        @torch.no_grad()
        def read(self):
            return torch.is_grad_enabled()

    h = Holder()
    return torch.no_grad()(lambda: torch.is_grad_enabled())(), h.method(), h.of_class(), h.static(), h.read


@program
def decorated_class(torch):
    @torch.no_grad()
    class Made:
        def __init__(self):
            self.inside = torch.is_grad_enabled()

        def method(self):
            return torch.is_grad_enabled()

    made = Made()
    return made.inside, made.method(), callable(Made)


@program
def one_decorator_on_two_functions(torch):
    off = torch.no_grad()
    f, g = off(lambda: torch.is_grad_enabled()), off(lambda: torch.is_grad_enabled())
    return f(), g(), torch.is_grad_enabled()


@program
def error_in_a_decorated_function(torch):
    @torch.no_grad()
    def fails():
        raise ValueError("inside")

    return caught(fails), torch.is_grad_enabled()


@program
def set_grad_enabled_forms(torch):
    found = []
    with torch.set_grad_enabled(False):
        found.append(torch.is_grad_enabled())
        with torch.set_grad_enabled(True):
            found.append(torch.is_grad_enabled())
        found.append(torch.is_grad_enabled())
    found.append(torch.is_grad_enabled())
    torch.set_grad_enabled(mode=False)
    found.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)

    @torch.set_grad_enabled(False)
    def off():
        return torch.is_grad_enabled()

    return found, torch.is_grad_enabled(), off(), torch.is_grad_enabled()


@program
def bad_modes(torch):
    return caught(torch.set_grad_enabled), caught(torch.set_grad_enabled, "yes")


@program
def inference_inside_no_grad_inside_inference(torch):
    with torch.inference_mode():
        with torch.no_grad():
            a = torch.ones(1).is_inference()
        with torch.enable_grad():
            b = torch.is_grad_enabled()
            x = torch.ones(1, requires_grad=True)
            c = [(x * 2).requires_grad, x.is_inference(), x.requires_grad]
        with torch.inference_mode(False):
            y = torch.ones(1, requires_grad=True)
            d = [(y * 2).requires_grad, y.is_inference(), torch.is_grad_enabled()]
    return a, b, c, d


@program
def inference_tensors_in_many_operations(torch):
    with torch.inference_mode():
        x = torch.ones(3, dtype=torch.float64)
    y = leaf(torch)
    return (
        (x + y).requires_grad,
        caught(lambda: x * y),
        caught(lambda: y.copy_(x)),
        (x * 2).is_inference(),
        x.view(3, 1).is_inference(),
        x.detach().is_inference(),
        caught(lambda: torch.cat([x, y]).requires_grad),
        caught(x.zero_),
        caught(lambda: torch.add(x, 1, out=x)),
    )


@program
def normal_tensors_inside_inference_mode(torch):
    x = torch.ones(3, dtype=torch.float64)
    y = leaf(torch) * 1
    with torch.inference_mode():
        view = x[1:]
        x.add_(1)
        y.add_(1)
        found = view.is_inference(), x.is_inference(), x._version
    return found, caught(view.add_, 1), caught(y.sum().backward)


@program
def thread_starts_with_grad(torch):
    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    return found


@program
def modes_restored_by_the_right_owner(torch):
    a, b = torch.no_grad(), torch.enable_grad()
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    first = torch.is_grad_enabled()
    b.__exit__(None, None, None)
    second = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return first, second


@program
def anomaly_blocks(torch):
    auto = torch.autograd
    found = [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    with auto.set_detect_anomaly(True, check_nan=False):
        found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        with auto.detect_anomaly():
            found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    return [*found, torch.is_anomaly_enabled()]


@program
def multithreading_switch(torch):
    auto, core = torch.autograd, torch._C
    found = [core._is_multithreading_enabled()]
    with auto.set_multithreading_enabled(False):
        found.append(core._is_multithreading_enabled())
        x = leaf(torch)
        x.sum().backward()
    return [*found, core._is_multithreading_enabled()]


test_as_torch, test_recording_is_torchs = program.tests()
