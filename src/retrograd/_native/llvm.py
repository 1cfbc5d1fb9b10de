"""Loops as text for LLVM. The tables are the renderer: an operation and its type give a line of text.

No flag that would let LLVM assume away NaN, infinities or signs of zero is used, but for the largest and smallest of numbers where NaN has
been looked for beside. `reassoc` stands on what reductions carry, and nowhere else.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from .expression import FLOATS, WIDTH
from .loops import Carried, Function, Loop, Step

TYPES: Final = {
    "f32": "float", "f64": "double", "i1": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32",
    "i64": "i64", "u64": "i64", "ptr": "ptr", "void": "void",
}  # fmt: skip
# what lies in memory, by storage: half precision is 16 bits, a truth value a byte
STORED: Final = {**TYPES, "f16": "half", "bf16": "i16", "i1": "i8"}
HALF: Final = ("f16", "bf16")
BYTES: Final = {"f16": 2, "bf16": 2, "i1": 1, **{t: w // 8 for t, w in WIDTH.items() if t != "i1"}}

# {t} is the type and {s} its name in those of LLVM's functions, {i1} that of truth values; {a} {b} {c} are the arguments
FLOAT: Final = {
    "add": "fadd {t} {a}, {b}",
    "sum_add": "fadd reassoc {t} {a}, {b}",
    "prod_mul": "fmul reassoc {t} {a}, {b}",
    "sub": "fsub {t} {a}, {b}",
    "mul": "fmul {t} {a}, {b}",
    "div": "fdiv {t} {a}, {b}",
    "rem": "frem {t} {a}, {b}",
    "neg": "fneg {t} {a}",
    "sum_fma": "call reassoc {t} @llvm.fmuladd.{s}({t} {a}, {t} {b}, {t} {c})",
    "fma": "call {t} @llvm.fma.{s}({t} {a}, {t} {b}, {t} {c})",
    "sqrt": "call {t} @llvm.sqrt.{s}({t} {a})",
    "floor": "call {t} @llvm.floor.{s}({t} {a})",
    "ceil": "call {t} @llvm.ceil.{s}({t} {a})",
    "trunc": "call {t} @llvm.trunc.{s}({t} {a})",
    "rint": "call {t} @llvm.rint.{s}({t} {a})",
    "abs": "call {t} @llvm.fabs.{s}({t} {a})",
    "copysign": "call {t} @llvm.copysign.{s}({t} {a}, {t} {b})",
    "minimum": "call {t} @llvm.minimum.{s}({t} {a}, {t} {b})",
    "maximum": "call {t} @llvm.maximum.{s}({t} {a}, {t} {b})",
    # of numbers: where one is NaN nobody reads the result
    "ordered_min": "call nnan nsz {t} @llvm.minnum.{s}({t} {a}, {t} {b})",
    "ordered_max": "call nnan nsz {t} @llvm.maxnum.{s}({t} {a}, {t} {b})",
    "select": "select {i1} {a}, {t} {b}, {t} {c}",
}
INTEGER: Final = {
    "add": "add {t} {a}, {b}",
    "sum_add": "add {t} {a}, {b}",
    "prod_mul": "mul {t} {a}, {b}",
    "sub": "sub {t} {a}, {b}",
    "mul": "mul {t} {a}, {b}",
    "div": "{u}div {t} {a}, {b}",
    "rem": "{u}rem {t} {a}, {b}",
    "udiv": "udiv {t} {a}, {b}",
    "urem": "urem {t} {a}, {b}",
    "and": "and {t} {a}, {b}",
    "or": "or {t} {a}, {b}",
    "xor": "xor {t} {a}, {b}",
    "shl": "shl {t} {a}, {b}",
    "shr": "{r}shr {t} {a}, {b}",
    "minimum": "call {t} @llvm.{u}min.{s}({t} {a}, {t} {b})",
    "maximum": "call {t} @llvm.{u}max.{s}({t} {a}, {t} {b})",
    "imin": "call {t} @llvm.smin.{s}({t} {a}, {t} {b})",
    "imax": "call {t} @llvm.smax.{s}({t} {a}, {t} {b})",
    "select": "select {i1} {a}, {t} {b}, {t} {c}",
}
COMPARED: Final = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
COMPARED_INTEGERS: Final = {"lt": "{u}lt", "le": "{u}le", "gt": "{u}gt", "ge": "{u}ge", "eq": "eq", "ne": "ne"}
# What is said of a function: how wide its vectors are, where the processor has them as wide. LLVM's own choice for those with AVX-512 is
# 256 bits. Twice as many take a tenth longer where memory is what a function waits for (a step of SGD with momentum 170 us, not 150), and
# a third less where it computes (a million square roots 77, not 142; Zen 5).
PREFERRED: Final = ' "prefer-vector-width"="{}"'
# of a loop of few turns
SHORT: Final = ('!{!"llvm.loop.vectorize.predicate.enable", i1 true}', '!{!"llvm.loop.interleave.count", i32 1}')
# of one whose turns are known, before LLVM makes vectors of them
WHOLE: Final = ('!{!"llvm.loop.unroll.disable"}',)
# of one of many turns that computes more than a few steps: four vectors side by side, as each step waits for the one before (a million
# softplus 408 us, not 562; but a step of AdamW on ten million, which waits for memory, would take 4.7 ms, not 4.2)
SIDE_BY_SIDE: Final = ('!{!"llvm.loop.interleave.count", i32 4}',)
FEW_STEPS: Final = 20
# and of one whose values take all registers
SINGLE: Final = ('!{!"llvm.loop.interleave.count", i32 1}', '!{!"llvm.loop.unroll.disable"}')

# Numbers of w bytes to memory past the cache: 64 bytes at a time from the first line that is whole, one by one before and behind.
STREAM: Final = """define internal void @stream_{w}(ptr noalias %to, ptr noalias %from, i64 %count) #0 {{
entry:
  %address = ptrtoint ptr %to to i64
  %number = udiv exact i64 %address, {w}
  %before = sub i64 0, %number
  %missing = and i64 %before, {mask}
  %first = call i64 @llvm.umin.i64(i64 %missing, i64 %count)
  %rest = sub i64 %count, %first
  %inside = and i64 %rest, -{n}
  %last = add i64 %first, %inside
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i_next, %one ]
  %i_more = icmp ult i64 %i, %first
  br i1 %i_more, label %one, label %lines
