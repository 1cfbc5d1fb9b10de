"""Programs of kernels: one call from Python runs a list of kernels, on several threads.

Note [Programs of kernels]
A program is a table of stages: a kernel (`llvm.render`'s form), where its pointers stand, how many items it has. Its arrays come as
arguments of a function of Python (`launch`), which is made of machine code itself: it takes the addresses of their memory, works out
those of all places in them, and goes through the table.
- Threads share the items of a stage, each taking one part, and wait for one another before a stage that reads what an earlier one has
  written. Which items a thread takes changes no number: a stage that sums has each of its sums in one item.
- A stage that is not worth sharing is done by the first thread.
- A stage may ask whether a number is still what it was when the program was made. If it is not, it writes its own number behind the
  counter of the threads, and the program ends at the next stage `STOPS` of that number, which has no kernel: a thread that comes there
  late must not see what stages behind it have found out.
- The threads are those of `threads.py`. A program that finds them busy with another's call is run by its own thread alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from . import machine
from .threads import together

DATA: Final = object.__basicsize__  # where an array keeps the address of its memory
# flags of a stage: it waits for all threads first; the first thread does it; it ends the program
WAITS, ALONE, STOPS = 1, 2, 4
FIELDS: Final = 4  # of a stage: kernel, pointers, items, flags
LINE: Final = 8  # numbers of 64 bits in a line of the cache: what threads write lies apart


def _pause() -> str:
    """Return what a thread does that waits for another one."""
    return "  call void @llvm.x86.sse2.pause()" if os.uname().machine in ("x86_64", "AMD64") else ""


def field(name: str, base: str, number: int, type: str = "i64") -> str:
    """Write how a number is read."""
    return f"  %{name}.p = getelementptr i64, ptr {base}, i64 {number}\n  %{name} = load {type}, ptr %{name}.p, align 8"


def _text() -> str:
    """Return the text of the functions `launch`, `take_part` and what both call."""
    pause = _pause()
    return f"""
{"declare void @llvm.x86.sse2.pause()" if pause else ""}

; wait until a counter has come to a goal
define internal void @wait(ptr %count, i64 %goal, ptr %yield) noinline #0 {{
entry:
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %again ]
  %now = load atomic i64, ptr %count acquire, align 8
  %there = icmp sge i64 %now, %goal
  br i1 %there, label %done, label %more
more:
{pause}
  %next = add i64 %turn, 1
  %long = and i64 %next, 127
  %tired = icmp eq i64 %long, 0
  br i1 %tired, label %rest, label %again
rest:
  call i32 %yield()
  br label %again
again:
  br label %look
done:
  ret void
}}

; go through the stages of a program as one of several threads; 1 if it was stopped
define internal i64 @drive(ptr %table, i64 %stages, i64 %thread, i64 %threads, ptr %sync, ptr %yield) noinline #0 {{
entry:
  %status.p = getelementptr i64, ptr %sync, i64 {LINE}
  %several = icmp sgt i64 %threads, 1
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %latch ]
  %goal = phi i64 [ 0, %entry ], [ %goal.next, %latch ]
  %go = icmp slt i64 %at, %stages
  br i1 %go, label %body, label %finish
body:
  %place = mul i64 %at, {FIELDS}
  %stage = getelementptr i64, ptr %table, i64 %place
{field("kernel", "%stage", 0, "ptr")}
{field("cells", "%stage", 1, "ptr")}
{field("items", "%stage", 2)}
{field("flags", "%stage", 3)}
  %waits = trunc i64 %flags to i1
  %meets = and i1 %waits, %several
  br i1 %meets, label %meet, label %met
meet:
  %goal.here = add i64 %goal, %threads
  atomicrmw add ptr %sync, i64 1 acq_rel, align 8
  call void @wait(ptr %sync, i64 %goal.here, ptr %yield)
  br label %met
met:
  %goal.next = phi i64 [ %goal, %body ], [ %goal.here, %meet ]
  %ends.bit = and i64 %flags, {STOPS}
  %ends = icmp ne i64 %ends.bit, 0
  br i1 %ends, label %ask, label %which
ask:
  %status = load i64, ptr %status.p, align 8
  %wrong = icmp ne i64 %status, 0
  %so.far = icmp sle i64 %status, %items
  %stopped = and i1 %wrong, %so.far
  br i1 %stopped, label %finish, label %latch
which:
  %alone.bit = and i64 %flags, {ALONE}
  %alone = icmp ne i64 %alone.bit, 0
  br i1 %alone, label %one, label %shared
one:
  %first = icmp eq i64 %thread, 0
  br i1 %first, label %whole, label %latch
