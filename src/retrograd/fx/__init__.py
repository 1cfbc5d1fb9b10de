"""Programs as graphs: trace a function or module, read and change what it does, and run the result.

`symbolic_trace(module)` gives a `GraphModule` with its `graph` of nodes and its `code`; `Interpreter` and `Transformer` walk a graph,
`replace_pattern` rewrites it.
"""

from .._public import set_all
from ._symbolic_trace import PH as PH
from ._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from ._symbolic_trace import Tracer as Tracer
from ._symbolic_trace import symbolic_trace as symbolic_trace
from ._symbolic_trace import wrap as wrap
from .graph import CodeGen as CodeGen
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .immutable_collections import immutable_dict as immutable_dict
from .immutable_collections import immutable_list as immutable_list
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_aggregate as map_aggregate
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .subgraph_rewriter import replace_pattern as replace_pattern

set_all(globals())
