"""The smaller names of torch.autograd.graph, gradcheck, overrides and profiler."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("smaller_names")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def gradcheck_of(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.autograd.gradcheck")


@program
def settings_of_streams(torch):
    graph = torch.autograd.graph
    return [
        [caught(f, v) for v in (True, False, 1, "on", None)]
        for f in (graph.set_warn_on_accumulate_grad_stream_mismatch, graph.set_override_stale_capture_stream)
    ]


@program
def memory_budget_outside_compiled_code(torch):
    budget = torch.autograd.graph.region_activation_memory_budget
    return [caught(budget, v) for v in (0.5, 0, 1, 2, -0.1, "half", True)]


@program
def old_numerical_jacobians(torch):
    module, x, y = gradcheck_of(torch), leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    f = lambda ins: ins[0] ** 2 * ins[1]  # noqa: E731
    constant = torch.tensor([5.0], dtype=torch.float64)
    round_off = lambda found: [(one * 1e4).round() for one in found]  # noqa: E731
    get = module.get_numerical_jacobian
    return (
        round_off(get(f, (x, y))),
        round_off(get(f, (x, y), target=y)),
        round_off(get(f, (x, constant), eps=1e-6)),
        caught(get, f, (x, y), grad_out=2.0),
        caught(get, lambda ins: ins[0] * 1j, (x, y)),
        round_off(
            module.get_numerical_jacobian_wrt_specific_input(lambda a, b: (a * b, a), 0, (x, y), (x * y, x), 1e-6)
        ),
    )


@program
def old_analytical_jacobians(torch):
    get, x, y = gradcheck_of(torch).get_analytical_jacobian, leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    return get((x, y), x**2 * y), get((x, y), x**2), caught(get, (x, y), x * y, grad_out=2.0)


@program
def old_jacobians_warn(torch):
    module, x = gradcheck_of(torch), leaf(torch)
    return (
        warned(module.get_numerical_jacobian, lambda ins: ins[0] * 2, (x,)),
        warned(module.get_analytical_jacobian, (x,), x * 2),
    )


@program
def functions_that_are_taken_over(torch):
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [func.__name__, types[0].__name__, len(args), list(kwargs)]

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "other"

    @torch.overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def added(a, b=None):
        """Add."""
        return a + 1

    x = torch.ones(1)
    return (
        added(x),
        added(x.as_subclass(Seen)),
        added(x, b=x.as_subclass(Seen)),
        added(Other()),
        added.__name__,
        added.__doc__,
    )


@program
def names_of_functions(torch):
    o, functional = torch.overrides, torch.nn.functional
    asked = (
        torch.add,
        torch.Tensor.add_,
        functional.linear,
        torch.linalg.svd,
        torch.fft.fft,
        torch.Tensor.T.__get__,
        len,
    )
    return [o.resolve_name(f) for f in asked], [
        o.is_tensor_method_or_property(f) for f in (torch.Tensor.add_, len, functional.linear)
    ]


@program
def lists_of_functions(torch):
    o = torch.overrides
    over, ignored, testing = o.get_overridable_functions(), o.get_ignored_functions(), o.get_testing_overrides()
    return (
        [f in over[torch] for f in (torch.add, torch.sum, torch.ones, torch.tensor)],
        torch.Tensor.add_ in over[torch.Tensor],
        [f in ignored for f in (torch.add, torch.ones, torch.arange, torch.tensor, torch.is_grad_enabled)],
        [testing[f](1, 2) for f in (torch.add, torch.mm)],
        list(inspect.signature(testing[torch.mm]).parameters)[:2],
    )


@program
def profiles_are_entered(torch):
    profiler = importlib.import_module(f"{torch.__name__}.profiler")
    with torch.autograd.profiler.record_function("part"), profiler.record_function("other"):
        x = torch.ones(2) * 2

    @torch.autograd.profiler.record_function("decorated")
    def f():
        return 3

    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as p:
        torch.ones(2).sum()
        p.step()
    return x, f(), p.step_num


@program
def schedules(torch):
    profiler = importlib.import_module(f"{torch.__name__}.profiler")
    plans = (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 1, "skip_first_wait": 1},
        {"wait": 0, "warmup": 0, "active": 1},
    )
    found = [[profiler.schedule(**plan)(i).name for i in range(12)] for plan in plans]
    return (
        found,
        caught(profiler.schedule, wait=-1, warmup=0, active=1),
        caught(profiler.schedule(wait=0, warmup=0, active=1), -1),
    )


test_as_torch, test_recording_is_torchs = program.tests()
