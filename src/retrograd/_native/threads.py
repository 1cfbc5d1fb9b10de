"""Threads that run kernels: native code shares out the items of a call, and needs neither Python nor its lock.

A worker is a thread of Python that has gone into native code and stays there. It looks for a call for a while, then sleeps until it is
rung for: waking a thread takes 50 us, finding one that still looks takes 1 us, and programs call one kernel after another. The thread
that calls takes items, too, and then waits for the workers that have taken some, never for one that has not woken up: a call is open
until its items are gone, and whoever comes later finds it closed.

Other systems than Linux and other processors than x86-64 are left to `_core/parallel.py`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import struct
import sys
import threading
from functools import cache
from typing import Any, Final

import numpy as np

from .._core import parallel
from .._settings import get_num_threads
from . import machine

LOOKS: Final = 2000  # times that a worker looks for a call before it sleeps: about 50 us
# What the text below names: places in the memory that threads share, of which those that several write have a line of the cache for
# themselves, and numbers. The state is the number of a call (from bit 32 on), whether it is open, and how many workers have joined it.
_NAMES: Final = {
    "STATE": 0, "NEXT": 64, "FINISHED": 128, "BELL": 192, "SLEEPERS": 256, "STOP": 320,
    "FUNCTION": 384, "CELLS": 392, "SIZES": 400, "SCALARS": 408, "END": 416, "CHUNK": 424, "LIMIT": 432,
    "OPEN": 1 << 16, "JOINED": (1 << 16) - 1, "CALL": 1 << 32, "SYS_FUTEX": 202, "SYS_YIELD": 24, "WAIT": 128, "WAKE": 129,
}  # fmt: skip
_MEMORY: Final = 448
_JOB: Final = struct.Struct("7Q")  # from FUNCTION to LIMIT
_BYTES: Final = bytes.__basicsize__ - 1  # where in an object its bytes begin

# Take items as long as there are some.
_WORK: Final = """
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
define internal void @work(ptr %memory) {
  %next = getelementptr i8, ptr %memory, i64 NEXT
  %function = load ptr, ptr (FUNCTION)
  %cells = load ptr, ptr (CELLS)
  %sizes = load ptr, ptr (SIZES)
  %scalars = load ptr, ptr (SCALARS)
  %end = load i64, ptr (END)
  %chunk = load i64, ptr (CHUNK)
  br label %look
look:
  %low = atomicrmw add ptr %next, i64 %chunk monotonic
  %some = icmp slt i64 %low, %end
  br i1 %some, label %take, label %done
take:
  %behind = add i64 %low, %chunk
  %high = call i64 @llvm.smin.i64(i64 %behind, i64 %end)
  call void %function(ptr %cells, ptr %sizes, ptr %scalars, i64 %low, i64 %high)
  br label %look
done:
  ret void
}
"""
# What a worker does until it is told to stop: (memory, the function syscall, nothing, how often to look, nothing).
_WORKER: Final = """
define void @KERNEL(ptr %memory, ptr %system, ptr %none, i64 %looks, i64 %nothing) {
entry:
  br label %begin
begin:
  %last = phi i64 [ 0, %entry ], [ %last, %sleep ], [ %number, %try ], [ %last, %join ], [ %number, %run ]
  br label %look
look:
  %looked = phi i64 [ 0, %begin ], [ %looked_next, %pause ]
  %bell = load atomic i32, ptr (BELL) seq_cst, align 4
  %state = load atomic i64, ptr (STATE) acquire, align 8
  %number = udiv i64 %state, CALL
  %open_bit = and i64 %state, OPEN
  %is_open = icmp ne i64 %open_bit, 0
  %is_new = icmp ne i64 %number, %last
  %comes = and i1 %is_open, %is_new
  br i1 %comes, label %try, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %looked_next = add i64 %looked, 1
  %again = icmp ult i64 %looked_next, %looks
  br i1 %again, label %look, label %tired
tired:
  %told = load atomic i64, ptr (STOP) seq_cst, align 8
  %is_told = icmp ne i64 %told, 0
  br i1 %is_told, label %end, label %sleep
sleep:
  atomicrmw add ptr (SLEEPERS), i64 1 seq_cst
  call i64 (i64, ...) %system(i64 SYS_FUTEX, ptr (BELL), i64 WAIT, i32 %bell, ptr null)
  atomicrmw sub ptr (SLEEPERS), i64 1 seq_cst
  br label %begin
try:
  %limit = load i64, ptr (LIMIT)
  %joined = and i64 %state, JOINED
  %has_room = icmp ult i64 %joined, %limit
  br i1 %has_room, label %join, label %begin
join:
  %with_me = add i64 %state, 1
  %swap = cmpxchg ptr (STATE), i64 %state, i64 %with_me acq_rel acquire
  %is_in = extractvalue { i64, i1 } %swap, 1
  br i1 %is_in, label %run, label %begin
run:
  call void @work(ptr %memory)
  atomicrmw add ptr (FINISHED), i64 1 release
  br label %begin
end:
  ret void
}
"""
# A call: (memory, the function syscall, nothing, first item, nothing); all else stands in the memory.
_CALLER: Final = """
define void @KERNEL(ptr %memory, ptr %system, ptr %none, i64 %first, i64 %nothing) {
entry:
  store i64 %first, ptr (NEXT)
  store i64 0, ptr (FINISHED)
  %before = load i64, ptr (STATE)
  %number = udiv i64 %before, CALL
  %number_next = add i64 %number, 1
  %shifted = mul i64 %number_next, CALL
  %opened = or i64 %shifted, OPEN
  store atomic i64 %opened, ptr (STATE) release, align 8
  atomicrmw add ptr (BELL), i32 1 seq_cst
  %sleepers = load atomic i64, ptr (SLEEPERS) seq_cst, align 8
  %is_asleep = icmp ne i64 %sleepers, 0
  br i1 %is_asleep, label %ring, label %run
ring:
  %limit = load i64, ptr (LIMIT)
  call i64 (i64, ...) %system(i64 SYS_FUTEX, ptr (BELL), i64 WAKE, i64 %limit)
  br label %run
run:
  call void @work(ptr %memory)
  %closed = atomicrmw and ptr (STATE), i64 -65537 acq_rel
  %joined = and i64 %closed, JOINED
  br label %wait
wait:
  %turn = phi i64 [ 0, %run ], [ %turn_next, %pause ], [ 0, %yield ]
  %finished = load atomic i64, ptr (FINISHED) acquire, align 8
  %is_over = icmp uge i64 %finished, %joined
  br i1 %is_over, label %end, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %turn_next = add i64 %turn, 1
  %go_on = icmp ult i64 %turn_next, 64
  br i1 %go_on, label %wait, label %yield
yield:
  call i64 (i64, ...) %system(i64 SYS_YIELD)
  br label %wait
end:
  ret void
}
"""


def _text(function: str) -> str:
    """Return a module: a name in brackets is a place in the memory, another one a number."""
    lines: list[str] = []
    for number, line in enumerate((_WORK + function).splitlines()):
        for name in re.findall(r"\(([A-Z]+)\)", line):
            lines.append(f"  %at{number} = getelementptr i8, ptr %memory, i64 {_NAMES[name]}")
            line = line.replace(f"({name})", f"%at{number}")
        lines.append(re.sub(r"\b[A-Z_]+\b", lambda found: str(_NAMES.get(found[0], found[0])), line))
    return "\n".join(lines) + "\n"


class _Pool:
    """The workers, and the memory that they share with whoever calls."""

    def __init__(self) -> None:
        room = np.zeros(_MEMORY + 64, np.uint8)
        start = -room.ctypes.data % 64
        self.memory = room[start : start + _MEMORY]
        system = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value
        self.pointers = ctypes.c_char_p(self.memory.ctypes.data), ctypes.c_char_p(system)
        self.serve, self.call = machine.compiled(_text(_WORKER)), machine.compiled(_text(_CALLER))
        self.workers: list[threading.Thread] = []

    def has(self, workers: int) -> bool:
        """Start workers until there are so many, if there can be."""
        while len(self.workers) < workers:
            worker = threading.Thread(target=self._serve, daemon=True, name="retrograd-kernels")
            try:
                worker.start()
            except RuntimeError:  # no more threads for this process, or its end is near
                return False
            self.workers.append(worker)
        return True

    def run(self, job: tuple[int, ...], low: int, workers: int) -> None:
        """Let so many workers help with a job: the addresses of a function and of its arguments, the last item, a chunk."""
        self.has(workers)
        _JOB.pack_into(self.memory.data, _NAMES["FUNCTION"], *job, workers)
        self.call(*self.pointers, None, low, 0)

    def _serve(self) -> None:
        self.serve(*self.pointers, None, LOOKS, 0)

    def stop(self) -> None:
        """Let workers end: their code and memory go with the interpreter."""
        self.memory[_NAMES["STOP"]] = 1
        self.run((0, 0, 0, 0, 0, 1), 0, len(self.workers))
        for worker in self.workers:
            worker.join(1.0)


_pool: _Pool | None = None
_busy = threading.Lock()


def _stop() -> None:
    if _pool is not None and _busy.acquire(blocking=False):
        _pool.stop()


def _forget() -> None:
    """Begin anew in a forked process, where threads do not go."""
    global _pool, _busy
    _pool, _busy = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@cache
def is_possible() -> bool:
    """Tell whether workers can be native: a system and a processor that the text above is written for."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


