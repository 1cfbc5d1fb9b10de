"""Programs about lazy modules and uninitialised parameters. Each gets the library and returns text; torch's is expected."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

from tests.nn.module_programs import said

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def classes(torch: Any) -> tuple[Any, Any]:
    """Return a layer and its lazy form."""
    nn = torch.nn

    class Dense(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.inputs, self.outputs = inputs, outputs
            self.weight = nn.Parameter(torch.ones(outputs, inputs))
            self.register_buffer("shift", torch.zeros(outputs))

        def forward(self, x):
            return x @ self.weight.t() + self.shift

        def extra_repr(self):
            return f"{self.inputs}, {self.outputs}"

    class LazyDense(nn.modules.lazy.LazyModuleMixin, Dense):
        cls_to_become = Dense

        def __init__(self, outputs):
            super().__init__(0, 0)
            self.outputs = outputs
            self.weight = nn.UninitializedParameter()
            self.shift = nn.UninitializedBuffer()

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                self.inputs = x.shape[-1]
                with torch.no_grad():
                    self.weight.materialize((self.outputs, self.inputs))
                    self.weight.fill_(1.0)
                    self.shift.materialize((self.outputs,))
                    self.shift.zero_()

    return Dense, LazyDense


def method_left_out(text: str) -> str:
    """Leave out how the library shows a function."""
    return re.sub(r"parameter in <.*?>\.", "parameter in f.", text)


@program
def uninitialised(torch):
    p, b = torch.nn.UninitializedParameter(), torch.nn.UninitializedBuffer(dtype=torch.float64)
    yield p, b, p.requires_grad, b.requires_grad, b.persistent, p.dtype, b.dtype, p.device, p.is_leaf, p.grad
    yield isinstance(p, torch.nn.Parameter), isinstance(b, torch.nn.Buffer), torch.nn.parameter.is_lazy(b)
    yield p.is_floating_point(), p.is_complex(), p.size(), p.data, p.get_device()
    actions: list[Callable[[], Any]] = [
        lambda: p + 1,
        lambda: p * p,
        lambda: torch.zeros(2) * p,
        lambda: torch.zeros(3) @ p,
        lambda: p == p,
        lambda: p.sum(),
        lambda: torch.sum(p),
        lambda: p.detach(),
        lambda: p.dim(),
        lambda: p.shape,
        lambda: p.numel(),
        lambda: p.clone(),
        lambda: len(p),
        lambda: p[0],
        lambda: float(p),
        lambda: list(p),
        lambda: p.zero_(),
        lambda: p.view(1),
        lambda: p.stride(),
        lambda: p.tolist(),
        lambda: p.requires_grad_(False),
        lambda: p.share_memory_(),
        lambda: p.type(torch.float64),
        lambda: torch.nn.init.zeros_(p),
        lambda: b + 1,
        lambda: torch.nn.functional.relu(b),
    ]
    for action in actions:
        yield method_left_out(said(action))
    yield p.to(torch.float64), type(b.float()).__name__, b.float().dtype, b.double() is b
    yield copy.deepcopy(p), pickle.loads(pickle.dumps(p)), pickle.loads(pickle.dumps(b))
    p.materialize((2, 3))
    b.materialize((4,), dtype=torch.int32)
    yield type(p), p.shape, p.requires_grad, type(b), b.shape, b.dtype
    fixed = torch.nn.UninitializedParameter(requires_grad=False, dtype=torch.float64)
    fixed.materialize((1,))
    yield fixed.requires_grad, fixed.dtype


@program
def life_of_a_module(torch):
    _, lazy = classes(torch)
    x = torch.ones(1, 3)
    m = lazy(2)
    yield m, m.state_dict(), list(m.parameters()), list(m.named_buffers()), m.has_uninitialized_params()
    m.to(torch.float64)
    yield m.weight.dtype, m.shift.dtype, m.weight, m.shift
    m.float()
    sent = pickle.dumps(torch.nn.UninitializedParameter())
    yield pickle.loads(sent)
    yield m(x), m, type(m).__name__, m.state_dict(), len(m._forward_pre_hooks), len(m._load_state_dict_pre_hooks)
    yield hasattr(m, "_load_hook"), hasattr(m, "_initialize_hook")
    other = lazy(2)
    yield other.load_state_dict(m.state_dict()), other, other.state_dict(), other(x), other
    yield said(lambda: m.load_state_dict(lazy(2).state_dict()))
    yield said(lambda: other.load_state_dict({"weight": torch.ones(2, 3)}, strict=False))
    yield lazy(2).load_state_dict(lazy(2).state_dict())
    partly = lazy(2)
    yield partly.load_state_dict({"weight": torch.ones(2, 3)}, strict=False), partly.has_uninitialized_params()
    yield said(lambda: lazy(2).load_state_dict({"weight": torch.ones(2, 3)}))
    yield said(lambda: lazy(2)._replicate_for_data_parallel())
    yield method_left_out(said(lambda: lazy(2).requires_grad_(False)))
    yield method_left_out(said(lambda: sum(p.numel() for p in lazy(2).parameters())))
    net = torch.nn.Sequential(lazy(2), lazy(3))
    yield net, net(x), net, net.state_dict()


@program
def modules_that_do_not_finish(torch):
    dense, _ = classes(torch)

    class Silent(torch.nn.modules.lazy.LazyModuleMixin, dense):
        def __init__(self):
            super().__init__(1, 1)
            self.weight = torch.nn.UninitializedParameter()

    class Idle(Silent):
        def initialize_parameters(self, x):
            pass

    yield said(lambda: Silent()(torch.ones(1)))
    yield said(lambda: Idle()(torch.ones(1)))


@program
def copies(torch):
    layer = torch.nn.LazyLinear(2)
    for made in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.manual_seed(0)
        yield made(torch.ones(1, 3)), made, layer, layer.weight
    torch.manual_seed(0)
    yield layer(torch.ones(1, 3)), layer


@program
def every_lazy_module(torch):
    nn = torch.nn
    for rank in (1, 2, 3):
        x = torch.linspace(0, 1, 2 * 3 * 5**rank).view(2, 3, *[5] * rank)
        for name in ("LazyConv", "LazyConvTranspose"):
            torch.manual_seed(rank)
            layer = getattr(nn, f"{name}{rank}d")(4, 2)
            yield layer, layer.state_dict(), layer(x).shape, layer, {n: p.shape for n, p in layer.named_parameters()}
        for name in ("LazyBatchNorm", "LazyInstanceNorm"):
            layer = getattr(nn, f"{name}{rank}d")(affine=True)
            yield layer, layer.state_dict(), layer(x).shape, layer, list(layer.state_dict())
    wrong = nn.LazyConv1d(2, 2)
    yield said(lambda: wrong(torch.ones(1, 2, 3, 4)))
    yield said(lambda: nn.LazyBatchNorm1d()(torch.ones(1, 2, 3, 4)))