one:
  %i_from = getelementptr {t}, ptr %from, i64 %i
  %i_to = getelementptr {t}, ptr %to, i64 %i
  %i_value = load {t}, ptr %i_from, align {w}
  store {t} %i_value, ptr %i_to, align {w}
  %i_next = add i64 %i, 1
  br label %head
lines:
  %j = phi i64 [ %first, %head ], [ %j_next, %line ]
  %j_more = icmp ult i64 %j, %last
  br i1 %j_more, label %line, label %tail
line:
  %j_from = getelementptr {t}, ptr %from, i64 %j
  %j_to = getelementptr {t}, ptr %to, i64 %j
  %j_value = load <8 x i64>, ptr %j_from, align {w}
  store <8 x i64> %j_value, ptr %j_to, align 64, !nontemporal !{{i32 1}}
  %j_next = add i64 %j, {n}
  br label %lines
tail:
  %k = phi i64 [ %last, %lines ], [ %k_next, %some ]
  %k_more = icmp ult i64 %k, %count
  br i1 %k_more, label %some, label %done
some:
  %k_from = getelementptr {t}, ptr %from, i64 %k
  %k_to = getelementptr {t}, ptr %to, i64 %k
  %k_value = load {t}, ptr %k_from, align {w}
  store {t} %k_value, ptr %k_to, align {w}
  %k_next = add i64 %k, 1
  br label %tail
