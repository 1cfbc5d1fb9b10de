"""torch.compile gives what eager gives: after every change that a call could notice."""

from __future__ import annotations

import copy
import linecache
import pickle
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd import nn
from retrograd.func import grad, hessian, jacrev, jvp, vmap
from retrograd.nn import functional as F  # noqa: N812


def records(function: Any) -> int:
    return len(function._compiled.records)


def same(function: Any, compiled: Any, *args: Any) -> None:
    """Call both, and compare results and gradients."""
    made, expected = compiled(*args), function(*args)
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)
    outs = [one for one in (expected if isinstance(expected, tuple) else (expected,)) if one.requires_grad]
    if outs:
        wanted = [one for one in args if isinstance(one, torch.Tensor) and one.requires_grad]
        mine = [one for one in (made if isinstance(made, tuple) else (made,)) if one.requires_grad]
        seeds = [torch.randn_like(one) for one in outs]
        grads = [torch.autograd.grad(side, wanted, seeds, allow_unused=True) for side in (mine, outs)]
        torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-5)


def chain(x: Any, y: Any) -> Any:
    z = (x * y + 1).tanh()
    return z @ y.t(), z.mean()


def test_shapes_dtypes_strides_and_gradients_have_programs_of_their_own() -> None:
    compiled = torch.compile(chain, fullgraph=True)
    for shape in ((3, 4), (2, 5), (3, 4)):
        for dtype in (torch.float32, torch.float64):
            for requires in (False, True):
                x = torch.randn(shape, dtype=dtype, requires_grad=requires)
                for y in (torch.randn(shape, dtype=dtype), torch.randn(shape[::-1], dtype=dtype).t()):
                    same(chain, compiled, x, y)
    assert records(compiled) == 16


def test_one_tensor_given_twice() -> None:
    compiled = torch.compile(chain)
    x, y = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    for pair in ((x, y), (x, x), (y, y), (y, x), (x, x.detach())):
        same(chain, compiled, *pair)


WEIGHT = torch.tensor([2.0, 3.0], requires_grad=True)


def test_a_tensor_that_is_captured_and_given() -> None:
    def f(x: Any) -> Any:
        return (x * WEIGHT * WEIGHT).sum(), (x.exp() * WEIGHT).sum()

    compiled = torch.compile(f)
    other = torch.tensor([1.0, -1.0], requires_grad=True)
    for x in (WEIGHT, WEIGHT, other, other, WEIGHT, other):
        sides = []
        for call in (f, compiled):
            first, second = call(x)
            (g,) = torch.autograd.grad(first, WEIGHT, create_graph=True)
            (h,) = torch.autograd.grad(g.sum(), WEIGHT)
            sides.append((first, second, g, h, torch.autograd.grad(second, WEIGHT)))
        torch.testing.assert_close(*sides)
    assert len(compiled._compiled.records) == 2


def test_views_of_one_memory() -> None:
    compiled = torch.compile(chain)
    whole = torch.randn(6, 3)
    for first, second in (
        (whole[:3], whole[3:]),
        (whole[:3], whole[:3]),
        (whole[1:4], whole[2:5]),
        (whole[:3], torch.randn(3, 3)),
    ):
        same(chain, compiled, first, second)


def test_numbers_and_structures_are_guarded() -> None:
    def function(parts: Any, factor: Any = 1.0, *, flag: bool = False) -> Any:
        total = parts["a"] * factor + parts["b"][0]
        return {"sum": total, "flag": flag, "list": [total.exp()] if flag else []}

    compiled = torch.compile(function)
    x, y = torch.randn(3), torch.randn(3)
    for call in (
        ((({"a": x, "b": [y]}),), {}),
        (({"a": x, "b": [y]}, 2.0), {}),
        (({"a": x, "b": [y]}, 2), {"flag": True}),
    ):
        for _ in range(3):
            made, expected = compiled(*call[0], **call[1]), function(*call[0], **call[1])
            assert made.keys() == expected.keys()
            torch.testing.assert_close(made["sum"], expected["sum"])
            assert made["flag"] is expected["flag"]
            torch.testing.assert_close(made["list"], expected["list"])
    zero = torch.compile(lambda x, n: x * n)
    for number in (0.0, -0.0, 0, False, 1, True, 1.0, float("nan")):
        for _ in range(2):
            assert str(zero(x, number)) == str(x * number)


