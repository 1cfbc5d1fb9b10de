"""torch.export: what a program becomes, what is refused, which sizes may change, and files."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("export_programs")


def exported(torch: Any, module: Any, *args: Any, **options: Any) -> Any:
    import importlib

    return importlib.import_module(f"{torch.__name__}.export").export(module, args, **options)


def home(torch: Any) -> Any:
    import importlib

    return importlib.import_module(f"{torch.__name__}.export")


def first_line(error: Any) -> Any:
    return (type(error).__name__, str(error).split("\n")[0]) if isinstance(error, Exception) else error


def net(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
            self.register_buffer("steps", torch.zeros(2))
            self.register_buffer("once", torch.ones(2), persistent=False)
            self.fixed = torch.full((2,), 3.0)
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7 - 0.3)

        def forward(self, x: Any, factor: Any = None) -> Any:
            self.steps.add_(1)
            rows = x.shape[0]
            y = self.body(x) + self.steps + self.once + self.fixed
            return y, {"flat": y.reshape(rows * 2)}

    return Net()


@program
def a_program_and_its_signature(torch: Any) -> Any:
    found = exported(torch, net(torch), torch.ones(4, 3))
    signature = found.graph_signature
    return (
        [
            (str(spec.kind).split(".")[-1], spec.arg.name, spec.target, spec.persistent)
            for spec in signature.input_specs
        ],
        [str(spec.kind).split(".")[-1] for spec in signature.output_specs],
        signature.parameters,
        signature.buffers,
        signature.non_persistent_buffers,
        signature.user_inputs,
        dict(signature.inputs_to_parameters),
        dict(signature.inputs_to_buffers),
        dict(signature.buffers_to_mutate),
        signature.lifted_tensor_constants,
        list(found.state_dict),
        sorted(found.constants),
        [name for name, _ in found.named_parameters()],
        [name for name, _ in found.named_buffers()],
        [entry.fqn for entry in found.module_call_graph],
        str(found.call_spec.in_spec),
        str(found.call_spec.out_spec),
    )


@program
def its_module_runs(torch: Any) -> Any:
    found = exported(torch, net(torch), torch.ones(4, 3))
    module = found.module()
    first, second = module(torch.ones(4, 3)), module(torch.ones(4, 3))
    return first, second, sorted(module.state_dict()), [name for name, _ in module.named_parameters()]


@program
def gradients_reach_the_parameters(torch: Any) -> Any:
    found = exported(torch, net(torch), torch.ones(4, 3))
    module = found.module()
    module(torch.ones(4, 3))[0].sum().backward()
    return {name: p.grad for name, p in module.named_parameters()}


@program
def inputs_that_do_not_fit(torch: Any) -> Any:
    module = exported(torch, net(torch), torch.ones(4, 3)).module()
    calls = [
        lambda: module(torch.ones(5, 3)),
        lambda: module(torch.ones(4, 2)),
        lambda: module(torch.ones(4, 3), torch.ones(1)),
        lambda: module(y=torch.ones(4, 3)),
    ]
    return [first_line(caught(call)) for call in calls]


@program
def what_cannot_be_called(torch: Any) -> Any:
    found = exported(torch, net(torch), torch.ones(4, 3))
    return [first_line(caught(call)) for call in (lambda: found(1), found.module().eval, found.module().train)]


@program
def what_cannot_be_exported(torch: Any) -> Any:
    export = home(torch).export
    return [
        first_line(caught(export, lambda x: x, (torch.ones(1),))),
        first_line(caught(export, net(torch), torch.ones(1))),
        str(caught(export, torch.jit.script(torch.nn.Linear(3, 2)), (torch.ones(1, 3),))).partition(".")[0],
    ]


@program
def a_branch_on_data(torch: Any) -> Any:
    class Branching(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else x + 1

    error = caught(exported, torch, Branching(), torch.ones(2))
    return type(error), str(error).startswith("Could not guard on data-dependent expression")


@program
def sizes_that_change(torch: Any) -> Any:
    batch = home(torch).Dim("batch")
    found = exported(torch, net(torch), torch.ones(4, 3), dynamic_shapes={"x": {0: batch}})
    module = found.module()
    return module(torch.ones(2, 3)), module(torch.ones(5, 3)), first_line(caught(module, torch.ones(5, 2)))


@program
def limits_of_sizes(torch: Any) -> Any:
    Dim = home(torch).Dim  # noqa: N806
    early = caught(exported, torch, net(torch), torch.ones(4, 3), dynamic_shapes={"x": {0: Dim("b", min=5)}})
    other = caught(exported, torch, net(torch), torch.ones(4, 3), dynamic_shapes={"y": {0: Dim("b")}})
    return type(early), str(early).split("\n")[0], type(other), str(other).partition(".")[0]


@program
def a_size_that_is_fixed_by_the_program(torch: Any) -> Any:
    class Fixed(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.shape[0] == 4 else x

    batch = home(torch).Dim("batch")
    error = caught(exported, torch, Fixed(), torch.ones(4, 3), dynamic_shapes={"x": {0: batch}})
    automatic = exported(torch, Fixed(), torch.ones(4, 3), dynamic_shapes=({0: home(torch).Dim.AUTO},))
    return (
        type(error),
        "You marked batch as dynamic but your code specialized it to be a constant (4)" in str(error),
        automatic.module()(torch.ones(4, 3)),
        type(caught(automatic.module(), torch.ones(5, 3))),
    )


@program
def dims(torch: Any) -> Any:
    export = home(torch)
    b = export.Dim("b")
    return (
        [str(one) for one in (b, export.Dim("b", max=5), export.Dim("c", min=3, max=5), 2 * b, b + 1, b - 1)],
        [str(one) for one in (export.Dim.AUTO, export.Dim.DYNAMIC, export.Dim.STATIC)],
        b.__name__,
        [str(one) for one in export.dims("a", "b")],
        first_line(caught(export.Dim, "b", min=5, max=2)),
        first_line(caught(export.Dim, "b b")),
    )


@program
def derived_sizes(torch: Any) -> Any:
    class Two(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return y[: x.shape[0]] + x

    b = home(torch).Dim("b")
    found = exported(torch, Two(), torch.ones(3), torch.ones(6), dynamic_shapes={"x": {0: b}, "y": {0: 2 * b}})
    return found.module()(torch.ones(4), torch.ones(8))


@program
def nested_and_keyword_arguments(torch: Any) -> Any:
    class Nested(torch.nn.Module):
        def forward(self, pair: Any, *, table: Any, times: int = 2) -> Any:
            return [pair[0] + pair[1]["a"] * times, table["b"]]

    args, kwargs = ((torch.ones(2), {"a": torch.ones(2)}),), {"table": {"b": torch.zeros(1)}, "times": 3}
    found = home(torch).export(Nested(), args, kwargs)
    module = found.module()
    return (
        found.graph_signature.user_inputs,
        module(*args, **kwargs),
        module(*args, times=3, table={"b": torch.ones(1)}),
        first_line(caught(module, *args, table={"b": torch.ones(1)}, times=4)),
    )


class Pair(NamedTuple):
    one: Any
    other: Any


@program
def named_results(torch: Any) -> Any:
    class Named(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Pair(x + 1, 5)

    result = exported(torch, Named(), torch.ones(1)).module()(torch.ones(1))
    return result.one, result.other


@program
def files(torch: Any) -> Any:
    export = home(torch)
    found = exported(torch, net(torch), torch.ones(4, 3), dynamic_shapes={"x": {0: export.Dim("batch")}})
    file = io.BytesIO()
    export.save(found, file, extra_files={"note.txt": "words"})
    file.seek(0)
    extra = {"note.txt": ""}
    loaded = export.load(file, extra_files=extra)
    wrong = caught(export.save, net(torch), io.BytesIO())
    return (
        type(loaded),
        loaded.module()(torch.ones(2, 3)),
        list(loaded.state_dict),
        str(extra["note.txt"]).strip("b'"),
        first_line(wrong),
    )


@program
def modules_again(torch: Any) -> Any:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net(torch)
            self.last = torch.nn.Linear(2, 2)
            with torch.no_grad():
                self.last.weight.fill_(0.5)
                self.last.bias.fill_(1.0)

        def forward(self, x: Any) -> Any:
            return self.last(self.last(self.net(x)[0]))

    made = home(torch).unflatten(exported(torch, Twice(), torch.ones(4, 3)))
    return (
        made(torch.ones(4, 3)),
        sorted(name for name, _ in made.named_parameters()),
        [name for name, _ in made.named_modules() if "@" not in name],
        type(made),
        made.last(torch.zeros(1, 2)),
    )


test_as_torch, test_recording_is_torchs = program.tests()


def test_questions_about_sizes_are_kept_as_checks() -> None:
    class Chosen(retrograd.nn.Module):
        def forward(self, x: retrograd.Tensor) -> retrograd.Tensor:
            return x * 2 if x.shape[0] > 2 else x

    found = retrograd.export.export(
        Chosen(), (retrograd.ones(4),), dynamic_shapes={"x": {0: retrograd.export.Dim("b")}}
    )
    assert found.module()(retrograd.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(AssertionError, match="Guard failed"):
        found.module()(retrograd.ones(1))


def test_a_program_in_operations_of_aten() -> None:
    class Mixed(retrograd.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = retrograd.nn.Sequential(retrograd.nn.Linear(3, 3), retrograd.nn.ReLU())
            self.fixed = retrograd.ones(3)
            self.register_buffer("steps", retrograd.zeros(1))

        def forward(self, x: Any, times: int = 2, *, table: Any) -> Any:
            self.steps.add_(1)
            return self.body(x) * times + self.fixed + retrograd.tensor(2.0) + self.steps, table["a"].sum()

    module, args, kwargs = Mixed(), (retrograd.ones(2, 3), 3), {"table": {"a": retrograd.ones(2)}}
    found = retrograd.export.export(module, args, kwargs)
    made = found.run_decompositions()
    assert {str(n.target).partition(".")[0] for n in made.graph.nodes if n.op == "call_function"} == {"aten"}
    assert [n.target for n in made.graph.nodes if n.op == "placeholder"][-3:] == ["x", "times", "table_a"]
    assert module.steps.item() == 0
    result = made.module()(*args, **kwargs)
    retrograd.testing.assert_close(result[0], (module.body(args[0]) * 3 + 1 + 2 + 1))
    assert result[1].item() == 2


def test_sizes_that_may_change_have_no_graph_of_operations() -> None:
    found = retrograd.export.export(
        retrograd.nn.Linear(1, 1), (retrograd.ones(1, 1),), dynamic_shapes={"input": {0: retrograd.export.Dim("b")}}
    )
    with pytest.raises(NotImplementedError, match="sizes that may change"):
        found.run_decompositions()


def test_a_program_is_written_with_the_lines_it_comes_from() -> None:
    text = str(retrograd.export.export(net(retrograd), (retrograd.ones(4, 3),)))
    assert text.startswith("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n")
    assert "test_programs.py" in text
    assert "body_0_weight: PARAMETER target='body.0.weight'" in text


def test_what_is_asked_of_functions_while_they_are_recorded_holds_afterwards() -> None:
    program = """
import torch

class Doubled(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.relu(x.mul(2))

torch.export.export(Doubled(), (torch.ones(2, 3),))
names = [torch.overrides.resolve_name(f) for f in (torch.add, torch.Tensor.add_, torch.nn.functional.relu)]
print(names, torch.ones in torch.overrides.get_ignored_functions())
"""
    command = [sys.executable, "-m", "retrograd", "run", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['torch.add', 'torch.Tensor.add_', 'torch.nn.functional.relu'] True"