whole:
  call void %kernel(ptr %cells, ptr %cells, ptr %cells, i64 0, i64 %items)
  br label %latch
shared:
  %low.n = mul i64 %items, %thread
  %low = udiv i64 %low.n, %threads
  %later = add i64 %thread, 1
  %high.n = mul i64 %items, %later
  %high = udiv i64 %high.n, %threads
  %some = icmp slt i64 %low, %high
  br i1 %some, label %part, label %latch
part:
  call void %kernel(ptr %cells, ptr %cells, ptr %cells, i64 %low, i64 %high)
  br label %latch
latch:
  %next = add i64 %at, 1
  br label %head
finish:
  %goal.end = phi i64 [ %goal, %head ], [ %goal.next, %ask ]
  br i1 %several, label %last, label %out
last:
  %goal.last = add i64 %goal.end, %threads
  atomicrmw add ptr %sync, i64 1 acq_rel, align 8
  %waiting = icmp eq i64 %thread, 0
  br i1 %waiting, label %stay, label %out
stay:
  call void @wait(ptr %sync, i64 %goal.last, ptr %yield)
  br label %out
out:
  %result = load i64, ptr %status.p, align 8
  ret i64 %result
}}

; a kernel whose items are the threads that share a program: it is the part of one, or all if it is called for all of them
define void @take_part(ptr %context, ptr %none, ptr %nothing, i64 %low, i64 %high) #0 {{
entry:
{field("table", "%context", 4, "ptr")}
{field("stages", "%context", 5)}
{field("threads", "%context", 6)}
{field("sync", "%context", 7, "ptr")}
{field("yield", "%context", 8, "ptr")}
  %count = sub i64 %high, %low
  %several = icmp eq i64 %count, 1
  %own = select i1 %several, i64 %threads, i64 1
  %done = call i64 @drive(ptr %table, i64 %stages, i64 %low, i64 %own, ptr %sync, ptr %yield)
  ret void
}}

; a function of Python: of arrays, whose memory it hands to the kernels. It runs a program of one thread, and returns True, or False if that
; was stopped. For several it makes all ready
define ptr @launch(ptr %self, ptr %args, i64 %given) #0 {{
entry:
  %context.p = getelementptr i8, ptr %self, i64 {DATA}
  %context = load ptr, ptr %context.p, align 8
{field("bases", "%context", 0, "ptr")}
{field("places", "%context", 1, "ptr")}
{field("count", "%context", 2)}
{field("slots", "%context", 3, "ptr")}
{field("table", "%context", 4, "ptr")}
{field("stages", "%context", 5)}
{field("threads", "%context", 6)}
{field("sync", "%context", 7, "ptr")}
{field("true", "%context", 9, "ptr")}
{field("false", "%context", 10, "ptr")}
{field("hold", "%context", 11, "ptr")}
{field("leave", "%context", 12, "ptr")}
{field("enter", "%context", 13, "ptr")}
  br label %arrays
arrays:
  %a = phi i64 [ 0, %entry ], [ %a.next, %array ]
  %a.go = icmp slt i64 %a, %given
  br i1 %a.go, label %array, label %spots
array:
  %object.p = getelementptr ptr, ptr %args, i64 %a
  %object = load ptr, ptr %object.p, align 8
  %data.p = getelementptr i8, ptr %object, i64 {DATA}
  %data = load ptr, ptr %data.p, align 8
  %base.p = getelementptr ptr, ptr %bases, i64 %a
  store ptr %data, ptr %base.p, align 8
  %a.next = add i64 %a, 1
  br label %arrays
spots:
  %s = phi i64 [ 0, %arrays ], [ %s.next, %spot ]
  %s.go = icmp slt i64 %s, %count
  br i1 %s.go, label %spot, label %ready
spot:
  %s.two = mul i64 %s, 2
  %which.p = getelementptr i64, ptr %places, i64 %s.two
  %which = load i64, ptr %which.p, align 8
  %offset.p = getelementptr i64, ptr %which.p, i64 1
  %offset = load i64, ptr %offset.p, align 8
  %from.p = getelementptr ptr, ptr %bases, i64 %which
  %from = load ptr, ptr %from.p, align 8
  %address = getelementptr i8, ptr %from, i64 %offset
  %slot = getelementptr ptr, ptr %slots, i64 %s
  store ptr %address, ptr %slot, align 8
  %s.next = add i64 %s, 1
  br label %spots
ready:
  store i64 0, ptr %sync, align 8
  %status = getelementptr i64, ptr %sync, i64 {LINE}
  store i64 0, ptr %status, align 8
  %one = icmp eq i64 %threads, 1
  br i1 %one, label %begin, label %answer
