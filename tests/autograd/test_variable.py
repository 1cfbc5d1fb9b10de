"""`torch.autograd.Variable`, which old programs call, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("variable")


def facts(value: Any) -> Any:
    if isinstance(value, Exception):
        return value
    return value, value.requires_grad, value.is_leaf, type(value).__name__


@program
def of_a_tensor(torch):
    variable = torch.autograd.Variable
    data = torch.ones(2)
    calls = [
        variable(data),
        variable(data, True),
        variable(data, requires_grad=True),
        variable(data=data, requires_grad=True),
        variable(data, requires_grad=False),
        variable(data, 3),
        variable(torch.ones(2, dtype=torch.complex64), True),
        variable(torch.tensor([1, 2])),
    ]
    return [facts(one) for one in calls]


@program
def of_a_tensor_in_the_graph(torch):
    variable = torch.autograd.Variable
    x = torch.ones(2, requires_grad=True)
    made = [variable(x), variable(x * 2), variable(x * 2, True), variable(torch.nn.Parameter(torch.ones(2)))]
    return [(*facts(one), one.grad_fn) for one in made]


@program
def gradients(torch):
    x = torch.autograd.Variable(torch.ones(2, 2), requires_grad=True)
    (x + 2).mean().backward()
    return x.grad


@program
def shares_memory_and_version(torch):
    data = torch.ones(2)
    made = torch.autograd.Variable(data, requires_grad=True)
    with torch.no_grad():
        data.add_(1)
    return made is data, made, made._version, data.requires_grad


@program
def of_nothing(torch):
    variable = torch.autograd.Variable
    return [facts(one) for one in (variable(), variable(None), variable(data=None), variable(None, True))]


@program
def refused(torch):
    variable = torch.autograd.Variable
    data = torch.ones(2)
    return [
        caught(variable, 3),
        caught(variable, "a"),
        caught(variable, [1.0]),
        caught(variable, data, None),
        caught(variable, data, "a"),
        caught(variable, data, foo=3),
        caught(variable, data, data=data),
        caught(variable, data, 1, 2, 3, 4, 5),
        caught(variable, torch.tensor([1, 2]), requires_grad=True),
    ]


@program
def volatile(torch):
    variable = torch.autograd.Variable
    data = torch.ones(2)
    seen = [warned(variable, data, volatile=True), warned(variable, data, False, True), warned(variable, data)]
    return seen, caught(variable, data, requires_grad=True, volatile=True)


@program
def instances(torch):
    variable = torch.autograd.Variable
    given = (torch.ones(2), torch.nn.Parameter(torch.ones(2)), 3)
    return [isinstance(one, variable) for one in given], issubclass(torch.Tensor, variable)


test_as_torch, test_recording_is_torchs = program.tests()
