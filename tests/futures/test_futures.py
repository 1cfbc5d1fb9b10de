"""torch.futures: values set by one thread and awaited by others, callbacks, errors, and several at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from retrograd import futures
from tests.autograd.recording import Programs, caught

program = Programs("futures")


@program
def values_and_errors(torch):
    one, two = torch.futures.Future(), torch.futures.Future()
    before = one.done()
    one.set_result(3)
    two.set_exception(ValueError("foo"))
    return (
        before,
        one.done(),
        one.wait(),
        one.value(),
        caught(one.set_result, 4),
        caught(two.wait),
        two.done(),
        caught(two.value),
    )


@program
def what_is_refused(torch):
    future = torch.futures.Future()
    return (
        caught(future.set_exception, 3),
        caught(lambda: torch.futures.Future(devices=["cpu"])),
        caught(future.then, 3).__class__,
    )


@program
def callbacks_run_in_order_and_chain(torch):
    seen: list[Any] = []
    future = torch.futures.Future()
    after = future.then(lambda f: (seen.append("then"), f.wait() + 1)[1])
    future.add_done_callback(lambda f: seen.append(("done", f.value())))
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append("late"))
    return seen, after.wait(), after.then(lambda f: f.value() * 10).wait()


@program
def errors_of_callbacks_go_on(torch):
    future = torch.futures.Future()
    future.set_result(1)
    error = caught(future.then(lambda f: 1 // 0).wait)
    return type(error), str(error).split("\n")[0]


@program
def several_at_once(torch):
    a, b, c = (torch.futures.Future() for _ in range(3))
    both, all_three = torch.futures.collect_all([a, b]), torch.futures.collect_all([a, b, c])
    a.set_result(1)
    half = both.done()
    b.set_result(2)
    c.set_exception(KeyError("z"))
    return (
        half,
        both.done(),
        [f.value() for f in both.wait()],
        torch.futures.wait_all([b, a]),
        caught(all_three.wait),
        (torch.futures.collect_all([]).wait()),
    )


test_as_torch, test_recording_is_torchs = program.tests()


@pytest.mark.parametrize("round_", range(20))
def test_a_thread_that_waits_is_woken(round_: int) -> None:
    future: futures.Future[int] = futures.Future()
    got: list[int] = []
    waiting = [threading.Thread(target=lambda: got.append(future.wait())) for _ in range(4)]
    for thread in waiting:
        thread.start()
    future.set_result(round_)
    for thread in waiting:
        thread.join(10)
    assert got == [round_] * 4


def test_collecting_waits_for_other_threads() -> None:
    several: list[futures.Future[int]] = [futures.Future() for _ in range(8)]
    together = futures.collect_all(several)
    threads = [threading.Thread(target=future.set_result, args=(i,)) for i, future in enumerate(several)]
    for thread in threads:
        thread.start()
    assert [future.value() for future in together.wait()] == list(range(8))
