"""torch.jit.script: functions and modules with the face of compiled ones, and the marks that programs have for a compiler."""

import copy
import io
import pickle
from typing import Any, Final, Optional

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("jit_scripts")


def first_line(error: Any) -> Any:
    return (
        (type(error).__name__, str(error).split("\n")[0].partition(" Declaration")[0])
        if isinstance(error, Exception)
        else error
    )


def model(torch: Any) -> Any:
    class Inner(torch.nn.Module):
        limit: Final[int]

        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(3, 2)
            self.limit = 3
            self.sizes = [1, 2]
            self.register_buffer("shift", torch.ones(1))
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.ReLU()])
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7 - 0.5)

        def scaled(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.limit

        @torch.jit.export
        def more(self, x: torch.Tensor, k: int) -> torch.Tensor:
            return x + k

        @torch.jit.ignore
        def noted(self, x: torch.Tensor) -> torch.Tensor:
            return x if not torch.jit.is_scripting() else x * float("nan")

        @torch.jit.unused
        def never(self, x: torch.Tensor) -> torch.Tensor:
            return x

        def forward(self, x: torch.Tensor, mode: bool = False) -> torch.Tensor:
            x = self.fc(x)
            for layer in self.layers:
                x = layer(x)
            if mode:
                x = self.never(x)
            if torch.jit.is_scripting():
                x = x + 100
            if bool(x.sum() > 0):
                x = x + self.shift
            return self.scaled(self.noted(x))

    return Inner()


@program
def a_scripted_function(torch: Any) -> Any:
    @torch.jit.script
    def f(x: torch.Tensor, n: int = 2, s: float = 1.0) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * n * s
        else:
            return x

    x = torch.ones(2)
    calls = [
        lambda: f(x),
        lambda: f(-x),
        lambda: f(x, 3, 2),
        lambda: f(x, n=True),
        lambda: f(x, 2.5),
        lambda: f([1]),
        lambda: f(x, 1, 1, 1),
        lambda: f(y=x),
        lambda: f(x, z=1),
    ]
    return [first_line(caught(call)) for call in calls], str(f.schema), f.name


@program
def declarations(torch: Any) -> Any:
    @torch.jit.script
    def f(
        x: torch.Tensor,
        a: Optional[torch.Tensor],  # noqa: UP045 - as programs write it
        b: list[int],
        c: dict[str, torch.Tensor],
        d: str = "a",
        e: bool = False,
    ) -> torch.Tensor:
        return x

    return str(f.schema)


@program
def a_scripted_module(torch: Any) -> Any:
    module = model(torch)
    scripted = torch.jit.script(module)
    x = torch.ones(2, 3)
    return (
        scripted(x),
        module(x),
        scripted.more(x, 1),
        scripted.noted(x),
        str(scripted),
        type(scripted),
        type(scripted.fc),
        isinstance(scripted, torch.jit.ScriptModule),
        isinstance(scripted, type(module)),
        scripted.original_name,
        len(scripted.layers),
        scripted.limit,
        scripted.sizes,
    )


@program
def unused_methods_raise(torch: Any) -> Any:
    scripted = torch.jit.script(model(torch))
    error = caught(scripted, torch.ones(2, 3), True)
    return type(error), "annotated to be ignored and cannot be run" in str(error), isinstance(error, RuntimeError)


@program
def state_is_shared(torch: Any) -> Any:
    module = model(torch)
    scripted = torch.jit.script(module)
    scripted.eval()
    scripted.sizes = [5]
    return (
        [p is q for p, q in zip(module.parameters(), scripted.parameters(), strict=True)],
        list(scripted.state_dict()),
        [name for name, _ in scripted.named_modules()],
        (scripted.training, scripted.fc.training, module.training),
        (scripted.sizes, module.sizes),
    )


@program
def constants_stay(torch: Any) -> Any:
    scripted = torch.jit.script(model(torch))
    return first_line(caught(setattr, scripted, "limit", 4)), scripted.limit


@program
def calls_that_are_refused(torch: Any) -> Any:
    scripted = torch.jit.script(model(torch))
    x = torch.ones(2, 3)
    calls = [lambda: scripted(x, True, x), lambda: scripted(3), lambda: scripted(), lambda: scripted.none]
    return [first_line(caught(call)) for call in calls]


@program
def what_is_scripted_already_stays(torch: Any) -> Any:
    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return x

    scripted = torch.jit.script(model(torch))
    return torch.jit.script(f) is f, torch.jit.script(scripted) is scripted


@program
def what_cannot_be_scripted(torch: Any) -> Any:
    return [
        type(caught(torch.jit.script, 3)),
        type(caught(torch.jit.script, "a")),
        str(caught(torch.jit.script, lambda x: x)).partition(":")[0],
    ]


@program
def copies(torch: Any) -> Any:
    scripted = torch.jit.script(model(torch))
    twin = copy.deepcopy(scripted)
    with torch.no_grad():
        twin.fc.weight.zero_()
    x = torch.ones(2, 3)
    return twin(x), scripted(x), type(twin), type(copy.copy(scripted))


@program
def files_of_pickle_are_refused(torch: Any) -> Any:
    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return x

    return type(caught(pickle.dumps, torch.jit.script(model(torch)))), first_line(caught(pickle.dumps, f))


@program
def frozen_modules(torch: Any) -> Any:
    scripted = torch.jit.script(model(torch))
    early = first_line(caught(torch.jit.freeze, scripted))
    frozen = torch.jit.freeze(scripted.eval(), preserved_attrs=["more"])
    x = torch.ones(2, 3)
    return (
        early,
        frozen(x),
        frozen.more(x, 1),
        list(frozen.state_dict()),
        list(frozen.parameters()),
        [first_line(caught(getattr, frozen, name)) for name in ("fc", "training", "sizes")],
        first_line(caught(torch.jit.freeze, model(torch).eval())),
        first_line(caught(torch.jit.freeze, scripted, ["none"])),
        str(torch.jit.optimize_for_inference(scripted)),
        first_line(caught(torch.jit.optimize_for_inference, model(torch))),
    )


@program
def a_script_module_as_a_base(torch: Any) -> Any:
    class Scale(torch.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((3,), 2.0))

        @torch.jit.script_method
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * self.weight

    module = Scale()
    return module(torch.ones(3)), str(module), list(module.state_dict()), isinstance(module, torch.jit.ScriptModule)


@program
def forks(torch: Any) -> Any:
    @torch.jit.script
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    future = torch.jit.fork(twice, torch.ones(2))
    return torch.jit.wait(future)


@program
def marks(torch: Any) -> Any:
    internal = torch._jit_internal

    @torch.jit.export
    def a() -> None: ...

    @torch.jit.ignore
    def b() -> None: ...

    @torch.jit.unused
    def c() -> None: ...

    def d() -> None: ...

    return (
        [internal.get_torchscript_modifier(f) for f in (a, b, c, d)],
        [internal.is_ignored_fn(f) for f in (a, b, c, d)],
        first_line(caught(torch.jit.ignore, 3)),
        (torch.jit.is_scripting(), torch.jit.is_tracing()),
        torch.jit.annotate(list[int], [1]),
        tuple(torch.jit.Attribute(0.1, float)),
    )


@program
def files(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
            self.times = 2
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7 - 0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.body(x)
            if x.size(0) > 1:
                x = x * self.times
            return x

    module = Net().eval()
    shown = []
    for made in (torch.jit.script(module), torch.jit.trace(module, torch.ones(2, 3))):
        file = io.BytesIO()
        torch.jit.save(made, file, _extra_files={"note.txt": "words"})
        file.seek(0)
        extra = {"note.txt": ""}
        loaded = torch.jit.load(file, _extra_files=extra)
        again = io.BytesIO(loaded.save_to_buffer())
        twice = torch.jit.load(again)
        shown.append(
            (
                loaded(torch.ones(2, 3)),
                loaded(torch.ones(1, 3)),
                twice(torch.ones(1, 3)),
                str(loaded),
                type(loaded),
                loaded.training,
                list(loaded.state_dict()),
                extra["note.txt"],
            )
        )
    return shown


@program
def a_file_of_a_function(torch: Any) -> Any:
    @torch.jit.script
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.jit.script
    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x) * 2

    file = io.BytesIO(outer.save_to_buffer())
    traced = torch.jit.trace(lambda x: outer(x) + torch.ones(2), torch.ones(2))
    other = io.BytesIO(traced.save_to_buffer())
    return torch.jit.load(file)(torch.ones(2)), torch.jit.load(other)(torch.ones(2))


@program
def files_that_are_none(torch: Any) -> Any:
    file = io.BytesIO()
    torch.save({"a": 1}, file)
    file.seek(0)
    return (
        first_line(caught(torch.jit.load, "/nowhere/at/all")),
        str(caught(torch.jit.load, file)).partition(".")[0],
        str(caught(torch.jit.save, torch.nn.Linear(1, 1), io.BytesIO())).split("\n")[0],
    )


@program
def functions_from_source(torch: Any) -> Any:
    unit = torch.jit.CompilationUnit(
        """
        def twice(x: Tensor, n: int = 2) -> Tensor:
            return x * n
        """
    )
    return unit.twice(torch.ones(2)), str(unit.twice.schema), type(caught(getattr, unit, "none"))


test_as_torch, test_recording_is_torchs = program.tests()


def test_a_scripted_program_has_its_source_and_no_graph() -> None:
    def f(x: retrograd.Tensor) -> retrograd.Tensor:
        return x + 1

    scripted = retrograd.jit.script(f)
    assert scripted.code.startswith("def f(x")
    assert not hasattr(scripted, "graph")
    with pytest.raises(NotImplementedError, match="retrograd runs scripted programs as Python"):
        _ = scripted.graph


def test_a_class_that_no_file_can_name_is_refused_when_it_is_saved() -> None:
    made = retrograd.nn.utils.parametrizations.weight_norm(retrograd.nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match=r"'ParametrizedLinear', which was made while it ran"):
        retrograd.jit.save(retrograd.jit.script(made), io.BytesIO())


def test_a_file_needs_no_files_of_the_program(tmp_path: Any) -> None:
    import subprocess
    import sys

    source = tmp_path / "there" / "parts.py"
    source.parent.mkdir()
    source.write_text(
        "import math\nimport retrograd as torch\nTIMES = 3\n\n\n"
        "def even(x, n: int):\n    return x if n == 0 else odd(x, n - 1)\n\n\n"
        "def odd(x, n: int):\n    return x * TIMES if n == 0 else even(x, n - 1)\n\n\n"
        "class Base(torch.nn.Module):\n    def forward(self, x):\n        return x + math.floor(2.5)\n\n\n"
        "class Part(Base):\n    def forward(self, x):\n        return odd(super().forward(x), 2)\n"
    )
    sys.path.insert(0, str(source.parent))
    try:
        import parts  # type: ignore[import-not-found]

        retrograd.jit.script(parts.Part()).save(tmp_path / "part.pt")
    finally:
        sys.path.remove(str(source.parent))
        sys.modules.pop("parts", None)
    text = f"import retrograd as torch; print(torch.jit.load({str(tmp_path / 'part.pt')!r})(torch.ones(1)).item())"
    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.strip() == "9.0"
