"""torch.fx.experimental.debug: a stop for the debugger in the code of a graph."""

from __future__ import annotations

from typing import Any


def set_trace(gm: Any) -> Any:
    """Let the code of a module stop for the debugger when it begins."""

    def begin(body: list[str]) -> list[str]:
        return ["import pdb; pdb.set_trace()\n", *body]

    with gm.graph.on_generate_code(lambda before: lambda body: begin(before(body) if before else body)):
        gm.recompile()
    return gm
