"""Run an example with its modules compiled: `python -m tests.compiler.compiled_example examples/vae.py --steps 5`.

The last line says how many programs were made.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import retrograd
from retrograd.compiler import _compiled


def main() -> None:
    retrograd.as_torch()
    begin = retrograd.nn.Module.__init__

    def compiled(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if type(self).__module__ == "__main__":  # the example's own
            self.compile()

    retrograd.nn.Module.__init__ = compiled  # type: ignore[method-assign]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(f"compiled programs: {sum(len(one.records) for one in _compiled._every)}")  # those of regions, too


if __name__ == "__main__":
    main()