def _workers() -> _Pool:
    global _pool
    if _pool is None:
        _pool = _Pool()
        atexit.register(_stop)
    return _pool


def share(function: Any, cells: bytes, sizes: bytes, numbers: bytes | None, low: int, high: int, chunk: int) -> None:
    """Call a kernel for the items from `low` to `high`, chunk by chunk, on all threads.

    While they work for another one of the user's threads, this one does it alone.
    """
    count = get_num_threads()
    if not is_possible():

        def work(start: int, end: int) -> None:
            function(cells, sizes, numbers, low + start, low + end)

        parallel.over_blocks(work, high - low, chunk, True)
    elif count > 1 and _busy.acquire(blocking=False):
        try:
            places = [id(one) + _BYTES if one else 0 for one in (cells, sizes, numbers)]
            _workers().run((function.address, *places, high, chunk), low, min(count, -(-(high - low) // chunk)) - 1)
        finally:
            _busy.release()
    else:
        alone(function, cells, sizes, numbers, low, high, chunk)


def together(function: Any, cells: int, threads: int) -> bool:
    """Call a kernel for as many items as `threads`, all of them at the same time; False if so many threads are not free.

    Items may wait for one another. `cells` is an address.
    """
    if not is_possible() or not _busy.acquire(blocking=False):
        return False
    try:
        pool = _workers()
        if not pool.has(threads - 1):
            return False
        pool.run((function.address, cells, 0, 0, threads, 1), 0, threads - 1)
        return True
    finally:
        _busy.release()


def alone(function: Any, cells: bytes, sizes: bytes, numbers: bytes | None, low: int, high: int, chunk: int) -> None:
    """Do the same on this thread."""
    for start in range(low, high, chunk or 1):
        function(cells, sizes, numbers, start, min(start + chunk, high))
