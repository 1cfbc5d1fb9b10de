"""What does `import retrograd` cost above `import numpy`, and `retrograd run` of an empty script in all?

python benchmarks/import_time.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

CODE = """
import time, numpy
start = time.thread_time()
import retrograd
print((time.thread_time() - start) * 1e3)
"""


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a process that keeps bytecode."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | variables


def import_milliseconds(**variables: str) -> float:
    """Return what the import takes in a new process, the median of ten."""
    run = [sys.executable, "-c", CODE]
    times = [
        float(subprocess.run(run, capture_output=True, text=True, check=True, env=environment(**variables)).stdout)
        for _ in range(11)
    ]
    return statistics.median(times[1:])


def main() -> None:
    print(
        f"import retrograd after numpy: {import_milliseconds():.0f} ms of processor time (median of 10, bytecode cached)"
    )
    with tempfile.NamedTemporaryFile(suffix=".py") as empty:
        whole = []
        for _ in range(6):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "retrograd", "run", empty.name], check=True, env=environment())
            whole.append(time.perf_counter() - start)
    print(f"retrograd run of an empty script: {statistics.median(whole[1:]):.2f} s (median of 5)")


if __name__ == "__main__":
    main()
