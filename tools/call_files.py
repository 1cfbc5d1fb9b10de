"""List the source files that calls pass through, and keep the list in docs/layout.md: `python tools/call_files.py [--write]`.

Every call runs a few times first, so that what is loaded or generated at the first use is not counted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import retrograd as torch

LAYOUT = Path(__file__).parents[1] / "docs" / "layout.md"
SOURCE = str(Path(torch.__file__).parent) + "/"
BEGIN, END = "<!-- written by tools/call_files.py -->\n", "<!-- end -->\n"


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def optimizer() -> Any:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    made = torch.optim.SGD([parameter], lr=0.1)
    made.step()
    made.step()  # the plan is made in the second step
    return made


def per_sample(batch: Any) -> Any:
    return torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(batch)


# What is called, and how its argument is made.
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "a * b": (lambda a: a * a, leaf),
    "a.sum()": (lambda a: a.sum(), leaf),
    "a[0]": (lambda a: a[0], leaf),
    "F.layer_norm(x, (3,), w, b)": (lambda x: torch.nn.functional.layer_norm(x, (3,), x, x), leaf),
    "x.add_(1)": (lambda x: x.add_(1), lambda: leaf() * 1),
    "(a * b).sum().backward()": (lambda loss: loss.backward(), lambda: (leaf() * leaf()).sum()),
    "opt.step()": (lambda made: made.step(), optimizer),
    "vmap(grad(f))(x)": (per_sample, lambda: torch.ones(2, 3)),
}


def files_of(call: Callable[[Any], Any], make: Callable[[], Any]) -> list[str]:
    """Return the files whose functions a call runs, in the order of their first turn; generated text by what it is for."""
    for _ in range(3):
        call(make())
    argument, files = make(), {}

    def note(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE):
            files[f"`{name.removeprefix(SOURCE)}`"] = None
        elif event == "call" and (generated := re.match("<retrograd: (.+?)>", name)):
            files[f"*{generated[1]}*"] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(argument)
    finally:
        sys.setprofile(before)
    return list(files)


def table() -> str:
    """Return the list as a Markdown table."""
    rows = [f"| `{name}` | {', '.join(files_of(*call))} |\n" for name, call in CALLS.items()]
    return "".join(["| call | files |\n|---|---|\n", *rows])


def main() -> None:
    """Print the table, or write it into docs/layout.md."""
    made = table()
    if "--write" not in sys.argv:
        print(made, end="")
        return
    before, _, rest = LAYOUT.read_text().partition(BEGIN)
    LAYOUT.write_text(before + BEGIN + made + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