def test_branches_on_values() -> None:
    def function(x: Any) -> Any:
        if x.sum() > 0:
            return x.exp()
        return -x if (x < -1).any() else x * 2

    compiled = torch.compile(function, fullgraph=True)
    for number in range(12):
        x = torch.tensor([1.0, 2.0]) * (-1) ** number * (0.3 if number % 3 else 2.0)
        torch.testing.assert_close(compiled(x), function(x))
    assert records(compiled) == 3


def test_sizes_that_depend_on_numbers() -> None:
    def function(x: Any) -> Any:
        chosen = x[x > 0]
        return (chosen * 2 + 1).exp().sum(), chosen.tanh()

    compiled = torch.compile(function)
    for number in range(8):
        torch.manual_seed(number)
        same(function, compiled, torch.randn(6, requires_grad=bool(number % 2)))

    def writing(x: Any, counts: Any) -> Any:
        counts.add_(1)
        return (x[x > 0] * 2 + 1).sum() + counts

    compiled = torch.compile(writing)
    mine, other = torch.zeros(()), torch.zeros(())
    for number in range(6):
        x = torch.randn(6)
        torch.testing.assert_close(compiled(x, mine), writing(x, other))
        assert mine.item() == other.item() == number + 1


def test_a_step_written_by_hand() -> None:
    sides = []
    for compiles in (False, True):
        w = torch.ones(3, requires_grad=True)

        def step(x: Any, w: Any) -> Any:
            loss = ((x * w).tanh() ** 2).sum()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
            return loss.detach()

        run = torch.compile(step) if compiles else step
        losses = [run(torch.arange(3.0) + number, w) for number in range(4)]
        sides.append((torch.stack(losses), w.detach(), w._version, w.grad))
    torch.testing.assert_close(sides[0][:2], sides[1][:2])
    assert sides[0][2:] == sides[1][2:]


def test_a_default_device_is_seen() -> None:
    compiled = torch.compile(lambda x: torch.ones(3) + x)
    compiled(1.0)
    compiled(1.0)
    with torch.device("meta"):
        assert compiled(1.0).is_meta
    assert compiled(1.0).tolist() == [2, 2, 2]


def test_indices_out_of_range_are_refused_as_in_eager() -> None:
    compiled = torch.compile(lambda x, i: x[i] * 2, fullgraph=True)
    x = torch.arange(4.0)
    for index in ([0, 1], [3, -4], [2, 2]):
        assert compiled(x, torch.tensor(index)).tolist() == (x[index] * 2).tolist()
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, torch.tensor([0, 4]))
    loss = torch.compile(lambda x, y: F.cross_entropy(x, y))
    x = torch.randn(2, 3)
    for _ in range(2):
        loss(x, torch.tensor([0, 2]))
    with pytest.raises(IndexError, match="out of bounds"):
        loss(x, torch.tensor([0, 3]))


def test_some_results_alone() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * 2, (y * y).sum()

    compiled = torch.compile(function)
    for _ in range(3):
        x, y = (torch.randn(3, requires_grad=True) for _ in range(2))
        first, second = compiled(x, y)
        second.backward()
        assert x.grad is None
        torch.testing.assert_close(y.grad, 2 * y.detach())
        first.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match="second time"):
            second.backward()


