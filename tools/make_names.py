"""Write `tensor/_names.py` and `_layer_names.py`: which file holds which public function, and the forms that it has; and
`tensor/_results.py`: the parts of named results.

python tools/make_names.py           write them
python tools/make_names.py --check   fail if they are out of date

The files are an index, so that most files of functions load when one of their names is first used. The sources say all of it. A name
that such a file binds has the forms that torch's name has (`_compat/torch_names.txt`): a function of the package, a method of
Tensor, and, if torch has `name_` and no file binds that name, a method in place. A keyword `forms` of its decorator says what differs
(Note [What is said of a public function] in `overrides.py`). Only text is read here, nothing is imported: the package cannot be
imported while its index is wrong.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "retrograd"
TENSOR = PACKAGE / "tensor"

# Files that are loaded with the package; the others wait.
NOW = """_functions.elementwise _functions.reduce _functions.order _functions.shape _functions.joining _functions.splitting
_functions.matrix_products _functions.index _functions.gathering _functions.masks _functions.scattering _object.questions
_functions.creation _functions.ranges _functions.generators _functions.random_tensors _functions.casting
_aliasing.inplace""".split()  # noqa: SIM905 - names read better as text
# Files with public functions besides those of `_functions`.
ELSEWHERE = """_object.hashing _storage.given_strides _object.exchange _files.saving _files.loading _object.old_types _object.old_names
_object.dense_answers _storage.storages _storage.typed_storages _aliasing.setting
_storage.sharing""".split()  # noqa: SIM905
# Files of nn with functions of the package. Of two that bind a name, the first has torch's function; the other's is in nn.functional.
LAYERS = """nn.functional._torch_losses nn.functional._torch_normalization nn.functional._distances nn.utils.weight_norm
nn.functional._torch_fake_quantize nn.functional._torch_recurrent nn.functional._torch_activations nn.functional._activations
nn.functional._torch_dropout nn.functional._linear nn.functional._torch_embedding nn.functional._torch_pooling nn.functional._pooling
nn.functional._resizing nn.functional._shuffling nn.functional._convolution""".split()  # noqa: SIM905
# Classes that no statement binds.
MADE = {
    "_object.old_types": """FloatTensor DoubleTensor HalfTensor BFloat16Tensor BoolTensor ByteTensor CharTensor ShortTensor IntTensor
    LongTensor""",
    "_storage.typed_storages": """HalfStorage BFloat16Storage FloatStorage DoubleStorage ComplexFloatStorage ComplexDoubleStorage
    ByteStorage CharStorage ShortStorage IntStorage LongStorage BoolStorage""",
}
HEADER = '''"""{title}

Written by tools/make_names.py; do not edit.
"""

from __future__ import annotations
'''


# What makes a function public, and what may be said there: see Note [What is said of a public function] in `overrides.py`.
DECORATORS = {"overridable", "takes_out", "takes_old_forms"}
MAKERS = {*DECORATORS, "declared", "unary", "binary"}
FACTS = set("forms in_functional seen lowered raised in_place out_dtype".split())  # noqa: SIM905
FORMS = ("function", "method", "in_place", "spread")


class Bound(NamedTuple):
    """A name that a file binds, and the forms that are declared for it; None: those of torch's name."""

    name: str
    forms: frozenset[str] | None
    place: str = ""
    public: bool = False  # whether its decorator, or what makes its value, makes a public function


class Torch(NamedTuple):
    """The names that torch has: functions, methods, functions of lists without `_foreach_`; and all of its modules together."""

    functions: frozenset[str]
    methods: frozenset[str]
    foreach: frozenset[str]
    anywhere: frozenset[str]


def torch_names() -> Torch:
    homes: dict[str, set[str]] = {}
    for line in (PACKAGE / "_compat" / "torch_names.txt").read_text().splitlines():
        home, _, names = line.partition(": ")
        homes[home] = set(names.split())
    functions = {name for name in homes["torch"] | homes["torch.functional"] if f"torch.{name}" not in homes}
    private = re.findall(r"^(?:_amp)?_foreach_\w+$", (PACKAGE / "_dispatch" / "schemas.txt").read_text(), re.MULTILINE)
    foreach = {name.removeprefix("_foreach_") for name in private if not name.startswith("_amp")}
    anywhere = {
        *private,
        *(f"linalg_{name}" for name in homes["torch.linalg"]),
        *(n for some in homes.values() for n in some),
    }
    return Torch(
        frozenset({*functions, *private}), frozenset(homes["torch.Tensor"]), frozenset(foreach), frozenset(anywhere)
    )


