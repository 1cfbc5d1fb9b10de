"""torch._dynamo.explain: the graphs of a function, and what ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from retrograd import compiler
from retrograd._warnings import warn
from retrograd.compiler._explain import reasons_of


@dataclass
class GraphCompileReason:
    """Why a graph ends, and where."""

    reason: str
    user_stack: list[Any] = field(default_factory=list)
    graph_break: bool = True


@dataclass
class ExplainOutput:
    """What `explain` found: graphs, their operations, and why there are several."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[Any]] | None = None
    out_guards: list[Any] | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", "Break Reasons:"]
        for number, one in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {one.reason}", "    User Stack:"]
            lines += [f"      {frame}" for frame in one.user_stack]
        if self.ops_per_graph is not None:
            lines.append("Ops per Graph:")
            for number, operations in enumerate(self.ops_per_graph, 1):
                lines += [f"  Ops {number}:", *[f"    {one}" for one in operations]]
        if self.compile_times is not None:
            lines.append(f"Compile Times: {self.compile_times}")
        return "\n".join(lines) + "\n"


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` and says of which graphs torch's functions in it are made. See `compiler.explain` for the kernels.

    Example:
        >>> import torch._dynamo
        >>> def f(x):
        ...     y = x.sin()
        ...     print("half")
        ...     return y + 1
        >>> found = torch._dynamo.explain(f)(torch.ones(2))
        half
        >>> found.graph_count, found.graph_break_count, found.op_count
        (2, 1, 1)
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        graphs: list[Any] = []

        def keep(graph: Any, inputs: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        run = compiler.compile(f, backend=keep)
        begin = time.perf_counter()
        run(*args, **kwargs)
        took = time.perf_counter() - begin
        operations = [[node.target for node in graph.graph.nodes if node.op == "call_function"] for graph in graphs]
        reasons = [GraphCompileReason(one) for one in reasons_of(run)]
        count = sum(map(len, operations))
        return ExplainOutput(
            graphs, len(graphs), max(0, len(graphs) - 1), reasons, count, operations, [], f"{took:.4f} s"
        )

    if not (extra_args or extra_kwargs):
        return inner
    warn(
        "explain(f, *args, **kwargs) is deprecated, use explain(f)(*args, **kwargs) instead.  If you don't migrate, we may break your "
        "explain call in the future if your user defined kwargs conflict with future kwargs added to explain(f).",
        FutureWarning,
    )
    return inner(*extra_args, **extra_kwargs)
