"""Run torch's own classes of wrapping tensors and print what they log: `python classes_of_torch.py FOLDER`.

Whatever `torch` is. FOLDER has torch's files logging_tensor.py and two_tensor.py.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(sys.argv[1])


def load(name: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


logging, two = load("logging_tensor"), load("two_tensor")
Logging, Two = logging.LoggingTensor, two.TwoTensor


def squares() -> None:
    x = Logging(torch.tensor([3.0]), requires_grad=True)
    logging.log_input("x", x)
    y = x * x
    grad = Logging(torch.tensor([1.0]))
    logging.log_input("grad_y", grad)
    (gx,) = torch.autograd.grad((y,), (x,), (grad,))
    print(gx, gx.elem)
    torch.autograd.grad((x**3).sum(), (x,), create_graph=True)[0].backward()
    print(x.grad)


def layer() -> None:
    x, w, b = (Logging(torch.ones(n), requires_grad=k > 0) for k, n in enumerate(((2, 3), (4, 3), (4,))))
    torch.nn.functional.linear(x, w, b).relu().mean().backward()
    print(type(w.grad).__name__, w.grad.elem, b.grad.elem.tolist())


def writes() -> None:
    x = Logging(torch.ones(2))
    x.add_(2)
    x[0] = 5
    y = x.view(2, 1)[:, 0]
    print(x.elem, y.elem)


def calls() -> None:
    x, y = Logging(torch.ones(1)), Logging(torch.ones(1))
    x.cos().sin_()
    torch.cat([x, y])
    x.to(torch.float64)
    torch.zeros_like(x)
    x.sum(0, keepdim=True)
    x.unsqueeze(0).expand(3, 1).softmax(-1)


for run in (squares, layer, writes, calls):
    with logging.capture_logs() as logs:
        run()
    print("--", run.__name__, *logs, sep="\n")

print(Logging(torch.tensor([1.0, 2.0])))
parameter = torch.nn.Parameter(Logging(torch.ones(2)))
print(type(parameter).__name__, isinstance(parameter, torch.nn.Parameter), parameter.requires_grad, parameter.device)

a = Two(torch.ones(3, 2), torch.full((3, 2), 2.0)).requires_grad_()
(a * a).sum().backward()
print(a.grad)
module = torch.nn.Linear(2, 2)
with torch.no_grad():
    module.weight.fill_(1.0)
    module.bias.fill_(0.0)
loss = module(a.detach()).relu().sum()
print(loss)
loss.backward()
print(type(module.weight.grad).__name__, module.weight.grad.a.tolist(), module.weight.grad.b.tolist())
b = Two(torch.zeros(2), torch.ones(2))
print(b.add_(1) is b, b, b.__tensor_flatten__(), torch.utils._python_dispatch.is_traceable_wrapper_subclass(b))

with logging.capture_logs_with_logging_tensor_mode() as logs:
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
print(*logs, sep="\n")


# ---- gradients, whatever a class is made of ----
def row(x: Any) -> Any:
    y = x.clone()
    y[0] = 1.0
    y.sum().backward()
    return x.grad


def views(x: Any) -> Any:
    y = x * 2
    y[1:].mul_(x[1:])
    first = y[0]
    y.add_(x)
    y.t()[0] += 1
    (first * y).sum().backward()
    return x.grad


def mask(x: Any) -> Any:
    y = x.clone()
    y[x > 1] = 0.0
    (y * x).sum().backward()
    return x.grad


def itself(x: Any) -> Any:
    y = x.clone()
    y.mul_(y)
    y.sum().backward()


def saved_result(x: Any) -> Any:
    y = x.clone()
    y.relu_().clamp_(max=2.0)
    y.sum().backward()


def twice(x: Any) -> Any:
    (g,) = torch.autograd.grad(x.t().diagonal().lgamma().sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)[0]


def transform(x: Any) -> Any:
    return torch.func.grad(lambda x: (x * x).sum())(x.detach())


def turned(x: Any) -> Any:
    y = x.clone().unsqueeze_(0).squeeze_(0).t_()
    (y * 2).sum().backward()
    return x.grad


def hooked(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.sum().backward()
    print(type(y.grad).__name__)
    return x.grad


def numbers(x: Any) -> Any:
    held = [x.elem] if isinstance(x, Logging) else [x.a, x.b] if isinstance(x, Two) else [x]
    return [[[round(value, 3) for value in part] for part in one.tolist()] for one in held]


for run in (row, views, mask, itself, saved_result, twice, transform, turned, hooked):
    for make in (Logging, lambda data: Two(data, data * 2)):
        leaf = make(torch.tensor([[0.5, 1.5], [2.5, 3.5]])).requires_grad_()
        try:
            found = run(leaf)
            print(run.__name__, type(found).__name__, numbers(found))
        except RuntimeError as error:
            print(run.__name__, str(error)[:180])
