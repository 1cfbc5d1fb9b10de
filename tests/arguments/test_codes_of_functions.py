"""Public functions ask who takes their calls over only while somebody may: then their plain code comes back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

START = """
import inspect, threading
import retrograd
from retrograd import Tensor, _watching, overrides
from retrograd.overrides import TorchFunctionMode
from retrograd.utils._python_dispatch import TorchDispatchMode

seen = []

class Function(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(function)
        return function(*args, **(kwargs or {}))

class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(str(function))
        return function(*args, **(kwargs or {}))

x = retrograd.ones(3)

def calls():
    for _ in range(_watching.PATIENCE + 1):
        x.sum(), x.view(3), x.detach(), x[0], retrograd.zeros(2), retrograd.cat([x, x])

def codes():
    return [f.__code__ for f in (Tensor.sum, Tensor.view, Tensor.detach, Tensor.__getitem__, retrograd.zeros, retrograd.cat)]

calls()
before = codes()

def check_plain():
    calls()
    assert codes() == before and not overrides.may_take_over()
"""

PROGRAMS = {
    "modes": """
for mode in (Function, Dispatch, Function):
    seen.clear()
    with mode():
        assert codes() != before
        x.sum(), retrograd.zeros(2), x.detach()
    assert len(seen) == 3, seen
    check_plain()
""",
    "an error inside of a mode": """
try:
    with Function(), Dispatch():
        raise KeyError
except KeyError:
    check_plain()
""",
    "autocast": """
with retrograd.autocast("cpu", retrograd.bfloat16):
    assert retrograd.mm(retrograd.ones(2, 2), retrograd.ones(2, 2)).dtype == retrograd.bfloat16
check_plain()
retrograd.set_autocast_enabled("cpu", True)
calls()
assert retrograd.mm(retrograd.ones(2, 2), retrograd.ones(2, 2)).dtype == retrograd.bfloat16
retrograd.set_autocast_enabled("cpu", False)
check_plain()
""",
    "a trace of fx": """
import gc
graph = retrograd.fx.symbolic_trace(lambda a: retrograd.cat([a, a]).sum())
gc.collect()
check_plain()
assert graph(x).item() == 6
""",
    "a profile": """
with retrograd.profiler.profile() as profile:
    x.sum()
check_plain()
assert [e.key for e in profile.key_averages()] == ["aten::sum"]
""",
    "a mode of another thread": """
inside, ready = threading.Event(), threading.Event()

def other():
    with Function():
        inside.set()
        ready.wait()
        retrograd.zeros(2)

thread = threading.Thread(target=other)
thread.start()
inside.wait()
calls()
assert codes() != before
ready.set()
thread.join()
assert seen == [retrograd.zeros]
check_plain()
""",
    "modes left out of order": """
one, two = Function(), Function()
one.__enter__(), two.__enter__()
one.__exit__(None, None, None)
calls()
seen.clear()
retrograd.zeros(2)
assert seen == [retrograd.zeros]
two.__exit__(None, None, None)
check_plain()
""",
    "a generator that waits inside of a mode": """
def steps():
    with Function():
        yield

generator = steps()
next(generator)
calls()
seen.clear()
retrograd.zeros(2)
assert seen == [retrograd.zeros]
generator.close()
check_plain()
""",
    "an interrupted exchange": """
exchanged = list(_watching._forms)

class Interrupting:
    def __setattr__(self, name, value):
        if Interrupting.active:
            raise KeyboardInterrupt

_watching._forms.insert(len(_watching._forms) // 2, (Interrupting(), None, None))
Interrupting.active = True
try:
    with Function():
        pass
    raise AssertionError
except KeyboardInterrupt:
    pass
Interrupting.active = False
with Function():
    x.sum(), x.view(3), retrograd.zeros(2), x[0]
assert seen == [Tensor.sum, Tensor.view, retrograd.zeros, Tensor.__getitem__], seen
Interrupting.active = True
try:
    calls()
    raise AssertionError
except KeyboardInterrupt:
    Interrupting.active = False
check_plain()
""",
    "a copy of a context": """
import contextvars
with Function():
    context = contextvars.copy_context()
calls()
assert context.run(retrograd.zeros, 2).shape == (2,) and seen == [retrograd.zeros]
del context
check_plain()
""",
    "signatures": """
functions = {}
for space in overrides.NAMESPACES:
    module = eval(f"retrograd.{space}".rstrip("."))
    functions |= {f"{space}.{name}": getattr(module, name) for name in dir(module) if not name.startswith("_")}
functions |= {f"Tensor.{name}": getattr(Tensor, name) for name in dir(Tensor)}
functions = {name: f for name, f in functions.items() if inspect.isfunction(f)}
assert len(functions) > 1000
told = lambda: {name: inspect.signature(f) for name, f in functions.items()}
as_it_was = told()
for mode in (Function, Dispatch):
    with mode():
        assert told() == as_it_was
    assert told() == as_it_was
    check_plain()
    assert told() == as_it_was
class Own(Tensor):
    pass
assert told() == as_it_was
""",
    "a class": """
class Own(Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen.append((function, args, kwargs))
        return super().__torch_function__(function, types, args, kwargs or {})
calls()
assert not seen
own = x.as_subclass(Own)
seen.clear()
retrograd.cat([x, own]), own.sum(dim=0)
assert [one[0] for one in seen] == [retrograd.cat, Tensor.sum] and seen[1][2] == {"dim": 0}
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_plain_code_comes_back_after(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", START + PROGRAMS[name]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda torch, x: x + 1,
    "radd": lambda torch, x: 1 + x,
    "sub": lambda torch, x: x - 1,
    "rsub": lambda torch, x: 1 - x,
    "mul": lambda torch, x: 2 * x,
    "div": lambda torch, x: x / 2,
    "rdiv": lambda torch, x: 2 / x,
    "floordiv": lambda torch, x: x // 2,
    "rfloordiv": lambda torch, x: 2 // x,
    "mod": lambda torch, x: x % 2,
    "rmod": lambda torch, x: 2 % x,
    "pow": lambda torch, x: x**2,
    "rpow": lambda torch, x: 2**x,
    "matmul": lambda torch, x: x @ x,
    "eq": lambda torch, x: x == 1,
    "ne": lambda torch, x: x != 1,
    "ge": lambda torch, x: x >= 1,
    "neg": lambda torch, x: -x,
    "pos": lambda torch, x: +x,
    "and": lambda torch, x: (x > 0) & True,
    "ror": lambda torch, x: True | (x > 0),
    "lshift": lambda torch, x: x.long() << 1,
    "float": lambda torch, x: float(x.sum()),
    "bool": lambda torch, x: bool(x.sum()),
    "complex": lambda torch, x: complex(x.sum()),
    "index": lambda torch, x: [1, 2][x.sum().long() - 3],
    "iadd": lambda torch, x: x.clone().__iadd__(1),
    "exp_": lambda torch, x: x.clone().exp_(),
    "view": lambda torch, x: x.view(3),
    "getitem": lambda torch, x: x[0],
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("by", ["mode", "class"])
def test_operators_are_handed_over_as_the_methods_that_programs_name(name: str, by: str) -> None:
    def seen(torch: Any) -> list[tuple[str, bool]]:
        found = []

        def answer(function: Any, args: Any, kwargs: Any) -> Any:
            methods = [value for key in dir(torch.Tensor) if (value := getattr(torch.Tensor, key, None)) is function]
            found.append((function.__name__, bool(methods)))
            return function(*args, **(kwargs or {}))

        class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return answer(function, args, kwargs)

        class Own(torch.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                with torch._C.DisableTorchFunctionSubclass():
                    return answer(function, args, kwargs)

        x = torch.ones(3)
        if by == "mode":
            with Mode():
                OPERATORS[name](torch, x)
        else:
            x = x.as_subclass(Own)
            found.clear()
            OPERATORS[name](torch, x)
        return found

    import torch

    import retrograd

    assert seen(retrograd) == seen(torch)
