"""Run an example with its modules compiled: `python -m tests.compiler.compiled_example examples/vae.py --steps 5`.

Of one that defines no modules, the function `train` is compiled.

The last line says how many programs were made.
"""

from __future__ import annotations

import ast
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
    tree = ast.parse(Path(sys.argv[0]).read_text(encoding="utf-8"))
    if not any(isinstance(node, ast.ClassDef) for node in tree.body):
        (train,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "train"]
        train.decorator_list.append(ast.copy_location(ast.parse("torch.compile", mode="eval").body, train))
    code = compile(ast.fix_missing_locations(tree), sys.argv[0], "exec", dont_inherit=True)
    exec(code, {"__name__": "__main__", "__file__": sys.argv[0]})
    print(f"compiled programs: {sum(len(one.records) for one in _compiled._every)}")  # those of regions, too


if __name__ == "__main__":
    main()
