"""Programs as graphs: trace a function or module, read and change what it does, and run the result.

`symbolic_trace(module)` gives a `GraphModule` with its `graph` of nodes and its `code`; `Interpreter` and `Transformer` walk a graph,
`replace_pattern` rewrites it.
"""

from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .immutable_collections import immutable_dict, immutable_list
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