begin:
  %leaves = icmp ne ptr %leave, null
  br i1 %leaves, label %release, label %run
release:
  %state.here = call ptr %leave()
  br label %run
run:
  %state = phi ptr [ null, %begin ], [ %state.here, %release ]
  %ended = call i64 @drive(ptr %table, i64 %stages, i64 0, i64 1, ptr %sync, ptr null)
  br i1 %leaves, label %return, label %answer
return:
  call void %enter(ptr %state)
  br label %answer
answer:
  %found = phi i64 [ 0, %ready ], [ %ended, %run ], [ %ended, %return ]
  %fine = icmp eq i64 %found, 0
  %result = select i1 %fine, ptr %true, ptr %false
  call void %hold(ptr %result)
  ret ptr %result
}}

attributes #0 = {{ nounwind "no-builtins" }}
"""


def _module(name: str) -> str:
    """Return the text for the function `launch` or `take_part`."""
    return _text().replace(f"@{name}(", "@KERNEL(")


# ---- programs ----
class _Method(ctypes.Structure):
    """Python's description of a function that is written in C (PyMethodDef)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


FASTCALL: Final = 0x80
_kept: list[Any] = []


def as_method(text: str) -> Callable[[Context], Callable[..., Any]]:
    """Return what makes functions of Python of contexts: the machine code of a text, which gets the context as `self`."""
    made = _Method(b"native", machine.address(text, as_it_is=True), FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    _kept.append(made)  # as long as functions may be called
    return lambda context: new(ctypes.addressof(made), context, None)


@cache
def _launch() -> Any:
    return as_method(_module("launch"))


@cache
def _of_system(name: str) -> int:
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


@cache
def of_python(name: str) -> int:
    """Return the address of a function of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class Stage:
    """A kernel of a program: its address, the places that its pointers are (numbers), its items and flags."""

    __slots__ = ("flags", "items", "kernel", "places")

    def __init__(self, kernel: int, places: Sequence[int], items: int, flags: int) -> None:
        self.kernel, self.places, self.items, self.flags = kernel, places, items, flags


def launcher(
    stages: Sequence[Stage],
    places: Sequence[tuple[int, int]],
    given: int,
    fixed: Sequence[np.ndarray],
    threads: int,
    long: bool,
) -> Callable[..., bool]:
    """Return a function of `given` arrays that runs a program. See Note [Programs of kernels].

    A place is an array, by its number, and a distance in bytes from where it begins; behind the arrays that are given stand the `fixed`
    ones, and behind these the memory in which stages that ask note what they found. While a `long` program runs, other threads of Python
    may. One such function serves one call at a time.
    """
    sync = np.zeros(3 * LINE, np.uint64)
    bases = np.zeros(given + len(fixed) + 1, np.uint64)
    own = [*fixed, sync[LINE:]]
    bases[given:] = [array.ctypes.data for array in own]
    spots = np.array(places, np.int64).reshape(-1, 2)
    slots = np.zeros(max(len(places), 1), np.uint64)
    first = slots.ctypes.data
    cells = [np.array([first + 8 * place for place in stage.places] or [0], np.uint64) for stage in stages]
    table = np.zeros((max(len(stages), 1), FIELDS), np.uint64)
    for row, stage, pointers in zip(table, stages, cells, strict=False):
        row[:] = stage.kernel, pointers.ctypes.data, stage.items, stage.flags
    context = np.array(
        [
            bases.ctypes.data, spots.ctypes.data, len(places), first, table.ctypes.data, len(stages), threads, sync.ctypes.data,
            _of_system("sched_yield") if threads > 1 else 0, id(True), id(False), of_python("Py_IncRef"),
            *((of_python("PyEval_SaveThread"), of_python("PyEval_RestoreThread")) if long else (0, 0)),
        ],
        np.uint64,
    ).view(Context)  # fmt: skip
    context.kept = own, sync, bases, spots, slots, cells, table
    launch = _launch()(context)
    if threads == 1:
        return launch  # type: ignore[no-any-return]
    part = machine.compiled(_module("take_part"), as_it_is=True)
    status, place = sync[LINE : LINE + 1], context.ctypes.data

    def shared(*arrays: np.ndarray) -> bool:
        launch(*arrays)
        if not together(part, place, threads):
            part(ctypes.c_char_p(place), None, None, 0, threads)
        return not status[0]

    return shared


class Context(np.ndarray):
    """What machine code reads. It keeps alive what that knows only by address."""

    kept: Any
