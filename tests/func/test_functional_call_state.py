"""functional_call: what may be replaced, what comes back, what is refused."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_functional_call_state")


def counter(torch: Any) -> Any:
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(()))
            self.register_buffer("same", self.n)
            self.p = torch.nn.Parameter(torch.ones(2))
            self.plain = torch.ones(2)
            self.k = 3

        def forward(self, fail=False):
            self.n.add_(1)
            self.n = self.n + 1
            if fail:
                raise ValueError("after the assignment")
            return self.plain * self.n + self.p.detach()

    return Counter()


def parametrized(torch: Any, right_inverse: bool) -> Any:
    class Doubled(torch.nn.Module):
        def forward(self, x):
            return x * 2

    if right_inverse:
        Doubled.right_inverse = lambda self, x: x / 2
    linear = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.ones_(linear.weight)
    torch.nn.utils.parametrize.register_parametrization(linear, "weight", Doubled())
    return linear


@program
def assigned_buffers(torch):
    module = counter(torch)
    given, failing, other = ({"n": torch.tensor(5.0)} for _ in range(3))
    results = (
        torch.func.functional_call(module, given, ()),
        caught(torch.func.functional_call, module, failing, (True,)),
        torch.func.functional_call(module, (other, {"p": torch.zeros(2)}), ()),
    )
    return results, given, failing, other, module.n, module.same


@program
def attributes_that_are_no_parameters(torch):
    module = counter(torch)
    call = lambda given, **options: caught(torch.func.functional_call, module, given, (), **options)  # noqa: E731
    return (
        call({"plain": torch.full((2,), 7.0)}),
        module.plain,
        call({"nope": torch.ones(2)}),
        hasattr(module, "nope"),
        call({"k": torch.ones(2)}),
        module.k,
        call({"n": 4}),
        call({"n": None}),
        call({"p": torch.ones(2), "k": torch.ones(2)}),
        module.p,
        call({"zz": 3}, strict=True),
        call({"sub.n": torch.ones(2)}),
        call({"plain.n": torch.ones(2)}),
        call({"": torch.ones(2)}),
    )


@program
def parametrized_tensors(torch):
    x, weight = torch.ones(1, 2), torch.full((2, 2), 3.0)
    plain, inverted = parametrized(torch, False), parametrized(torch, True)
    return (
        caught(torch.func.functional_call, plain, {"weight": weight}, (x,)),
        plain(x),
        torch.func.functional_call(inverted, {"weight": weight}, (x,)),
        inverted(x),
        torch.func.functional_call(inverted, {"parametrizations.weight.original": weight}, (x,)),
        caught(torch.func.functional_call, inverted, {"weight": weight}, (x,), strict=True),
    )


test_as_torch, test_recording_is_torchs = program.tests()
