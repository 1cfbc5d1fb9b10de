"""Threads that run kernels: native code shares out the items of a call, and needs neither Python nor its lock.

Each thread begins with a part of the items that is its own in every call: what it wrote in one kernel lies in its core's cache when the
next one reads it, and cores need not share a cache. Who has finished its part takes what is left of the others'.

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
# From NEXT on, there is a line for each part: the next item that is to be done, and the first that is not of this part.
_NAMES: Final = {
    "STATE": 0, "FINISHED": 64, "BELL": 128, "SLEEPERS": 192, "STOP": 256,
    "FUNCTION": 320, "CELLS": 328, "SIZES": 336, "SCALARS": 344, "END": 352, "CHUNK": 360, "PART": 368, "PARTS": 376,
    "OPEN": 1 << 16, "JOINED": (1 << 16) - 1, "CALL": 1 << 32, "SYS_FUTEX": 202, "SYS_YIELD": 24, "WAIT": 128, "WAKE": 129,
    "NEXT": 384, "LINE": 64,
}  # fmt: skip
_MOST: Final = 256  # threads that work on one call
_MEMORY: Final = _NAMES["NEXT"] + _NAMES["LINE"] * _MOST
_JOB: Final = struct.Struct("8Q")  # from FUNCTION to PARTS
_BYTES: Final = bytes.__basicsize__ - 1  # where in an object its bytes begin

# Take items as long as there are some: first those of the part that this thread, `mine`, has in every call, then those of the others.
_WORK: Final = """
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
define internal void @work(ptr %memory, i64 %mine) {
entry:
  %function = load ptr, ptr (FUNCTION)
  %cells = load ptr, ptr (CELLS)
  %sizes = load ptr, ptr (SIZES)
  %scalars = load ptr, ptr (SCALARS)
  %chunk = load i64, ptr (CHUNK)
  %parts = load i64, ptr (PARTS)
  br label %turn
turn:
  %tried = phi i64 [ 0, %entry ], [ %tried_next, %empty ]
  %sum = add i64 %mine, %tried
  %owner = urem i64 %sum, %parts
  %offset = mul i64 %owner, LINE
  %next = getelementptr i8, ptr (NEXT), i64 %offset
  %next_stop = getelementptr i8, ptr %next, i64 8
  %stop = load i64, ptr %next_stop
  br label %look
look:
  %low = atomicrmw add ptr %next, i64 %chunk monotonic
  %some = icmp slt i64 %low, %stop
  br i1 %some, label %take, label %empty
take:
  %behind = add i64 %low, %chunk
  %high = call i64 @llvm.smin.i64(i64 %behind, i64 %stop)
  call void %function(ptr %cells, ptr %sizes, ptr %scalars, i64 %low, i64 %high)
  br label %look
empty:
  %tried_next = add i64 %tried, 1
  %more = icmp ult i64 %tried_next, %parts
  br i1 %more, label %turn, label %done
done:
  ret void
}
"""
# What a worker does until it is told to stop: (memory, the function syscall, nothing, how often to look, its number).
_WORKER: Final = """
define void @KERNEL(ptr %memory, ptr %system, ptr %none, i64 %looks, i64 %mine) {
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
  %parts = load i64, ptr (PARTS)
  %joined = and i64 %state, JOINED
  %with_caller = add i64 %joined, 1
  %has_room = icmp ult i64 %with_caller, %parts
  br i1 %has_room, label %join, label %begin
join:
  %with_me = add i64 %state, 1
  %swap = cmpxchg ptr (STATE), i64 %state, i64 %with_me acq_rel acquire
  %is_in = extractvalue { i64, i1 } %swap, 1
  br i1 %is_in, label %run, label %begin
run:
  call void @work(ptr %memory, i64 %mine)
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
  %last = load i64, ptr (END)
  %part = load i64, ptr (PART)
  %parts = load i64, ptr (PARTS)
  br label %parting
parting:
  %owner = phi i64 [ 0, %entry ], [ %owner_next, %parting ]
  %start = phi i64 [ %first, %entry ], [ %start_next, %parting ]
  %offset = mul i64 %owner, LINE
  %next = getelementptr i8, ptr (NEXT), i64 %offset
  %next_stop = getelementptr i8, ptr %next, i64 8
  %start_next = add i64 %start, %part
  %stop = call i64 @llvm.smin.i64(i64 %start_next, i64 %last)
  store i64 %start, ptr %next
  store i64 %stop, ptr %next_stop
  %owner_next = add i64 %owner, 1
  %more = icmp ult i64 %owner_next, %parts
  br i1 %more, label %parting, label %begin
begin:
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
  %helpers = sub i64 %parts, 1
  call i64 (i64, ...) %system(i64 SYS_FUTEX, ptr (BELL), i64 WAKE, i64 %helpers)
  br label %run
run:
  call void @work(ptr %memory, i64 0)
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
        self.serve, self.call = [machine.compiled(_text(part), as_it_is=True) for part in (_WORKER, _CALLER)]
        self.workers: list[threading.Thread] = []

    def has(self, workers: int) -> bool:
        """Start workers until there are so many, if there can be."""
        while len(self.workers) < workers:
            worker = threading.Thread(
                target=self._serve, args=(len(self.workers) + 1,), daemon=True, name="retrograd-kernels"
            )
            try:
                worker.start()
            except RuntimeError:  # no more threads for this process, or its end is near
                return False
            self.workers.append(worker)
        return True

    def run(self, job: tuple[int, ...], low: int, high: int, chunk: int, threads: int) -> None:
        """Do items, chunk by chunk, on so many threads: of a function with its arguments, all four as addresses."""
        self.has(threads - 1)
        part = -(-(high - low) // (chunk * threads)) * chunk
        _JOB.pack_into(self.memory.data, _NAMES["FUNCTION"], *job, high, chunk, part, threads)
        self.call(*self.pointers, None, low, 0)

    def _serve(self, number: int) -> None:
        self.serve(*self.pointers, None, LOOKS, number)

    def stop(self) -> None:
        """Let workers end: their code and memory go with the interpreter."""
        self.memory[_NAMES["STOP"]] = 1
        self.run((0, 0, 0, 0), 0, 0, 1, len(self.workers) + 1)
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
    count = min(get_num_threads(), -(-(high - low) // (chunk or 1)), _MOST)
    if not is_possible():

        def work(start: int, end: int) -> None:
            function(cells, sizes, numbers, low + start, low + end)

        parallel.over_blocks(work, high - low, chunk, True)
    elif count > 1 and _busy.acquire(blocking=False):
        try:
            places = [id(one) + _BYTES if one else 0 for one in (cells, sizes, numbers)]
            _workers().run((function.address, *places), low, high, chunk, count)
        finally:
            _busy.release()
    else:
        alone(function, cells, sizes, numbers, low, high, chunk)


def together(function: Any, cells: int, threads: int) -> bool:
    """Call a kernel for as many items as `threads`, all of them at the same time; False if so many threads are not free.

    Items may wait for one another. `cells` is an address.
    """
    if threads > _MOST or not is_possible() or not _busy.acquire(blocking=False):
        return False
    try:
        pool = _workers()
        if not pool.has(threads - 1):
            return False
        pool.run((function.address, cells, 0, 0), 0, threads, 1, threads)
        return True
    finally:
        _busy.release()


def alone(function: Any, cells: bytes, sizes: bytes, numbers: bytes | None, low: int, high: int, chunk: int) -> None:
    """Do the same on this thread."""
    for start in range(low, high, chunk or 1):
        function(cells, sizes, numbers, start, min(start + chunk, high))