def declared(path: Path, calls: list[ast.expr]) -> frozenset[str] | None:
    """Return the words of a keyword `forms` of calls: decorators, or what makes a value."""
    found = None
    for call in [one for one in calls if isinstance(one, ast.Call)]:
        for keyword in call.keywords:
            if called(call) in {*DECORATORS, "declared"} and keyword.arg not in FACTS:
                raise SystemExit(f"{path}:{keyword.lineno}: {keyword.arg} is none of {', '.join(sorted(FACTS))}")
            if keyword.arg == "forms":
                found = frozenset(ast.literal_eval(keyword.value).split())
                if unknown := sorted(found.difference(FORMS)):
                    raise SystemExit(f"{path}:{keyword.lineno}: {unknown[0]} is no form: {', '.join(FORMS)}")
    return found


def called(expression: ast.expr) -> str | None:
    """Return the name of a decorator, or of the function that a value comes from."""
    function = expression.func if isinstance(expression, ast.Call) else expression
    return function.id if isinstance(function, ast.Name) else None


def bound(path: Path) -> Iterator[Bound]:
    """Yield the names that statements of a file bind, imports aside."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            makers = [called(one) for one in node.decorator_list]
            is_public = not DECORATORS.isdisjoint(makers)
            yield Bound(node.name, declared(path, node.decorator_list), f"{path}:{node.lineno}", is_public)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for one in [part for target in targets for part in ast.walk(target)]:
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    values = [node.value] if node.value else []
                    is_public = any(isinstance(value, ast.Call) and called(value) in MAKERS for value in values)
                    yield Bound(one.id, declared(path, values), f"{path}:{node.lineno}", is_public)


def class_names() -> set[str]:
    """Return what the class Tensor says itself."""
    found = set()
    for file in ("_tensor.py", "_base.py"):
        for node in ast.parse((TENSOR / file).read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Tensor"):
                for one in node.body:
                    found |= {one.name} if isinstance(one, ast.FunctionDef) else set()
                    targets = one.targets if isinstance(one, ast.Assign) else ()
                    found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def check_public(names: list[Bound], torch: Torch) -> None:
    """Refuse public functions of which nobody knows what forms they have."""
    for name, said, place, is_public in names:
        if is_public and said is None and name not in torch.anywhere and not name.startswith("_"):
            raise SystemExit(f'{place}: torch has no {name}: say which forms it has, as in forms="function method"')


KINDS = ("both", "functions", "methods", "inplace", "spread", "writing")


def index() -> dict[str, dict[str, list[str]]]:
    """Return the public names of each file, by what they are."""
    torch, in_class = torch_names(), class_names()
    files = sorted(f"_functions.{path.stem}" for path in (TENSOR / "_functions").glob("[!_]*.py"))
    modules = [*NOW, *(one for one in [*files, *ELSEWHERE] if one not in NOW), *LAYERS]
    names = {module: list(bound(path_of(module))) for module in modules}
    for module, made in MADE.items():
        names[module] += [Bound(name, frozenset(["function"])) for name in made.split()]
    everywhere = {one.name for module, some in names.items() if module not in LAYERS for one in some} | in_class
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    found: dict[str, dict[str, list[str]]] = {module: {kind: [] for kind in KINDS} for module in modules}
    for module, some in names.items():
        check_public(some, torch)
        for name, said, *_ in some:
            is_function = name in torch.functions if said is None else "function" in said
            is_method = name in torch.methods - in_class if said is None else "method" in said
            is_written = f"{name}_" in torch.methods and is_function if said is None else "in_place" in said
            for one, form in ((functions, is_function), (methods, is_method)):
                if form and one.setdefault(name, module) != module and module not in LAYERS:
                    raise SystemExit(
                        f'{one[name]} and {module} both bind {name}: say forms="" where it is not torch\'s'
                    )
            is_method = is_method and methods[name] == module
            if is_function and name.endswith("_") and name in methods:
                found[module]["writing"] += [name] if is_method else []
                is_function = False
            is_function = is_function and functions[name] == module
            if is_function or is_method:
                found[module][
                    "both" if is_function and is_method else "functions" if is_function else "methods"
                ].append(name)
            if (is_function or is_method) and said and "spread" in said:
                found[module]["spread"].append(name)
            if is_written and (is_function or is_method) and f"{name}_" not in everywhere:
                methods[f"{name}_"] = module
                found[module]["inplace"].append(name)
                found[module]["writing"] += [f"{name}_"] if f"{name}_" in torch.functions else []
    return {module: kinds for module, kinds in found.items() if any(kinds.values())}


def results() -> dict[str, str]:
    """Return the fields of torch's named results, which public functions make by `make(name, *fields)`."""
    found = {}
    for path in (TENSOR / "_functions").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make" and node.args:
                name, *fields = [one.value if isinstance(one, ast.Constant) else None for one in node.args]
                if isinstance(name, str) and not name.startswith("_"):
                    found[name] = " ".join(fields)
    return dict(sorted(found.items()))