def test_derivatives_of_derivatives() -> None:
    def function(x: Any, w: Any) -> Any:
        return ((x @ w).tanh() ** 3).sum()

    compiled = torch.compile(function)
    for _ in range(3):
        x, w = torch.randn(3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
        found = []
        for side in (compiled, function):
            first = torch.autograd.grad(side(x, w), (x, w), create_graph=True)
            found.append(torch.autograd.grad(sum(one.sum() for one in first), (x, w)))
        torch.testing.assert_close(found[0], found[1])
    assert torch.autograd.gradgradcheck(
        compiled, (torch.randn(3, dtype=torch.float64, requires_grad=True), torch.randn(3, 2, dtype=torch.float64))
    )


def quartic(x: Any) -> Any:
    return (x**4).sum() * x[0]


def test_transforms_around_and_inside() -> None:
    compiled = torch.compile(quartic)
    x, rows = torch.randn(4), torch.randn(5, 4)
    for _ in range(3):
        torch.testing.assert_close(grad(compiled)(x), grad(quartic)(x))
        torch.testing.assert_close(vmap(compiled)(rows), vmap(quartic)(rows))
        torch.testing.assert_close(vmap(grad(compiled))(rows), vmap(grad(quartic))(rows))
        torch.testing.assert_close(jvp(compiled, (x,), (x,)), jvp(quartic, (x,), (x,)))
        torch.testing.assert_close(hessian(compiled)(x), hessian(quartic)(x))
    for made in (
        lambda x: grad(quartic)(x),
        lambda x: hessian(quartic)(x),
        lambda x: jacrev(grad(quartic))(x),
        lambda x: jvp(quartic, (x,), (x,)),
    ):
        inside = torch.compile(made)
        for _ in range(3):
            y = torch.randn(4)
            torch.testing.assert_close(inside(y), made(y), rtol=1e-4, atol=1e-4)
    inside = torch.compile(lambda rows: vmap(grad(quartic))(rows), fullgraph=True)
    for _ in range(3):
        rows = torch.randn(5, 4)
        torch.testing.assert_close(inside(rows), vmap(grad(quartic))(rows), rtol=1e-4, atol=1e-4)


def test_what_is_saved_is_guarded_against_writes() -> None:
    compiled = torch.compile(lambda x, y: (x * y).exp())
    for _ in range(3):
        x, y = torch.randn(3, requires_grad=True), torch.randn(3)
        out = compiled(x, y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()
        x, y = torch.randn(3, requires_grad=True), torch.randn(3)
        out = compiled(x, y)
        with torch.no_grad():
            out.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_arguments_that_are_written() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        x[0] = 7.0
        return x.sum() + y

    compiled = torch.compile(function)
    for _ in range(3):
        x, z, y = torch.ones(3), torch.ones(3), torch.ones(())
        torch.testing.assert_close(compiled(x, y), function(z, y))
        torch.testing.assert_close(x, z)
        assert x._version == z._version
    x = torch.ones(3)
    alike = torch.ones(3)
    torch.testing.assert_close(compiled(x, x[1]), function(alike, alike[1]))  # the second shows memory of the first
    torch.testing.assert_close(x, alike)
    part, other = torch.ones(5), torch.ones(5)
    torch.testing.assert_close(compiled(part[1:4], y), function(other[1:4], y))
    torch.testing.assert_close(part, other)


def test_results_are_new_every_time() -> None:
    compiled = torch.compile(lambda x: (torch.zeros(3), x * 2, torch.arange(3)), fullgraph=True)
    kept = []
    for number in range(4):
        results = compiled(torch.full((3,), float(number)))
        kept.append(results)
        results[0].add_(5)
        results[2].add_(5)
    for number, (zeros, twice, positions) in enumerate(kept):
        assert zeros.tolist() == [5, 5, 5]
        assert twice.tolist() == [2 * number] * 3
        assert positions.tolist() == [5, 6, 7]


def test_constants_that_are_written_and_read_by_kernels() -> None:
    def function(x: Any) -> Any:
        ramp = torch.zeros(3, 3)
        for k in range(3):
            ramp[k, k] = 3.0 * (k + 1)
        scale = torch.ones(())
        scale.add_(x[0, 0])
        return ((x + ramp) * scale).tanh().sum(0)

    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        same(function, compiled, torch.randn(3, 3))
    assert records(compiled) == 1


def test_arguments_that_are_returned() -> None:
    compiled = torch.compile(lambda x, y: (x, x + y, y))
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    for _ in range(3):
        found = compiled(x, y)
        assert found[0] is x
        assert found[2] is y
    twice = torch.compile(lambda x: (x * 2, x * 2))
    for _ in range(3):
        one, other = twice(y)
        one.add_(1)
        assert not torch.equal(one, other)


def test_modes() -> None:
    compiled = torch.compile(chain)
    x, y = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)
    for _ in range(2):
        same(chain, compiled, x, y)
        with torch.no_grad():
            assert not compiled(x, y)[0].requires_grad
            same(chain, compiled, x, y)
        with torch.inference_mode():
            assert compiled(x, y)[0].is_inference()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert compiled(x, y)[0].dtype is chain(x, y)[0].dtype is torch.bfloat16
    made = torch.compile(lambda x: x + torch.ones(3) * 0.5)
    x = torch.ones(3, dtype=torch.float64)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            for _ in range(2):
                assert torch.equal(made(x), x + 0.5)
                assert torch.compile(lambda: torch.ones(2))().dtype is dtype
        finally:
            torch.set_default_dtype(torch.float32)


def test_random_numbers_come_from_the_stream() -> None:
    def function(x: Any) -> Any:
        return F.dropout(x, 0.5) + torch.rand(4) * torch.bernoulli(torch.full((4,), 0.3)) + torch.randn_like(x)

    compiled = torch.compile(function)
    x = torch.ones(4)
    for seed in range(4):
        torch.manual_seed(seed)
        expected = function(x), torch.rand(2)
        torch.manual_seed(seed)
        made = compiled(x), torch.rand(2)
        torch.testing.assert_close(made, expected)


def test_fullgraph_names_what_stands_in_the_way() -> None:
    def function(x: Any) -> Any:
        print(x.shape)
        return x.sum().item() * x

    with pytest.raises(RuntimeError, match=r"fullgraph=True.*test_compiled.py"):
        torch.compile(function, fullgraph=True)(torch.ones(2))


def test_errors_are_those_of_eager() -> None:
    compiled = torch.compile(chain)
    for pair in ((torch.ones(2, 3), torch.ones(3, 2)), (torch.ones(2, 3), 5)):
        with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever it is
            chain(*pair)
        for _ in range(2):
            with pytest.raises(expected.type) as made:
                compiled(*pair)
            assert str(made.value) == str(expected.value)


def test_disable_reset_and_stances() -> None:
    @torch.compiler.disable
    def inner(x: Any) -> Any:
        return x * 2

    compiled = torch.compile(lambda x: inner(x) + 1)
    assert compiled(torch.ones(2)).tolist() == [3, 3]
    assert records(compiled) == 0
    other = torch.compile(quartic)
    x = torch.ones(3)
    other(x)
    assert records(other) == 1
    torch.compiler.reset()
    assert records(other) == 0
    with torch.compiler.set_stance("force_eager"):
        other(x)
        assert records(other) == 0
    asked = torch.compile(lambda x: x + 1 if torch.compiler.is_compiling() else x + 1.0)
    assert asked(x).tolist() == [2, 2, 2]
    assert not torch.compiler.is_compiling()
    assert torch.compile(quartic, backend="eager") is quartic
    assert torch.compile(quartic, disable=True) is quartic


def test_the_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert torch.compile(quartic) is quartic


def test_explain() -> None:
    compiled = torch.compile(chain)
    x, y = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    text = str(torch.compiler.explain(compiled, x, y))
    assert "test_compiled.py" in text
    assert "1 compiled program\n" in text
    code = torch.compiler.explain(compiled).code
    assert "def forward(" in code
    assert "tanh_back(" in code
    found = torch.compiler.explain(lambda x: x * len(str(x)), x)
    assert not found.records
    assert found.reasons


def test_explain_names_cells_and_says_why_no_part_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = "<a cell of test_compiled>", "def f(x):\n    print('called')\n    return x.sum()\n"
    monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(keepends=True), file))
    named = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if name == file else None)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=named))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    compiled = torch.compile(scope["f"])
    for _ in range(4):
        compiled(torch.ones(3))
    assert capsys.readouterr().out == "called\n" * 4
    words = str(torch.compiler.explain(compiled))
    assert "(Cell In[3], line 2)\nno part of it is compiled: each has fewer than 4 operations" in words