done:
  ret void
}}"""


def _number(value: Any, type: str) -> str:
    if type in FLOATS:
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type == "i1":
        return "true" if value else "false"
    return str(int(value))


class Text:
    """The text of one function. `vectors.VectorText` writes the same with `lanes` numbers at a time."""

    lanes = 0

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.intrinsics: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.count = 0
        self.loops = 0
        self.block = "entry"
        self.metadata: list[str] = []
        self.group: list[str] = []  # access groups of the loops around

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def put(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def type(self, name: str) -> str:
        """Return what LLVM calls a type."""
        return f"<{self.lanes} x {TYPES[name]}>" if self.lanes else TYPES[name]

    def suffix(self, name: str) -> str:
        """Return a type as it stands in the names of LLVM's functions."""
        plain = name if name in FLOATS else TYPES[name]
        return f"v{self.lanes}{plain}" if self.lanes else plain

    def number(self, value: Any, type: str) -> str:
        """Return a constant."""
        text = _number(value, type)
        return f"<{', '.join([f'{TYPES[type]} {text}'] * self.lanes)}>" if self.lanes else text

    def of(self, value: Any) -> str:
        """Return the name or the number of a value."""
        if isinstance(value, Step):
            if value.op == "const":
                return self.number(value.detail, value.type)
            if value.op == "scratch":
                return f"%scratch{value.detail}"
        return self.names[id(value)]

    # ---- bodies ----
    def body(self, steps: list[Any]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                self.loop(step)
            else:
                self.names[id(step)] = self.step(step)

    def loop(self, loop: Loop) -> None:
        self.loops += 1
        n = self.loops
        begin, end = self.of(loop.begin), self.of(loop.end)
        self.line(f"br label %before{n}")
        self.lines.append(f"before{n}:")
        self.line(f"br label %head{n}")
        self.lines.append(f"head{n}:")
        index = self.names[id(loop.index)] = self.fresh()
        at = len(self.lines)
        for carried in loop.carried:
            self.names[id(carried)] = self.fresh()
        go = self.fresh()
        self.line(f"{go} = icmp slt i64 {index}, {end}")
        self.line(f"br i1 {go}, label %body{n}, label %after{n}")
        self.lines.append(f"body{n}:")
        if loop.free:
            self.metadata.append("distinct !{}")
            self.group.append(f"!{len(self.metadata) - 1}")
        self.body(loop.body)
        step = self.fresh()
        self.line(f"br label %latch{n}")
        self.lines.append(f"latch{n}:")
        self.line(f"{step} = add nsw i64 {index}, 1")
        tail = ""
        if loop.free:
            group = self.group.pop()
            self.metadata.append(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
            accesses = len(self.metadata) - 1
            hints = []
            computes = loop.long and not loop.carried and len(self.lines) - at > FEW_STEPS
            for hint in SHORT * loop.short + WHOLE * loop.whole + SINGLE * loop.single + SIDE_BY_SIDE * computes:
                self.metadata.append(hint)
                hints.append(f", !{len(self.metadata) - 1}")
            number = len(self.metadata)
            self.metadata.append(f"distinct !{{!{number}, !{accesses}{''.join(hints)}}}")
            tail = f", !llvm.loop !{number}"
        self.line(f"br label %head{n}{tail}")
        self.lines.append(f"after{n}:")
        phis = [f"  {index} = phi i64 [ {begin}, %before{n} ], [ {step}, %latch{n} ]"]
        for carried in loop.carried:
            name, type = self.names[id(carried)], TYPES[carried.type]
            phis.append(
                f"  {name} = phi {type} [ {self.of(carried.start)}, %before{n} ], [ {self.of(carried.next)}, %latch{n} ]"
            )
        self.lines[at:at] = phis

    # ---- steps ----
    def step(self, step: Step) -> str:
        op, type = step.op, step.type
        special = getattr(self, f"_{op}", None)
        if special is not None:
            return special(step)  # type: ignore[no-any-return]
        args = [self.of(a) for a in step.args]
        names = dict(zip("abc", args, strict=False))
        if op in COMPARED:
            of = step.args[0].type
            if of in FLOATS:
                return self.put(f"fcmp {COMPARED[op]} {self.type(of)} {args[0]}, {args[1]}")
            sign = "" if op in ("eq", "ne") else "u" if of[0] == "u" or of == "i1" else "s"
            return self.put(f"icmp {COMPARED_INTEGERS[op].format(u=sign)} {self.type(of)} {args[0]}, {args[1]}")
        return self.put(self.operation(op, type, names))

    def operation(self, op: str, type: str, names: dict[str, str]) -> str:
        """Return the text of an operation of numbers of one type."""
        t = self.type(type)
        unsigned = type[0] == "u"
        sign = {} if type in FLOATS else {"u": "u" if unsigned else "s", "r": "l" if unsigned else "a"}
        table = FLOAT if type in FLOATS else INTEGER
        text = table[op].format(t=t, s=self.suffix(type), i1=self.type("i1"), **sign, **names)
        if "@llvm." in text:
            name = text[text.index("@") : text.index("(")]
            self.intrinsics[name] = f"declare {t} {name}({', '.join([t] * len(names))})"
        return text

    def _pointer(self, step: Step) -> str:
        cell = self.put(f"load ptr, ptr {self._at('%cells', step.detail, 'ptr')}")
        return self.put(f"load ptr, ptr {cell}")

    def _size(self, step: Step) -> str:
        return self.put(f"load i64, ptr {self._at('%sizes', step.detail, 'i64')}")

    def _scalar(self, step: Step) -> str:
        value = self.put(f"load double, ptr {self._at('%scalars', step.detail, 'double')}")
        return self._converted(value, "f64", step.type)

    def _bound(self, step: Step) -> str:
        return "%high" if step.detail else "%low"

    def _at(self, base: str, number: int, type: str) -> str:
        return self.put(f"getelementptr {type}, ptr {base}, i64 {number}")

    def _offset(self, step: Step) -> str:
        base, offset = map(self.of, step.args)
        return self.put(f"getelementptr i8, ptr {base}, i64 {offset}")

    def _product(self, step: Step) -> str:
        """Call BLAS's product of matrices by its address.

        The arguments are pointers, sizes and how far rows are apart; `detail` says which matrices are transposed, and whether the
        product is added to what is there.
        """
        cell, x, y, out, rows, columns, inner, x_step, y_step, out_step = map(self.of, step.args)
        function = self.put(f"load ptr, ptr {cell}")
        *transposed, add = step.detail
        number, one, old = TYPES[step.type], _number(1.0, step.type), _number(1.0 if add else 0.0, step.type)
        turned = [112 if one else 111 for one in transposed]
        self.line(
            f"call void {function}(i32 101, i32 {turned[0]}, i32 {turned[1]}, i64 {rows}, i64 {columns}, i64 {inner}, {number} {one}, "
            f"ptr {x}, i64 {x_step}, ptr {y}, i64 {y_step}, {number} {old}, ptr {out}, i64 {out_step})"
        )
        return ""

    def _tile(self, step: Step) -> str:
        """Multiply rows of pairs of bfloat16 with a panel of columns; all sums stay in registers."""
        rows, width = step.detail
        name = f"tile_{rows}_{width}"
        if name not in self.functions:
            self.functions[name] = _tile_text(name, rows, width // 16)
            self.intrinsics[PAIRS] = f"declare <16 x float> @{PAIRS}(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
        pointers, numbers = step.args[:4], step.args[4:]
        given = [f"ptr {self.of(p)}" for p in pointers] + [f"i64 {self.of(n)}" for n in numbers]
        self.line(f"call void @{name}({', '.join(given)})")
        return ""

    def _turn_square(self, step: Step) -> str:
        """Transpose a square in registers."""
        width, side = step.detail
        name = f"turn_{width}"
        self.functions[name] = _turn_text(name, width, side)
        source, target, apart, out_apart = map(self.of, step.args)
        self.line(f"call void @{name}(ptr {source}, ptr {target}, i64 {apart}, i64 {out_apart})")
        return ""

    def _fence(self, step: Step) -> str:
        self.line("fence seq_cst")
        return ""

    def _stream(self, step: Step) -> str:
        """Copy a block of numbers to memory past the cache: whole lines of it, and what is before and behind them as usual."""
        storage = step.detail
        target, source, count = map(self.of, step.args)
        width = BYTES[storage]
        self.functions[f"stream_{width}"] = STREAM.format(
            t=f"i{8 * width}", w=width, n=64 // width, mask=64 // width - 1
        )
        self.intrinsics["llvm.umin.i64"] = "declare i64 @llvm.umin.i64(i64, i64)"
        self.line(f"call void @stream_{width}(ptr {target}, ptr {source}, i64 {count})")
        return ""

    # ---- memory ----
    def stored(self, storage: str) -> str:
        """Return what LLVM calls what lies in memory."""
        return f"<{self.lanes} x {STORED[storage]}>" if self.lanes else STORED[storage]

    def _place(self, step: Step) -> str:
        base, index = step.args
        return self._element(base, index, step.detail)

    def _element(self, base: Any, index: Any, storage: str) -> str:
        if index is None:
            return self.of(base)
        return self.put(f"getelementptr {STORED[storage]}, ptr {self.of(base)}, i64 {self.of(index)}")

    def _access(self) -> str:
        return f", !llvm.access.group {self.group[-1]}" if self.group else ""

    def read(self, base: Any, index: Any, storage: str) -> str:
        """Read what lies in memory."""
        place = self._element(base, index, storage)
        return self.put(f"load {STORED[storage]}, ptr {place}, align {BYTES[storage]}{self._access()}")

    def write(self, base: Any, index: Any, storage: str, text: str) -> None:
        """Write what is to lie in memory."""
        place = self._element(base, index, storage)
        self.line(f"store {STORED[storage]} {text}, ptr {place}, align {BYTES[storage]}{self._access()}")

    def _load(self, step: Step) -> str:
        storage = step.detail
        base, index = step.args
        raw = self.read(base, index, storage)
        if storage in HALF:
            return self._converted(self._from_half(raw, storage), "f32", step.type)
        if storage == "i1":
            return self._converted(self.put(f"icmp ne {self.stored('i1')} {raw}, zeroinitializer"), "i1", step.type)
        return self._converted(raw, storage, step.type)

    def _store(self, step: Step) -> str:
        base, index, value, *exact = step.args
        storage, text = step.detail, self.of(value)
        if storage in HALF:
            text = self._to_half(self._converted(text, value.type, "f32"), storage, bool(exact))
        elif storage == "i1":
            truth = self._converted(text, value.type, "i1")
            text = self.put(f"zext {self.type('i1')} {truth} to {self.stored('i1')}")
        else:
            text = self._converted(text, value.type, storage)
        self.write(base, index, storage, text)
        return ""

    def _rounded(self, step: Step) -> str:
        return self._from_half(self._to_half(self.of(step.args[0]), step.detail), step.detail)

    def _from_half(self, raw: str, storage: str) -> str:
        single, bits = self.type("f32"), self.type("u32")
        if storage == "f16":
            return self.put(f"fpext {self.stored(storage)} {raw} to {single}")
        wide = self.put(f"zext {self.stored(storage)} {raw} to {bits}")
        above = self.put(f"shl {bits} {wide}, {self.number(16, 'u32')}")
        return self.put(f"bitcast {bits} {above} to {single}")

    def _to_half(self, value: str, storage: str, exact: bool = False) -> str:
        """Round; bfloat16 is the upper half of the bits, ties to even, and a NaN stays one. `exact`: there is nothing to round."""
        single, wide = self.type("f32"), self.type("u32")
        if storage == "f16":
            return self.put(f"fptrunc {single} {value} to {self.stored(storage)}")
        one, last, most, quiet = (self.number(n, "u32") for n in (1, 16, 32767, 32704))
        bits = self.put(f"bitcast {single} {value} to {wide}")
        above = self.put(f"lshr {wide} {bits}, {last}")
        if exact:
            return self.put(f"trunc {wide} {above} to {self.stored(storage)}")
        odd = self.put(f"and {wide} {above}, {one}")
        half = self.put(f"add {wide} {odd}, {most}")
        rounded = self.put(f"lshr {wide} {self.put(f'add {wide} {bits}, {half}')}, {last}")
        nan = self.put(f"fcmp uno {single} {value}, {value}")
        kept = self.put(f"select {self.type('i1')} {nan}, {wide} {quiet}, {wide} {rounded}")
        return self.put(f"trunc {wide} {kept} to {self.stored(storage)}")

    def _cast(self, step: Step) -> str:
        return self._converted(self.of(step.args[0]), step.args[0].type, step.type)

    def _bitcast(self, step: Step) -> str:
        (value,) = step.args
        before, after = self.type(value.type), self.type(step.type)
        return self.of(value) if before == after else self.put(f"bitcast {before} {self.of(value)} to {after}")

    def _converted(self, value: str, before: str, after: str) -> str:
        """Convert between types; floats beyond an integer's range give what the processor gives, not poison."""
        if before == after:
            return value
        old, new = self.type(before), self.type(after)
        if before in FLOATS and after in FLOATS:
            return self.put(f"{'fpext' if before == 'f32' else 'fptrunc'} {old} {value} to {new}")
        if after == "i1":
            test = "fcmp une" if before in FLOATS else "icmp ne"
            return self.put(f"{test} {old} {value}, zeroinitializer")
        signed = before[0] == "i" and before != "i1"
        if after in FLOATS:
            return self.put(f"{'sitofp' if signed else 'uitofp'} {old} {value} to {new}")
        if before in FLOATS:
            return self._to_integer(value, before, after)
        if WIDTH[before] == WIDTH[after]:
            return value
        if WIDTH[before] > WIDTH[after]:
            return self.put(f"trunc {old} {value} to {new}")
        return self.put(f"{'sext' if signed else 'zext'} {old} {value} to {new}")

    def _to_integer(self, value: str, before: str, after: str) -> str:
        # Narrow integers take the low bits of wide ones, as in C compilers' code for them: of 32 bits, which hold all that narrow
        # signed ones do, or of 64. The upper half of those without a sign is moved to where 64 bits with a sign reach.
        wide = "i64" if WIDTH[after] == 64 or after == "u32" else "i32"
        if after != "u64":
            number = self._to_signed(value, before, wide)
            return (
                number
                if WIDTH[wide] == WIDTH[after]
                else self.put(f"trunc {self.type(wide)} {number} to {self.type(after)}")
            )
        kind, new, truth, middle = self.type(before), self.type(wide), self.type("i1"), self.number(2.0**63, before)
        upper = self.put(f"fcmp oge {kind} {value}, {middle}")
        moved = self.put(f"select {truth} {upper}, {kind} {self.put(f'fsub {kind} {value}, {middle}')}, {kind} {value}")
        top = self.put(f"select {truth} {upper}, {new} {self.number(-(1 << 63), wide)}, {new} {self.number(0, wide)}")
        return self.put(f"xor {new} {self._to_signed(moved, before, wide)}, {top}")

    def _to_signed(self, value: str, before: str, wide: str) -> str:
        # Only values that fit are converted as they are: beyond, the result is the smallest integer, as x86 gives it.
        bound = 2.0 ** (WIDTH[wide] - 1)
        old, new, truth = self.type(before), self.type(wide), self.type("i1")
        above = self.put(f"fcmp oge {old} {value}, {self.number(-bound, before)}")
        below = self.put(f"fcmp olt {old} {value}, {self.number(bound, before)}")
        fits = self.put(f"and {truth} {above}, {below}")
        safe = self.put(f"select {truth} {fits}, {old} {value}, {old} {self.number(0.0, before)}")
        number = self.put(f"fptosi {old} {safe} to {new}")
        least = self.number(-(1 << (WIDTH[wide] - 1)), wide)
        return self.put(f"select {truth} {fits}, {new} {number}, {new} {least}")


PAIRS: Final = "llvm.x86.avx512bf16.dpbf16ps.512"


def _tile_text(name: str, rows: int, vectors: int) -> str:
    """Return the function that sums up a tile: (rows, panel, start, out, pairs, bytes from pair to pair, from row to row, of out)."""
    cells = [(r, v) for r in range(rows) for v in range(vectors)]
    lines = [
        f"define internal void @{name}(ptr %x, ptr %y, ptr %start, ptr %out, i64 %pairs, i64 %x_pair, i64 %x_row, i64 %out_row) #0 {{",
        "entry:",
    ]
    for v in range(vectors):
        lines += [
            f"  %start{v} = getelementptr i8, ptr %start, i64 {64 * v}",
            f"  %first{v} = load <16 x float>, ptr %start{v}, align 4",
        ]
    for r in range(rows):
        lines += [f"  %row{r} = mul i64 %x_row, {r}", f"  %x{r} = getelementptr i8, ptr %x, i64 %row{r}"]
    lines += ["  br label %loop", "loop:", "  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]"]
    for r, v in cells:
        lines.append(f"  %sum{r}_{v} = phi <16 x float> [ %first{v}, %entry ], [ %next{r}_{v}, %loop ]")
    lines += [f"  %y_at = mul i64 %k, {64 * vectors}", "  %x_at = mul i64 %k, %x_pair"]
    for v in range(vectors):
        lines += [
            f"  %y_at{v} = add i64 %y_at, {64 * v}",
            f"  %y{v} = getelementptr i8, ptr %y, i64 %y_at{v}",
            f"  %column{v} = load <32 x bfloat>, ptr %y{v}, align 4",
        ]
    for r in range(rows):
        lines += [
            f"  %pair_at{r} = getelementptr i8, ptr %x{r}, i64 %x_at",
            f"  %pair{r} = load i32, ptr %pair_at{r}, align 2",
            f"  %one{r} = insertelement <16 x i32> poison, i32 %pair{r}, i64 0",
            f"  %all{r} = shufflevector <16 x i32> %one{r}, <16 x i32> poison, <16 x i32> zeroinitializer",
            f"  %spread{r} = bitcast <16 x i32> %all{r} to <32 x bfloat>",
        ]
        for v in range(vectors):
            operands = f"<16 x float> %sum{r}_{v}, <32 x bfloat> %spread{r}, <32 x bfloat> %column{v}"
            lines.append(f"  %next{r}_{v} = call <16 x float> @{PAIRS}({operands})")
    lines += [
        "  %k_next = add i64 %k, 1",
        "  %more = icmp ult i64 %k_next, %pairs",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    for r, v in cells:
        lines += [
            f"  %to{r}_{v} = mul i64 %out_row, {r}",
            f"  %into{r}_{v} = add i64 %to{r}_{v}, {32 * v}",
            f"  %out{r}_{v} = getelementptr i8, ptr %out, i64 %into{r}_{v}",
            f"  %rounded{r}_{v} = fptrunc <16 x float> %next{r}_{v} to <16 x bfloat>",
            f"  store <16 x bfloat> %rounded{r}_{v}, ptr %out{r}_{v}, align 2",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def _turn_text(name: str, width: int, side: int) -> str:
    """Return the function that transposes a square: (source, target, bytes from row to row of either).

    Each stage puts the elements of a row between those of the row half a square below; as many as the size has digits turn the square.
    """
    vector = f"<{side} x i{8 * width}>"
    lines = [f"define internal void @{name}(ptr %from, ptr %to, i64 %apart, i64 %out_apart) #0 {{"]
    for r in range(side):
        lines += [
            f"  %at{r} = mul i64 %apart, {r}",
            f"  %row{r} = getelementptr i8, ptr %from, i64 %at{r}",
            f"  %v0_{r} = load {vector}, ptr %row{r}, align {width}",
        ]
    stages = side.bit_length() - 1
    for stage in range(stages):
        for r in range(side):
            first = r % 2 * (side // 2)
            mask = ", ".join(f"i32 {first + k // 2 + k % 2 * side}" for k in range(side))
            pair = f"{vector} %v{stage}_{r // 2}, {vector} %v{stage}_{r // 2 + side // 2}"
            lines.append(f"  %v{stage + 1}_{r} = shufflevector {pair}, <{side} x i32> <{mask}>")
    for r in range(side):
        lines += [
            f"  %into{r} = mul i64 %out_apart, {r}",
            f"  %out{r} = getelementptr i8, ptr %to, i64 %into{r}",
            f"  store {vector} %v{stages}_{r}, ptr %out{r}, align {width}",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def render(function: Function, name: str) -> str:
    """Return the text of a module with one function: name(cells, sizes, scalars, low, high).

    `cells` are the places where the pointers to the arrays' memory stand.
    """
    text = Text()
    text.body(function.body)
    scratch = [f"  %scratch{k} = alloca [{function.length} x i64], align 64" for k in range(function.scratch)]
    lines = [
        *text.intrinsics.values(),
        *text.functions.values(),
        f"define void @{name}(ptr noalias %cells, ptr noalias %sizes, ptr noalias %scalars, i64 %low, i64 %high) #0 {{",
        "entry:",
        *scratch,
        *text.lines,
        "  ret void",
        "}",
        # no-builtins: a loop that stores zeros does not become a call of memset, for which `flat` would need a linker
        f'attributes #0 = {{ nounwind "no-builtins" "no-trapping-math"="true"{PREFERRED.format(256 if function.light else 512)} }}',
        *[f"!{k} = {entry}" for k, entry in enumerate(text.metadata)],
    ]
    return "\n".join(lines) + "\n"


__all__ = ["Carried", "render"]
