"""Python's operators: how a call of `operator.add` is written, and which methods of a Proxy record one."""

from __future__ import annotations

BINARY = {
    "add": "+",
    "and_": "&",
    "floordiv": "//",
    "lshift": "<<",
    "matmul": "@",
    "mod": "%",
    "mul": "*",
    "or_": "|",
    "pow": "**",
    "rshift": ">>",
    "sub": "-",
    "truediv": "/",
    "xor": "^",
}
reflectable_magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in BINARY.items()}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
    **reflectable_magic_methods,
}
inplace_methods = {f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in BINARY.items()} | {
    "setitem": "{}[{}] = {}"
}
