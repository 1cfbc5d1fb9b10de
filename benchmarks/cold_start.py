"""What do kernels cost before they run: compiled anew, read from the cache on disk, and at import?

python benchmarks/cold_start.py [--rounds N] [--json FILE]

Two programs train for 20 steps in a process of their own, twice each: the digits example, and an MLP on small tensors. What the
first time takes above the second is the cost of getting started. Part of it has nothing to do with kernels (modules that load
when they are asked for, recorders that are generated); the program without kernels shows how much. All is processor time on
one thread, the best of several processes. Needs no torch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from import_time import environment, import_milliseconds

STEPS = 20
EXAMPLES = Path(__file__).parents[1] / "examples"


def digits() -> None:
    """Train and ask the network of examples/digits.py."""
    import torch
    from digits import Network, predict, train
    from shared import load_digits
    from torch.utils.data import TensorDataset

    torch.manual_seed(0)
    images, labels = load_digits()
    network = Network()
    train(network, TensorDataset(images, labels), STEPS)
    predict(network, images)


def small() -> None:
    """Train an MLP 16-32-32-4 on batches of 32."""
    import torch
    from nn import WORKLOADS

    make, _ = WORKLOADS["small mlp: 16-32-32-4, batch 32"]
    model, loss = make(torch)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


PROGRAMS = {"digits": digits, "small": small}


def child(name: str) -> None:
    """Run a program twice, as `retrograd run` runs scripts; print what each time took and whether LLVM was needed."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(EXAMPLES))
    importlib.import_module("torch.optim"), importlib.import_module("torch.nn")
    importlib.import_module("digits")  # matplotlib takes its time, which is not ours
    times = []
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(2):
            start = time.process_time()
            PROGRAMS[name]()
            times.append(time.process_time() - start)
    print(json.dumps({"first": times[0], "second": times[1], "llvm": "llvmlite" in sys.modules}))


def run(name: str, **variables: str) -> dict[str, float]:
    command = [sys.executable, "-m", "retrograd", "run", __file__, "--child", name]
    done = subprocess.run(command, env=environment(**variables), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measured(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Run a program without kernels, with an empty cache, and with a full one, in turns; return the best of each."""
    found: dict[str, list[dict[str, float]]] = {"no kernels": [], "cold cache": [], "warm cache": []}
    count = size = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found["no kernels"].append(run(name, RETROGRAD_NATIVE="0"))
            found["cold cache"].append(run(name, RETROGRAD_CACHE=folder))
            found["warm cache"].append(run(name, RETROGRAD_CACHE=folder))
            sizes = [file.stat().st_size for file in Path(folder).iterdir()]
            count, size = len(sizes), sum(sizes)
    best = {
        way: {
            "first": min(one["first"] for one in runs),
            "second": min(one["second"] for one in runs),
            "start": min(one["first"] - one["second"] for one in runs),
            "llvm": runs[0]["llvm"],
        }
        for way, runs in found.items()
    }
    return best | {"cache": {"kernels": count, "bytes": size}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    everything: dict[str, object] = {}
    for name in PROGRAMS:
        everything[name] = ways = measured(name, options.rounds)
        cache = ways.pop("cache")
        print(f"{name}: {STEPS} steps, {cache['kernels']} kernels in the cache, {cache['bytes'] / 1e3:.0f} kB")
        print(f"  {'ms':<12}{'first time':>12}{'second time':>13}{'getting started':>17}{'kernels alone':>15}")
        for way, best in ways.items():
            alone = best["start"] - ways["no kernels"]["start"]
            figures = [best["first"], best["second"], best["start"], alone]
            print(
                f"  {way:<12}" + "".join(f"{1e3 * f:>{w}.1f}" for f, w in zip(figures, (12, 13, 17, 15), strict=True)),
                "  LLVM loaded" if best["llvm"] else "",
            )
    imports = {way: import_milliseconds(RETROGRAD_NATIVE=way) for way in ("1", "0")}
    print(f"import retrograd after numpy: {imports['1']:.0f} ms; {imports['0']:.0f} ms without kernels (medians of 10)")
    if options.json:
        options.json.write_text(json.dumps(everything | {"import_ms": imports}, indent=1))


if __name__ == "__main__":
    main()