def test_explain_refuses_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match=r"explain\(\): expected a function, a Module or .* but got int"):
        torch.compiler.explain(3)


def test_methods_and_modules() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.scale = 2.0

        @torch.compile
        def part(self, x: Any) -> Any:
            return self.inner(x) * self.scale

        def forward(self, x: Any) -> Any:
            return self.part(x).relu()

    model = Model()
    x = torch.randn(2, 3)
    for scale in (2.0, 3.0, 2.0):
        model.scale = scale
        for _ in range(2):
            torch.testing.assert_close(model.part(x), model.inner(x) * scale)
            torch.testing.assert_close(model(x), (model.inner(x) * scale).relu())
    linear = nn.Linear(3, 2)
    expected = linear(x)
    linear.compile()
    for _ in range(3):
        torch.testing.assert_close(linear(x), expected)
    other = copy.deepcopy(linear)
    assert other.forward.module is other
    linear.weight = nn.Parameter(torch.zeros(2, 3))
    torch.testing.assert_close(other(x), expected)
    again = pickle.loads(pickle.dumps(other))
    torch.testing.assert_close(again(x), expected)
    with torch.no_grad():
        again.bias.add_(1)
    torch.testing.assert_close(again(x), expected + 1)
    torch.testing.assert_close(linear(x), linear.bias.expand(2, 2))
    with torch.no_grad():
        linear.weight.add_(1.0)
    torch.testing.assert_close(linear(x), x.sum(1, keepdim=True) + linear.bias)


