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
start = time.perf_counter()
import retrograd
print((time.perf_counter() - start) * 1e3)
"""


def main() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = [sys.executable, "-c", CODE]
    times = [
        float(subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout)
        for _ in range(11)
    ]
    print(f"import retrograd after numpy: {statistics.median(times[1:]):.0f} ms (median of 10, bytecode cached)")
    with tempfile.NamedTemporaryFile(suffix=".py") as empty:
        whole = []
        for _ in range(6):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "retrograd", "run", empty.name], check=True, env=environment)
            whole.append(time.perf_counter() - start)
    print(f"retrograd run of an empty script: {statistics.median(whole[1:]):.2f} s (median of 5)")


if __name__ == "__main__":
    main()