def path_of(module: str) -> Path:
    home = PACKAGE if module in LAYERS else TENSOR
    return home.joinpath(*module.split(".")).with_suffix(".py")


def quoted(names: list[str], indent: str) -> str:
    lines = textwrap.wrap(" ".join(names), 110, break_long_words=False, break_on_hyphens=False)
    return f'"{lines[0]}"' if len(lines) == 1 else '"""' + f"\n{indent}".join(lines) + '"""'


def written(found: dict[str, dict[str, list[str]]]) -> str:
    """Write families as entries of a dict."""
    lines = []
    for module, kinds in found.items():
        parts = [f"{kind}={quoted(names, '        ')}" for kind, names in kinds.items() if names]
        line = f'    "{module}": Names({", ".join(parts)}),\n'
        if len(line) > 120 or line.count("\n") > 1:
            line = f'    "{module}": Names(\n' + "".join(f"        {part},\n" for part in parts) + "    ),\n"
        lines.append(line)
    return "".join(lines)


TENSORS = (
    HEADER.format(title="The index of names: which file holds which public function, and the forms that it has.")
    + '''
from typing import NamedTuple


class Names(NamedTuple):
    """The public names of one file."""

    both: str = ""  # functions of the package that are methods of Tensor as well
    functions: str = ""
    methods: str = ""
    inplace: str = ""  # functions of which a method `name_` is made
    spread: str = ""  # methods among the others that take sizes or dims one by one as well, or in one sequence
    writing: str = ""  # methods that write in place and are functions of the package as well


# loaded with the package
NOW = {{
{now}}}
# loaded when one of their names is first used
LATER: dict[str, Names] = {{
{later}}}
# functions of the package that have a form for lists of tensors
FOREACH = {foreach}
'''
)
ABOVE = (
    HEADER.format(title="The index of names of `nn`: functions of the package and methods of Tensor that stand there.")
    + '''
from .tensor import install_names
from .tensor._names import Names

LAYERS = {{
{layers}}}


def install() -> None:
    """Let the tensors' table find these names: layers below `nn` do not know them."""
    install_names(LAYERS)
'''
)


RESULTS = (
    HEADER.format(title="The index of torch's named results: the names of their parts.")
    + """
RESULTS = {{
{results}}}
"""
)


def files() -> dict[Path, str]:
    """Return the text of each file by its path."""
    found = index()
    parts = [{m: k for m, k in found.items() if test(m)} for test in (NOW.__contains__, LAYERS.__contains__)]
    now, layers = parts
    later = {m: k for m, k in found.items() if m not in now and m not in layers}
    own = {one.name for one in bound(TENSOR / "_functions" / "foreach.py")}
    public = {name for kinds in found.values() for kind in ("both", "functions") for name in kinds[kind]}
    foreach = sorted(name for name in torch_names().foreach & public if f"_foreach_{name}" not in own)
    later["_functions.foreach"]["functions"] += [f"_foreach_{name}{_}" for name in foreach for _ in ("", "_")]
    return {
        TENSOR / "_names.py": TENSORS.format(now=written(now), later=written(later), foreach=quoted(foreach, "")),
        TENSOR / "_results.py": RESULTS.format(
            results="".join(f'    "{name}": "{fields}",\n' for name, fields in results().items())
        ),
        PACKAGE / "_layer_names.py": ABOVE.format(layers=written(layers)),
    }


def main() -> int:
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in sys.argv:
            print(f"out of date: {path}; run python tools/make_names.py")
        else:
            path.write_text(text)
    return bool(stale) and "--check" in sys.argv


if __name__ == "__main__":
    raise SystemExit(main())
