"""Other threads, while a function is recorded or on trial: they see tensors as they are, and what they change stays changed."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import _recording, _verifying

MOMENTS = {"recorded": (_recording._Session, "_finish"), "tried": (_verifying.Trial, "_described")}


def in_a_thread(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


class Training:
    """A compiled step, in the midst of which another thread does something."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.x = torch.arange(15.0).reshape(5, 3) % 4
        model, optimizer = self.model, self.optimizer

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(2):
            step(self.x)  # so that there is state, and gradients
        self.step, self.compiled = step, torch.compile(step)

    def described(self) -> Any:
        return [
            [
                (
                    str(type(one)),
                    one.tolist(),
                    one.requires_grad,
                    one.is_leaf,
                    one._version,
                    one.data_ptr(),
                    one.stride(),
                )
                for one in [*self.model.parameters(), *self.model.buffers()]
            ],
            [one.grad.tolist() for one in self.model.parameters()],
            [one["momentum_buffer"].tolist() for one in self.optimizer.state.values()],
            repr(self.model[0].weight),
        ]

    def used(self) -> Any:
        self.model.eval()
        x = torch.ones(2, 3, requires_grad=True)
        out = self.model(x)
        grads = torch.autograd.grad(out.sum(), [x, *self.model.parameters()])
        self.model.train()
        return [
            type(out),
            out.tolist(),
            [one.tolist() for one in grads],
            type(self.model[0].weight.detach()),
            type(self.model[0].weight * 2),
        ]

    def changed(self) -> Any:
        """Change everything, as another thread may."""
        with torch.no_grad():
            for one in [*self.model.parameters(), *self.model.buffers()]:
                one.add_(1)
        self.used_backward()

    def used_backward(self) -> None:
        self.model[2](torch.ones(1, 4)).sum().backward()

    def at(self, moment: str, monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any], joins: bool = True) -> Any:
        """Run a compiled step, in which at some moment another thread acts; return what that has found."""
        owner, name = MOMENTS[moment]
        original = getattr(owner, name)
        acting: list[Any] = []

        def method(*args: Any) -> Any:
            if not acting:
                acting.append(in_a_thread(action))
                if joins:
                    acting[0][0].join()
            return original(*args)

        beside = threading.Event()
        waiting, _ = in_a_thread(beside.wait)  # there is another thread, from the beginning
        try:
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, method)
                self.compiled(self.x)
        finally:
            beside.set()
            waiting.join()
        thread, found = acting[0]
        thread.join()
        return found[0]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", ["described", "used"])
def test_another_thread_sees_tensors_as_they_are(moment: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    action = getattr(training, what)
    expected = action()
    assert training.at(moment, monkeypatch, action) == expected
    assert not training.compiled._compiled.reasons


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_another_thread_changes_stays_changed(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Training(), Training()
    assert one.at(moment, monkeypatch, one.changed) is None
    other.changed()
    other.step(other.x)  # a call is recorded and tried before it runs
    for side, also in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        torch.testing.assert_close(side, also)
    found, expected = [[p.grad for p in side.model.parameters()] for side in (one, other)]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("moment", MOMENTS)
def test_copies_wait_for_the_end(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    made = training.at(
        moment,
        monkeypatch,
        lambda: [copy.deepcopy(training.model), pickle.loads(pickle.dumps(training.model))],
        joins=False,
    )
    for model in made:
        assert {type(one) for one in model.parameters()} == {torch.nn.Parameter}
        torch.testing.assert_close(model.state_dict(), training.model.state_dict())


def test_threads_that_train_one_model_and_watch_it() -> None:
    training = Training()
    stop, wrong = threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            for one in training.model.parameters():
                if one.grad_fn is not None or not (one.grad is None or one.grad.tolist()) or not one.tolist():
                    wrong.append(one)
            training.model[0](torch.ones(2, 3)).sum()

    watching, problems = in_a_thread(watch)
    for size in range(2, 8):  # each is recorded
        training.compiled(torch.ones(size, 3))
    stop.set()
    watching.join()
    assert problems == [None]
    assert not wrong


def test_threads_are_counted_while_garbage_is_due() -> None:
    """In Python 3.11 a collection in the midst of `sys._current_frames` waited forever if it found a `threading.local`."""
    program = """
import gc, threading
from retrograd.compiler._apart import is_alone

for left in range(60):
    gc.collect()
    local = threading.local()
    local.cycle = local
    del local
    gc.set_threshold(gc.get_count()[0] + left)
    assert is_alone() and gc.isenabled()
gc.disable()
assert is_alone() and not gc.isenabled()
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