def test_a_class_stays_a_class() -> None:
    @torch.compile
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.inner(x).relu()

    @torch.compile
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return (x * self.by).tanh() * self.by + 1

    class Derived(Model):
        pass

    x = torch.randn(2, 3)
    for _ in range(3):
        for model in (Model(), Derived()):
            assert isinstance(model, Model)
            torch.testing.assert_close(model(x), model.inner(x).relu())
        for by in (2.0, 3.0):
            torch.testing.assert_close(Scaled(by)(x), (x * by).tanh() * by + 1)


def test_a_compiled_module_lists_the_names_of_what_it_wraps() -> None:
    assert {"weight", "in_features", "_orig_mod"} <= set(dir(torch.compile(nn.Linear(2, 2))))
    torch._dynamo.mark_static(torch.ones(2, 2))


def test_a_parameter_that_is_replaced_or_moved_is_seen() -> None:
    model = nn.Linear(3, 3)
    compiled = torch.compile(lambda x: model(x).sum(), fullgraph=True)
    x = torch.randn(2, 3)
    for number in range(4):
        torch.testing.assert_close(compiled(x), model(x).sum())
        if number == 0:
            model.weight.data = torch.randn(3, 3)
        elif number == 1:
            model.bias = None
        else:
            model.requires_grad_(False)
    torch.testing.assert_close(compiled(x), model(x).sum())


def test_threads() -> None:
    compiled = torch.compile(lambda x, y: ((x * y).tanh() @ y).sum(0))
    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for number in range(60):
                size = 2 + number % 4
                x = torch.tensor(rng.normal(size=(size, size)), requires_grad=bool(seed % 2))
                y = torch.tensor(rng.normal(size=(size, size)))
                made = compiled(x, y)
                torch.testing.assert_close(made, ((x * y).tanh() @ y).sum(0))
                if seed % 2:
                    made.sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures


def test_the_documented_code_is_what_is_printed() -> None:
    def f(x: Any) -> Any:
        return (x * x).tanh().sum()

    compiled = torch.compile(f)
    compiled(torch.ones(3, requires_grad=True))
    document = (Path(__file__).parents[2] / "docs" / "compile.md").read_text(encoding="utf-8")
    assert document.split("```text\n")[1].split("```")[0] == compiled.code
