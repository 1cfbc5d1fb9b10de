"""Interrupts at random places of programs that switch modes: `python -m tests.autograd.interrupts 2000` prints what stays on.

A timer raises KeyboardInterrupt somewhere in a program, again and again; after each one every mode must be as it was before.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd._modes import PLAIN, read_mode, set_mode
from retrograd.autograd import _running, forward_ad
from retrograd.overrides import TorchFunctionMode

X = torch.ones(2, requires_grad=True)
CHECKPOINT = torch.utils.checkpoint
SETTINGS = (
    (_running._multithreading, True),
    (_running._layout_enforced, True),
    (torch.nn.functional._attention.allowed, torch.nn.functional._attention.allowed.get()),
)
SEED, STATE = torch.initial_seed(), torch.get_rng_state()
OTHER_STATE = torch.Generator().manual_seed(SEED + 1).get_state()
LAYER = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
OPTIMIZER = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)


def same(value: Any) -> Any:
    return value


class Mode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def grad_modes() -> None:
    with torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled(False):
        pass
    with torch.inference_mode():
        pass


@torch.no_grad()
def decorated() -> None:
    pass


@torch.no_grad()
def generating() -> Any:
    yield 1
    yield 2


@torch.set_grad_enabled(False)
def decorated_by_a_switch() -> None:
    pass


def decorators() -> None:
    decorated()
    list(generating())
    decorated_by_a_switch()


def autocast() -> None:
    with torch.autocast("cpu"), torch.autocast("cpu", enabled=False):
        pass


def saved_hooks() -> None:
    with torch.autograd.graph.saved_tensors_hooks(same, same):
        X.exp()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        pass
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        pass


def anomaly() -> None:
    with torch.autograd.set_detect_anomaly(True):
        pass


def function_modes() -> None:
    with Mode():
        torch.exp(X)


def backward() -> None:
    (X * X).sum().backward()
    torch.autograd.grad((X * X).sum(), X, create_graph=True)
    OPTIMIZER.step()


def transforms() -> None:
    torch.func.grad(lambda x: (x * x).sum())(X)
    torch.func.jvp(torch.sin, (X,), (X,))
    torch.func.vmap(torch.sin)(X)


def forward_levels() -> None:
    with forward_ad.dual_level():
        forward_ad.make_dual(X, X)


def checkpoint() -> None:
    torch.utils.checkpoint.checkpoint(torch.sin, X, use_reentrant=False).sum().backward()
    torch.utils.checkpoint.checkpoint(torch.sin, X, use_reentrant=True).sum().backward()


def choices_of_checkpoint() -> None:
    with CHECKPOINT.set_checkpoint_early_stop(False), CHECKPOINT.set_checkpoint_debug_enabled(True):
        pass


def settings() -> None:
    with torch.autograd.set_multithreading_enabled(False), torch.autograd.grad_mode.enforce_grad_layout_policy(False):
        pass
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        pass


def devices() -> None:
    with torch.device("cpu"):
        torch.ones(1)


def random_streams() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
    with CHECKPOINT._random_state(OTHER_STATE):
        torch.rand(1)


def forward_mode_switched() -> None:
    with forward_ad._set_fwd_grad_enabled(False), forward_ad._set_fwd_grad_enabled(True):
        pass


def parametrizations() -> None:
    with torch.nn.utils.parametrize.cached(), torch.nn.utils.parametrize.cached():
        assert LAYER.weight is LAYER.weight


PROGRAMS: tuple[Callable[[], None], ...] = (
    grad_modes, decorators, autocast, saved_hooks, anomaly, function_modes, backward, transforms, forward_levels, checkpoint,
    choices_of_checkpoint, devices, settings, random_streams, forward_mode_switched, parametrizations,
)  # fmt: skip


def stuck() -> str:
    """Name what is not as it was, and put it back."""
    mode = read_mode()
    found = [] if mode is PLAIN else [name for name in mode._fields if getattr(mode, name) != getattr(PLAIN, name)]
    set_mode(PLAIN)
    if forward_ad.open_level() is not None:
        found.append("forward level")
        forward_ad.exit_dual_level()
    if torch._device._entered.get():
        found.append("device")
        torch._device._entered.set(())
    for variable, usual in SETTINGS:
        if variable.get() != usual:
            found.append(variable.name)
            variable.set(usual)
    for name in ("early_stop", "debug"):
        choices = getattr(CHECKPOINT, f"_{name}")
        if choices:
            found.append(name)
            choices.clear()
    if torch.initial_seed() != SEED:
        found.append("random stream")
        torch.set_rng_state(STATE)
    if not forward_ad._is_fwd_grad_enabled():
        found.append("forward mode")
        forward_ad.set_enabled(True)
    if LAYER.weight is LAYER.weight:
        found.append("cached parametrizations")
        torch.nn.utils.parametrize._open.clear()
    return ", ".join(found)


def interrupted(program: Callable[[], None], seconds: float) -> str:
    """Run a program until a timer interrupts it; return what it left switched."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            program()
    except KeyboardInterrupt:
        inside = stuck()
    except Exception as error:  # of what was left half done by an earlier interrupt
        signal.setitimer(signal.ITIMER_REAL, 0)
        inside = f"{type(error).__name__}: {error}"[:60]
    return inside or stuck()


def main(count: int, seed: int = 0) -> Counter[str]:
    """Interrupt every program as often as the others; return how often each left what."""
    draw, found = random.Random(seed), Counter[str]()

    def raises(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, raises)
    for program in PROGRAMS:
        for _ in range(3):
            program()  # what is loaded late is loaded
        begin = time.perf_counter()
        program()
        taken = time.perf_counter() - begin
        for _ in range(count // len(PROGRAMS) + 1):
            left = interrupted(program, draw.uniform(1e-6, min(3 * taken, 0.01)))
            found[f"{program.__name__}: {left}" if left else "nothing"] += 1
    return found


if __name__ == "__main__":
    for left, times in main(int(sys.argv[1])).most_common():
        print(times, left)
