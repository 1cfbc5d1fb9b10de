"""How quick is every kernel that is made from a formula, against torch eager and against copying its bytes?

python benchmarks/native.py [--only gelu,norms] [--sizes 1e3,1e6] [--dtypes float32,bfloat16] [--threads 1,2] [--rounds N]
                            [--full] [--list] [--json FILE] [--before FILE]

Each library has a process of its own; one runs at a time, in turns. A ratio is torch's best time by ours (above 1 ours is
quicker), with the middle half of the rounds' ratios, and a question mark where that is wide. `x copy` is the time that NumPy
takes to copy as many bytes as the kernel must read and write, by ours: 1 is as quick as the memory. The copy goes into memory
that is mapped already.
`forward` records nothing; `+backward` is recorded and gives the gradients of all operands; `step` works in place.
With one thread it is processor time, with several the time on the clock, which needs a machine that does nothing else.
A run without options takes less than two minutes and says what it left out; `--full` measures everything, for an hour or more.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compare import Row
from nn import elementwise
from processes import Calls, Library, NotMeasuredError, machine_load, race, serve, warn_if_busy

SIZES = (1e3, 1e4, 1e5, 1e6, 1e7)
DTYPES = ("float32", "float64", "bfloat16")
THREADS = (1, 2)
SECONDS = 0.005  # of a turn: with several threads shorter, so that other programs leave some rounds alone
UNSTEADY = 1.5  # a middle half that is wider gets a question mark
QUICK = {"sizes": (1e3, 1e6), "dtypes": ("float32",), "threads": (1,)}

# An expression names its operands, see OPERANDS. `lib` is the library, `F` its nn.functional; `n` and `dtype` are asked for.
KERNELS = {
    "activations": {
        "gelu": "F.gelu(x)",
        "gelu tanh": "F.gelu(x, approximate='tanh')",
        "silu": "F.silu(x)",
        "mish": "F.mish(x)",
        "softplus": "F.softplus(x)",
        "elu": "F.elu(x)",
        "selu": "F.selu(x)",
        "relu": "F.relu(x)",
        "leaky_relu": "F.leaky_relu(x)",
        "hardswish": "F.hardswish(x)",
        "logsigmoid": "F.logsigmoid(x)",
        "glu": "F.glu(m)",
        "dropout": "F.dropout(x, 0.1)",
    },
    "functions": {
        "sigmoid": "x.sigmoid()",
        "tanh": "x.tanh()",
        "exp": "x.exp()",
        "expm1": "x.expm1()",
        "log": "p.log()",
        "log1p": "p.log1p()",
        "erf": "x.erf()",
        "sin": "x.sin()",
        "cos": "x.cos()",
        "atan": "x.atan()",
        "sinh": "x.sinh()",
        "sqrt": "p.sqrt()",
        "rsqrt": "p.rsqrt()",
        "pow number": "p ** 1.7",
        "pow tensor": "p ** y",
        "square": "x ** 2",
    },
    "arithmetic": {
        "add": "x + y",
        "mul": "x * y",
        "div": "x / p",
        "add row": "m + r",
        "mul column": "m * l",
        "addcmul": "lib.addcmul(x, y, p)",
        "lerp": "lib.lerp(x, y, 0.3)",
        "transposed add": "m.t() + 1.0",
        "chain": "elementwise(lib, x, y)",
    },
    "choosing": {
        "where": "lib.where(c, x, y)",
        "masked_fill": "x.masked_fill(c, 0.0)",
        "clamp": "x.clamp(-0.5, 0.5)",
        "maximum": "lib.maximum(x, y)",
        "less": "x < y",
        "equal": "x == y",
        "isnan": "x.isnan()",
        "to float32": "x.to(lib.float32)",
        "to float64": "x.to(lib.float64)",
        "to bfloat16": "x.to(lib.bfloat16)",
        "to float16": "x.to(lib.float16)",
        "to int64": "x.to(lib.int64)",
        "bool to float": "c.to(dtype)",
    },
    "softmax and losses": {
        "softmax": "m.softmax(1)",
        "log_softmax": "m.log_softmax(1)",
        "softmax columns": "m.softmax(0)",
        "cross_entropy": "F.cross_entropy(m, t)",
        "cross_entropy smoothed": "F.cross_entropy(m, t, label_smoothing=0.1)",
        "mse_loss": "F.mse_loss(x, u)",
        "smooth_l1_loss": "F.smooth_l1_loss(x, u)",
        "bce_with_logits": "F.binary_cross_entropy_with_logits(x, u)",
        "kl_div": "F.kl_div(x, u, reduction='batchmean')",
    },
    "norms": {
        "layer_norm": "F.layer_norm(m, r.shape, r, q)",
        "rms_norm": "F.rms_norm(m, r.shape, r)",
        "group_norm": "F.group_norm(i, 4, ci, bi)",
        "batch_norm": "F.batch_norm(i, None, None, ci, bi, training=True)",
        "instance_norm": "F.instance_norm(i)",
        "normalize": "F.normalize(m)",
    },
    "reductions": {
        "sum": "x.sum()",
        "sum rows": "m.sum(1)",
        "sum columns": "m.sum(0)",
        "mean": "x.mean()",
        "var": "x.var()",
        "var rows": "m.var(1)",
        "norm": "x.norm()",
        "norm rows": "m.norm(dim=1)",
        "logsumexp": "m.logsumexp(1)",
        "amax rows": "m.amax(1)",
        "argmax": "x.argmax()",
        "argmax rows": "m.argmax(1)",
        "cumsum": "x.cumsum(0)",
        "cumsum rows": "m.cumsum(1)",
        "cumsum columns": "m.cumsum(0)",
    },
    "indices": {
        "embedding": "F.embedding(k, e)",
        "index_add": "e.index_add(0, k, v)",
        "index_select": "e.index_select(0, k)",
        "gather": "m.gather(1, t[:, None])",
    },
    "windows": {
        "max_pool": "F.max_pool2d(i, 2)",
        "max_pool overlapping": "F.max_pool2d(i, 3, 2, 1)",
        "avg_pool": "F.avg_pool2d(i, 2)",
        "adaptive_avg_pool": "F.adaptive_avg_pool2d(i, 1)",
        "depthwise conv": "F.conv2d(i, d, padding=1, groups=d.shape[0])",
        "conv 3 x 3": "F.conv2d(i, f, padding=1)",
    },
    "layers": {
        "matmul": "v @ h",
        "matmul transposed": "v @ h.mT",
        "matmul of transposed": "v.mT @ v",
        "bmm small": "g @ w",
        "bmm small transposed": "g @ w.mT",
        "lstm": "lstm(s)[0]",
        "gru": "gru(s)[0]",
    },
    "random": {
        "rand": "lib.rand(n, dtype=dtype)",
        "randn": "lib.randn(n, dtype=dtype)",
        "uniform_": "x.uniform_()",
        "normal_": "x.normal_()",
        "bernoulli_": "x.bernoulli_(0.3)",
    },
    "steps": {},  # see STEPS
}


def width(n: int) -> int:
    """Return how long the rows of a matrix of n elements are."""
    return 64 if n < 100_000 else 1024


def channels(n: int) -> int:
    return 8 if n < 100_000 else 32


def images(lib: Any, n: int, dtype: Any) -> Any:
    side = 8 if n < 100_000 else 32
    return lib.randn(max(1, n // (channels(n) * side * side)), channels(n), side, side, dtype=dtype)


OPERANDS: dict[str, Callable[[Any, int, Any], Any]] = {
    "x": lambda lib, n, dtype: lib.randn(n, dtype=dtype),
    "y": lambda lib, n, dtype: lib.randn(n, dtype=dtype),
    "p": lambda lib, n, dtype: lib.rand(n, dtype=dtype) + 0.5,
    # targets of losses: no gradient is asked for
    "u": lambda lib, n, dtype: lib.rand(n, dtype=dtype),
    "c": lambda lib, n, dtype: lib.rand(n) > 0.5,
    "m": lambda lib, n, dtype: lib.randn(n // width(n), width(n), dtype=dtype),
    "r": lambda lib, n, dtype: lib.randn(width(n), dtype=dtype),
    "q": lambda lib, n, dtype: lib.randn(width(n), dtype=dtype),
    "l": lambda lib, n, dtype: lib.randn(n // width(n), 1, dtype=dtype),
    "t": lambda lib, n, dtype: lib.randint(0, width(n), (n // width(n),)),
    "i": images,
    "ci": lambda lib, n, dtype: lib.randn(channels(n), dtype=dtype),
    "bi": lambda lib, n, dtype: lib.randn(channels(n), dtype=dtype),
    "d": lambda lib, n, dtype: lib.randn(channels(n), 1, 3, 3, dtype=dtype),
    "f": lambda lib, n, dtype: lib.randn(channels(n), channels(n), 3, 3, dtype=dtype),
    "e": lambda lib, n, dtype: lib.randn(1000, 64, dtype=dtype),
    "k": lambda lib, n, dtype: lib.randint(0, 1000, (n // 64,)),
    "v": lambda lib, n, dtype: lib.randn(n // 64, 64, dtype=dtype),
    "h": lambda lib, n, dtype: lib.randn(64, 64, dtype=dtype),
    "g": lambda lib, n, dtype: lib.randn(max(1, n // 256), 16, 16, dtype=dtype),
    "w": lambda lib, n, dtype: lib.randn(max(1, n // 256), 16, 16, dtype=dtype),
    "s": lambda lib, n, dtype: lib.randn(16, max(1, n // 1024), 64, dtype=dtype),
    "lstm": lambda lib, n, dtype: lib.nn.LSTM(64, 64, dtype=dtype),
    "gru": lambda lib, n, dtype: lib.nn.GRU(64, 64, dtype=dtype),
}


def optimizer(name: str, **options: Any) -> Callable[[Any, list[Any]], Callable[[], object]]:
    def make(lib: Any, parameters: list[Any]) -> Callable[[], object]:
        return getattr(lib.optim, name)(parameters, lr=1e-4, **options).step

    return make


def clipping(lib: Any, parameters: list[Any]) -> Callable[[], object]:
    return lambda: lib.nn.utils.clip_grad_norm_(parameters, 1.0)


def accumulating(lib: Any, parameters: list[Any]) -> Callable[[], object]:
    seeds = [lib.ones_like(p) for p in parameters]
    return lambda: lib.autograd.backward([p * 2.0 for p in parameters], seeds)


# What changes ten parameters of n elements in all, and how often it must go over them to read and to write.
STEPS = {
    "SGD": (optimizer("SGD"), 3),
    "SGD momentum": (optimizer("SGD", momentum=0.9), 5),
    "SGD momentum fused": (optimizer("SGD", momentum=0.9, fused=True), 5),
    "Adam": (optimizer("Adam"), 7),
    "Adam fused": (optimizer("Adam", fused=True), 7),
    "AdamW": (optimizer("AdamW"), 7),
    "AdamW fused": (optimizer("AdamW", fused=True), 7),
    "clip_grad_norm_": (clipping, 3),
    "accumulate gradients": (accumulating, 5),
}
KERNELS["steps"] = dict.fromkeys(STEPS, "")
GROUP = {name: group for group, kernels in KERNELS.items() for name in kernels}


def make(lib: Any, name: str = "", n: int = 0, dtype: str = "", copies: dict[str, int] | None = None) -> Any:
    """Make what is timed of a kernel, and say how many bytes each call must read and write."""
    if copies is not None:
        return {call: copying(lib, *map(int, call.split())) for call in copies}, None
    lib.manual_seed(0)
    if name in STEPS:
        return step_calls(lib, name, n, getattr(lib, dtype))
    return expression_calls(lib, KERNELS[GROUP[name]][name], n, getattr(lib, dtype))


def copying(numpy: Any, count: int, threads: int) -> Callable[[], object]:
    """Return a call that reads and writes so many bytes in all, in equal parts for the threads if there are enough."""
    source, target = numpy.ones((2, max(count // 2, 1)), numpy.int8)
    if threads == 1 or count < 1_000_000:
        return lambda: numpy.copyto(target, source)
    parts = list(zip(numpy.array_split(target, threads), numpy.array_split(source, threads), strict=True))
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda part: numpy.copyto(*part), parts))


def step_calls(lib: Any, name: str, n: int, dtype: Any) -> tuple[Calls, dict[str, int]]:
    prepare, passes = STEPS[name]
    parameters = [lib.nn.Parameter(lib.randn(n // 10, dtype=dtype)) for _ in range(10)]
    for p in parameters:
        p.grad = lib.randn(p.shape, dtype=dtype)
    return {"step": prepare(lib, parameters)}, {"step": passes * sum(p.nbytes for p in parameters)}


def expression_calls(lib: Any, expression: str, n: int, dtype: Any) -> tuple[Calls, dict[str, int]]:
    def function(recorded: bool) -> tuple[Callable[[], Any], list[Any]]:
        """Return the expression as a function, and the tensors that it reads."""
        found = {name: OPERANDS[name](lib, n, dtype) for name in re.findall(r"\w+", expression) if name in OPERANDS}
        tensors = [t for one in found.values() for t in (one.parameters() if isinstance(one, lib.nn.Module) else [one])]
        for tensor in tensors:
            tensor.requires_grad_(recorded and tensor.is_floating_point() and tensor is not found.get("u"))
        names = found | {"lib": lib, "F": lib.nn.functional, "elementwise": elementwise, "n": n, "dtype": dtype}
        return eval(f"lambda: {expression}", names), tensors

    forward, operands = function(False)
    out = forward()
    in_place = any(out is operand for operand in operands)
    if in_place and ".to(" in expression:
        raise ValueError("it has that dtype already")
    read = 0 if in_place else sum(t.nbytes for t in operands)  # what is filled in place is not read
    calls: Calls = {"forward": forward}
    moved = {"forward": read + out.nbytes}
    if in_place or not out.is_floating_point():
        return calls, moved

    recorded, operands = function(True)
    leaves = [t for t in operands if t.requires_grad]
    seed = lib.ones_like(out)
    if leaves:
        calls["+backward"] = lambda: lib.autograd.grad(recorded(), leaves, seed)
        moved["+backward"] = 2 * (read + out.nbytes) + sum(t.nbytes for t in leaves)
    return calls, moved


@dataclass
class Timing:
    """One call of a kernel at one size, in one dtype, on so many threads."""

    group: str
    kernel: str
    call: str
    size: float
    dtype: str
    threads: int
    ratio: float
    low: float
    high: float
    copy: float
    ours_us: float
    theirs_us: float

    @property
    def key(self) -> str:
        return f"{self.kernel} {self.call} {brief(self.size)} {self.dtype} {self.threads}"

    def __str__(self) -> str:
        spread = f"({self.low:.2f} to {self.high:.2f})" + "?" * (self.high > UNSTEADY * self.low)
        return (
            f"{self.kernel:<23}{self.call:<10}{brief(self.size):>5} {self.dtype:<9}{self.threads:>3}"
            f"{self.ratio:9.2f} {spread:<16}{self.copy:9.2f}{self.ours_us:12.1f}{self.theirs_us:12.1f}"
        )


HEADER = (
    f"{'kernel':<23}{'call':<10}{'size':>5} {'dtype':<9}{'thr':>3}"
    f"{'x torch':>9} {'(spread)':<16}{'x copy':>9}{'ours, us':>12}{'torch, us':>12}"
)


def brief(size: float) -> str:
    return f"{size:.0e}".replace("e+0", "e")


class Bench:
    """The three processes, and what has been measured."""

    def __init__(self, ours: Library, theirs: Library, numpy: Library, rounds: int) -> None:
        self.ours, self.theirs, self.numpy, self.rounds = ours, theirs, numpy, rounds
        self.copies: dict[tuple[int, int], float] = {}
        self.missing: dict[str, list[str]] = defaultdict(list)

    def copy_seconds(self, count: int, threads: int) -> float:
        """Return the best time of copying so many bytes; kernels that move as many share it."""
        if (count, threads) not in self.copies:
            call = f"{count} {threads}"
            self.numpy.ask(make={"copies": {call: 0}})
            self.copies[count, threads] = min(race([self.numpy], call, threads, self.rounds, 0.01)[0])
        return self.copies[count, threads]

    def timings(self, kernel: str, size: float, dtype: str, threads: tuple[int, ...]) -> Iterator[Timing]:
        what = {"name": kernel, "n": int(size), "dtype": dtype}
        try:
            moved = self.ours.ask(make=what)
            self.theirs.ask(make=what)
            for call, count in moved.items():
                for thread_count in threads:
                    ours, theirs = race(
                        (self.ours, self.theirs), call, thread_count, self.rounds, SECONDS / thread_count
                    )
                    row = Row.of(kernel, ours, theirs)
                    yield Timing(
                        GROUP[kernel], kernel, call, size, dtype, thread_count, row.theirs_us / row.ours_us, row.low,
                        row.high, self.copy_seconds(count, thread_count) * 1e6 / row.ours_us, row.ours_us, row.theirs_us,
                    )  # fmt: skip
        except NotMeasuredError as reason:
            self.missing[str(reason)].append(f"{kernel} {dtype}")


def mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def summary(timings: list[Timing]) -> None:
    """Print the geometric means of groups, and what is slowest against torch."""
    print("\ntimes torch, geometric means (how many of them are below 1)")
    sizes = sorted({t.size for t in timings})
    print(f"{'':<33}" + "".join(f"{brief(size):>19}" for size in sizes))
    for group in [*KERNELS, "all"]:
        for dtype, threads in sorted({(t.dtype, t.threads) for t in timings}):
            cells = []
            for size in sizes:
                ratios = [
                    t.ratio for t in timings if group in (t.group, "all") and (t.dtype, t.threads, t.size) == (dtype, threads, size)
                ]  # fmt: skip
                below = sum(ratio < 1 for ratio in ratios)
                cells.append(f"{mean(ratios):.2f} ({below} of {len(ratios)})" if ratios else "")
            if any(cells):
                print(f"{group:<20}{dtype:<9}{threads:>4}" + "".join(f"{cell:>19}" for cell in cells))
    print("\nslowest against torch\n" + HEADER)
    for timing in sorted(timings, key=lambda t: t.ratio)[:20]:
        if timing.ratio < 1:
            print(timing)


def changes(timings: list[Timing], path: Path) -> None:
    """Print how many times quicker we are than in an earlier run, where it is more than a tenth."""
    before = {t.key: t for t in (Timing(**entry) for entry in json.loads(path.read_text())["timings"])}
    print(f"\ntimes as quick as in {path}, where that is more than a tenth (times torch before and now)")
    pairs = [(before[t.key].ours_us / t.ours_us, before[t.key], t) for t in timings if t.key in before]
    for gain, old, new in sorted(pairs, key=lambda pair: pair[0]):
        if not 0.9 < gain < 1.1:
            print(f"{new.key:<52}{gain:7.2f}   ({old.ratio:.2f}, {new.ratio:.2f})")


def selected(only: str) -> list[str]:
    """List the kernels whose names, or whose group's, begin with one of the words."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    found = [k for k, group in GROUP.items() if not words or any(k.startswith(w) or group.startswith(w) for w in words)]
    if not found:
        sys.exit(f"no kernel and no group begins with {only}; --list names them")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="words that kernels or groups begin with")
    parser.add_argument("--sizes", help="elements, such as 1e3,1e6")
    parser.add_argument("--dtypes", help="such as float32,bfloat16")
    parser.add_argument("--threads", help="such as 1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--full", action="store_true", help="all sizes, dtypes and numbers of threads that are not given"
    )
    parser.add_argument("--list", action="store_true", help="name the kernels")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--before", type=Path, metavar="FILE", help="say what has changed since an earlier --json FILE")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, make)
        return
    if options.list:
        for group, kernels in KERNELS.items():
            print(f"{group}: {', '.join(kernels)}")
        return

    def chosen(given: str | None, name: str, every: tuple[Any, ...], kind: Callable[[str], Any]) -> tuple[Any, ...]:
        if given:
            return tuple(kind(word) for word in given.split(","))
        return every if options.full else QUICK[name]

    kernels = selected(options.only)
    sizes = chosen(options.sizes, "sizes", SIZES, float)
    dtypes = chosen(options.dtypes, "dtypes", DTYPES, str)
    threads = chosen(options.threads, "threads", THREADS, int)
    started, load = time.time(), machine_load()
    timings: list[Timing] = []
    with Library(__file__, "retrograd") as ours, Library(__file__, "torch") as theirs, Library(__file__, "numpy") as np:
        bench = Bench(ours, theirs, np, options.rounds)
        warn_if_busy(max(threads))
        print(HEADER)
        for kernel in kernels:
            for dtype in dtypes:
                for size in sizes:
                    for timing in bench.timings(kernel, size, dtype, threads):
                        timings.append(timing)
                        print(timing, flush=True)
    if timings:
        summary(timings)
    if options.before:
        changes(timings, options.before)
    for reason, names in bench.missing.items():
        print(f"\nnot measured, {reason}: {', '.join(dict.fromkeys(names))}")
    asked = {
        "sizes": (SIZES, sizes),
        "dtypes": (DTYPES, dtypes),
        "threads": (THREADS, threads),
        "kernels": (GROUP, kernels),
    }
    for what, (every, taken) in asked.items():
        if left := [brief(one) if what == "sizes" else str(one) for one in every if one not in taken]:
            print(f"left out, {what}: {', '.join(left)}")
    print(
        f"best of {options.rounds} rounds, {time.time() - started:.0f} s; load of the machine {load:.1f} at the beginning, "
        f"{machine_load():.1f} at the end (with ours)"
    )
    if options.json:
        options.json.write_text(json.dumps({"timings": [asdict(t) for t in timings]}, indent=1))


if __name__ == "__main__":
    main()
