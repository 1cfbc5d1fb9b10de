"""Guards: whenever calling a function again would give something else, one of them fails."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import itertools
import linecache
import math
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.compiler._guards import (
    ARGS,
    FUNCTION,
    KWARGS,
    Guard,
    Source,
    alias_guard,
    compile_guards,
    constant,
    same,
    strict_key,
    tensor_guard,
    why_not,
)
from retrograd.compiler._purity import Verdict, analyse

_numbers = itertools.count()


def defined(text: str, **names: Any) -> Any:
    """Define a function `f` from a text, with a source that can be found again."""
    file = f"<guards {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope = {"torch": torch, "F": F, "nn": nn, "math": math, "__builtins__": builtins.__dict__, **names}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope["f"]


class Checked:
    """A function, its guards, and whether they hold now."""

    def __init__(self, function: Any, *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.verdict: Verdict = analyse(function, args, kwargs)
        assert self.verdict.pure, f"{self.verdict.reason} {self.verdict.place}"
        self.check = compile_guards(self.verdict.guards)
        assert self.holds()

    def holds(self, *args: Any) -> bool:
        held = self.check(self.function, args or self.args, self.kwargs)
        assert held == (why_not(self.verdict.guards, self.function, args or self.args, self.kwargs) == "")
        return held


X = torch.tensor([1.0, -2.0])


# ---- values ----
VALUES = [
    *(
        0,
        1,
        -1,
        True,
        False,
        None,
        0.0,
        -0.0,
        1.0,
        math.nan,
        math.inf,
        -math.inf,
        10**30,
        10**5000,
        1j,
        complex(0.0, -0.0),
    ),
    *(
        "",
        "a",
        b"",
        b"a",
        (),
        (1,),
        (True,),
        (1.0,),
        (-0.0,),
        (0.0,),
        ((1,),),
        frozenset(),
        frozenset({1}),
        frozenset({1.0}),
    ),
    *(
        range(3),
        range(0, 3, 1),
        range(0, 4, 2),
        slice(1),
        slice(True),
        Ellipsis,
        NotImplemented,
        torch.float32,
        torch.float64,
    ),
    *(
        torch.device("cpu"),
        torch.Size([1]),
        np.float32(1),
        np.float64(1),
        np.int64(1),
        np.float32(-0.0),
        np.float32(0.0),
    ),
]


@pytest.mark.parametrize(
    "a", VALUES, ids=lambda v: f"{type(v).__name__}-{v!s:.20}" if type(v) is not int else f"int{v.bit_length()}"
)
def test_values_are_told_apart(a: Any) -> None:
    for number, b in enumerate(VALUES):
        alike = same(a, b)
        assert alike == same(b, a)
        if VALUES[number] is a:
            assert alike
        elif alike:
            assert type(a) is type(b)
            assert repr(a) == repr(b)
        assert (strict_key(a) == strict_key(b)) == alike


def test_equal_values_that_are_other_objects_are_the_same() -> None:
    for make in (lambda: float("1.5"), lambda: int("123456789012345678901234567890"), lambda: "".join(["a", "b"])):
        assert same(make(), make())
    assert same(float("nan"), float("nan"))
    assert same((float("nan"), (1, "x")), (float("nan"), (1, "x")))
    assert not same([1], [1])  # lists change: they are never compared by value


# ---- where values are found ----
@dataclasses.dataclass
class Config:
    rate: Any = 1.0
    names: Any = None


def other(x: Any) -> Any:
    return x * 3


STATE: list[tuple[str, str, dict[str, Any], Callable[[Any, dict[str, Any]], Any]]] = [
    ("global", "def f(x): return x * k", {"k": 2}, lambda f, s: s.update(k=3)),
    ("type_of_a_global", "def f(x): return x * k", {"k": 1}, lambda f, s: s.update(k=True)),
    ("integer_to_float", "def f(x): return x * k", {"k": 1}, lambda f, s: s.update(k=1.0)),
    ("sign_of_zero", "def f(x): return x / k", {"k": 0.0}, lambda f, s: s.update(k=-0.0)),
    ("deleted_global", "def f(x): return x * k", {"k": 1}, lambda f, s: s.pop("k")),
    ("list_in_place", "def f(x): return x * k[0]", {"k": [1]}, lambda f, s: s["k"].__setitem__(0, 2)),
    ("length_of_a_list", "def f(x): return x * len(k)", {"k": [1]}, lambda f, s: s["k"].append(2)),
    ("sum_of_a_list", "def f(x): return x * sum(k)", {"k": [1]}, lambda f, s: s["k"].append(2)),
    ("truth_of_a_list", "def f(x): return x if k else -x", {"k": [1]}, lambda f, s: s["k"].clear()),
    ("negative_index", "def f(x): return x * k[-1]", {"k": [1, 2]}, lambda f, s: s["k"].append(5)),
    ("slice_of_a_list", "def f(x): return x * sum(k[1:])", {"k": [1, 2]}, lambda f, s: s["k"].append(5)),
    ("deep", "def f(x): return x * k['a'][0]['b'][1]", {"k": {"a": [{"b": [1, 2]}]}}, lambda f, s: s["k"]["a"][0]["b"].__setitem__(1, 7)),
    ("item", "def f(x): return x * k['a']", {"k": {"a": 1, "b": 2}}, lambda f, s: s["k"].update(a=2)),
    ("missing_item", "def f(x): return x * k.get('c', 1)", {"k": {"a": 1}}, lambda f, s: s["k"].update(c=2)),
    ("key_in", "def f(x): return x if 'c' in k else -x", {"k": {"a": 1}}, lambda f, s: s["k"].update(c=2)),
    ("order_of_keys", "def f(x): return x * int(''.join(str(v) for v in k.values()))", {"k": {"a": 1, "b": 2}},
     lambda f, s: s["k"].update(a=s["k"].pop("a"))),
    ("exchanged_list", "def f(x): return x * k[0]", {"k": [1]}, lambda f, s: s.update(k=[2])),
    ("list_becomes_tuple", "def f(x): return x * (2 if isinstance(k, list) else 3)", {"k": [1]}, lambda f, s: s.update(k=(1,))),
    ("attribute", "def f(x): return x * k.rate", {"k": Config()}, lambda f, s: setattr(s["k"], "rate", 2.0)),
    ("attribute_of_the_class", "def f(x): return x * k.rate", {"k": SimpleNamespace(rate=2)}, lambda f, s: setattr(s["k"], "rate", 3)),
    ("list_in_an_attribute", "def f(x): return x * k.names[0]", {"k": Config(names=[1])}, lambda f, s: s["k"].names.__setitem__(0, 2)),
    ("helper", "def f(x): return k(x)", {"k": other}, lambda f, s: s.update(k=lambda x: x * 4)),
    ("builtin", "def f(x): return x * abs(-2)", {}, lambda f, s: s.update(abs=lambda v: 5)),
    ("function_of_a_module", "def f(x): return m.relu(x)", {"m": None}, lambda f, s: setattr(s["m"], "relu", torch.tanh)),
    ("function_of_the_library", "def f(x): return torch.relu(x)", {"torch": None}, lambda f, s: s.update(torch=SimpleNamespace(relu=torch.tanh))),
    ("closure", "def make(k):\n  def inner(x): return x * k\n  return inner\nf = make(2)", {}, lambda f, s: setattr(f.__closure__[0], "cell_contents", 3)),
    ("code", "def f(x): return x * 2", {}, lambda f, s: setattr(f, "__code__", other.__code__)),
    ("code_of_a_helper", "def g(x): return x * 2\ndef f(x): return g(x)", {}, lambda f, s: setattr(s["g"], "__code__", other.__code__)),
    ("defaults", "def f(x, k=2): return x * k", {}, lambda f, s: setattr(f, "__defaults__", (3,))),
    ("defaults_of_keywords", "def f(x, *, k=2): return x * k", {}, lambda f, s: f.__kwdefaults__.update(k=3)),
    ("mutable_default", "def f(x, k=[2]): return x * k[0]", {}, lambda f, s: f.__defaults__[0].__setitem__(0, 3)),
    ("tensor", "def f(x): return x * w", {"w": torch.ones(2)}, lambda f, s: s.update(w=torch.zeros(2))),
    ("tensor_in_a_list", "def f(x): return x * w[0]", {"w": [torch.ones(2)]}, lambda f, s: s["w"].__setitem__(0, torch.zeros(2))),
    ("nan", "def f(x): return x * k", {"k": math.nan}, lambda f, s: s.update(k=1.0)),
    ("partial", "def f(x): return k(x)", {"k": functools.partial(torch.mul, other=2)}, lambda f, s: s["k"].keywords.update(other=3)),
    ("callable_object", "class C:\n  def __call__(self, x): return x * 2\nk = C()\ndef f(x): return k(x)", {},
     lambda f, s: setattr(s["C"], "__call__", lambda self, x: x * 3)),
    ("method", "class C:\n  def m(self, x): return x * 2\nk = C()\ndef f(x): return k.m(x)", {}, lambda f, s: setattr(s["C"], "m", lambda self, x: x * 3)),
    ("method_of_an_instance", "class C:\n  def m(self, x): return x * 2\nk = C()\ndef f(x): return k.m(x)", {}, lambda f, s: setattr(s["k"], "m", lambda x: x * 3)),
    ("method_of_a_base", "class B:\n  def m(self, x): return x * 2\nclass C(B): pass\nk = C()\ndef f(x): return k.m(x)", {},
     lambda f, s: setattr(s["C"], "m", lambda self, x: x * 3)),
    ("bases", "class A:\n  n = 2\nclass B:\n  n = 3\nclass C(A): pass\nk = C()\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["C"], "__bases__", (s["B"],))),
    ("class_of_an_object", "class A:\n  n = 2\nclass B:\n  n = 3\nk = A()\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["k"], "__class__", s["B"])),
    ("property_over_an_attribute", "class C: pass\nk = C()\nk.n = 2\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["C"], "n", property(lambda self: 3))),
    ("attribute_over_a_class", "class C:\n  n = 2\nk = C()\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["k"], "n", 3)),
    ("getter_of_a_property", "class C:\n  @property\n  def n(self): return 2\nk = C()\ndef f(x): return x * k.n", {},
     lambda f, s: setattr(s["C"].n.fget, "__code__", (lambda self: 3).__code__)),
    ("what_a_property_reads", "class C:\n  m = 2\n  @property\n  def n(self): return self.m\nk = C()\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["k"], "m", 3)),
    ("slot", "class C:\n  __slots__ = ('n',)\nk = C()\nk.n = 2\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["k"], "n", 3)),
    ("static_method", "class C:\n  @staticmethod\n  def m(x): return x * 2\ndef f(x): return C.m(x)", {}, lambda f, s: setattr(s["C"], "m", staticmethod(lambda x: x * 3))),
    ("class_method", "class C:\n  n = 2\n  @classmethod\n  def m(cls, x): return x * cls.n\ndef f(x): return C.m(x)", {}, lambda f, s: setattr(s["C"], "n", 3)),
    ("getattribute", "class C:\n  n = 2\nk = C()\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["C"], "__getattribute__", lambda self, name: 3)),
    ("getattr", "class C: pass\nk = C()\ndef f(x): return x * getattr(k, 'n', 2)", {}, lambda f, s: setattr(s["C"], "__getattr__", lambda self, name: 3)),
    ("missing_attribute", "class C: pass\nk = C()\ndef f(x): return x * getattr(k, 'n', 2)", {}, lambda f, s: setattr(s["k"], "n", 3)),
    ("dict_of_an_object", "class C: pass\nk = C()\nk.n = 2\ndef f(x): return x * k.n", {}, lambda f, s: setattr(s["k"], "__dict__", {"n": 3})),
    ("truth_of_an_object", "class C: pass\nk = C()\ndef f(x): return x if k else -x", {}, lambda f, s: setattr(s["C"], "__bool__", lambda self: False)),
    ("length_of_an_object", "class C: pass\nk = C()\ndef f(x): return x if k else -x", {}, lambda f, s: setattr(s["C"], "__len__", lambda self: 0)),
    ("equality_of_an_object", "class C: pass\nk = C()\ndef f(x): return x if k == 1 else -x", {}, lambda f, s: setattr(s["C"], "__eq__", lambda self, o: True)),
    ("super", "class A:\n  def m(self, x): return x * 2\nclass B(A):\n  def m(self, x): return super().m(x)\nk = B()\ndef f(x): return k.m(x)", {},
     lambda f, s: setattr(s["A"], "m", lambda self, x: x * 3)),
    ("initialiser", "class C:\n  def __init__(self): self.n = 2\ndef f(x): return x * C().n", {}, lambda f, s: setattr(s["C"], "__init__", lambda self: setattr(self, "n", 3))),
    ("attribute_of_a_tensor", "def f(x): return x * w.tag", {"w": None}, lambda f, s: setattr(s["w"], "tag", 3)),
    ("method_of_a_tensor", "def f(x): return x * w.sum()", {"w": torch.ones(2)}, lambda f, s: setattr(s["w"], "sum", lambda: 3)),
    ("enumeration", "def f(x): return x if k is E.A else -x", {"E": enum.Enum("E", "A B"), "k": None}, lambda f, s: s.update(k=s["E"].B)),
    ("ordered", "def f(x): return x * int(''.join(map(str, k.values())))", {"k": OrderedDict(a=1, b=2)}, lambda f, s: s["k"].move_to_end("a")),
]  # fmt: skip


@pytest.mark.parametrize("row", STATE, ids=lambda row: row[0])
def test_a_change_of_state_is_seen(row: Any) -> None:
    name, text, names, change = row
    names = dict(names)
    if name == "function_of_a_module":
        names["m"] = ModuleType("m")
        names["m"].relu = torch.relu
    if name == "function_of_the_library":
        names["torch"] = torch
    if name == "attribute_of_a_tensor":
        names["w"] = torch.ones(2)
        names["w"].tag = 2
    if name == "enumeration":
        names["k"] = names["E"].A
    f = defined(text, **names)
    scope = f.__globals__
    checked = Checked(f, X)
    before = f(X).tolist()
    assert checked.holds()
    change(f, scope)
    try:
        after = f(X).tolist()
    except NameError:
        after = None
    if name != "nan":
        assert after != before or name in ("type_of_a_global", "integer_to_float"), (
            "the change must be seen in the result"
        )
    assert not checked.holds()


def test_what_is_not_read_may_change() -> None:
    f = defined("def f(x): return x * k['a'] + c.rate", k={"a": 1, "b": 2}, c=Config(), unread=3)
    checked = Checked(f, X)
    f.__globals__["unread"] = 4
    f.__globals__["k"]["b"] = 7
    f.__globals__["c"].names = ["other"]
    f.__globals__["c"].rate = float("1.0")  # another object of the same value
    assert checked.holds()


# ---- modules ----
class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.head = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5), nn.Conv1d(1, 1, 1, padding="same"))
        self.scale = 2.0
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x) * self.scale
        return self.head[2](self.head[1](self.head[0](x)).unsqueeze(1)) + self.weight + self.shift


MODULE_CHANGES: dict[str, Callable[[Net], Any]] = {
    "training": lambda net: net.eval(),
    "training_of_a_layer": lambda net: net.head[0].eval(),
    "attribute": lambda net: setattr(net, "scale", 3.0),
    "parameter": lambda net: setattr(net, "weight", nn.Parameter(torch.zeros(2))),
    "parameter_of_a_layer": lambda net: setattr(net.layers[1], "weight", nn.Parameter(torch.zeros(2, 2))),
    "no_bias": lambda net: setattr(net.layers[1], "bias", None),
    "buffer": lambda net: setattr(net, "shift", torch.ones(2)),
    "running_mean": lambda net: setattr(net.head[0], "running_mean", torch.ones(2)),
    "layer": lambda net: net.layers.__setitem__(1, nn.Linear(2, 2)),
    "more_layers": lambda net: net.layers.append(nn.Linear(2, 2)),
    "order_of_layers": lambda net: net.layers._modules.update(
        {"0": net.layers._modules["1"], "1": net.layers._modules["0"]}
    ),
    "probability": lambda net: setattr(net.head[1], "p", 0.1),
    "momentum": lambda net: setattr(net.head[0], "momentum", 0.3),
    "stride": lambda net: setattr(net.head[2], "stride", (2,)),
    "hook": lambda net: net.layers[0].register_forward_hook(lambda m, a, r: r * 2),
    "pre_hook": lambda net: net.register_forward_pre_hook(lambda m, a: (a[0] * 2,)),
    "backward_hook": lambda net: net.layers[2].register_full_backward_hook(lambda m, i, o: None),
    "hooks_that_are_another_dictionary": lambda net: setattr(net.layers[0], "_forward_hooks", OrderedDict()),
    "hook_in_the_dictionary": lambda net: net.head[0]._backward_hooks.update({0: len}),
    "other_parameters": lambda net: setattr(net.layers[0], "_parameters", dict(net.layers[0]._parameters)),
    "no_flag": lambda net: net.layers[0].__dict__.pop("training"),
    "attributes_that_are_another_dictionary": lambda net: setattr(
        net.head[1], "__dict__", {**vars(net.head[1]), "training": False}
    ),
    "forward_of_a_class": lambda net: setattr(type(net), "forward", Net.forward.__get__(net)),
    "parameter_becomes_a_buffer": lambda net: net.layers[0]._parameters.pop("bias"),
    "forward_of_an_instance": lambda net: setattr(net.layers[0], "forward", lambda x: x),
    "class_of_a_layer": lambda net: setattr(net.layers[0], "__class__", nn.Identity),
    "layer_becomes_none": lambda net: net.head._modules.update({"1": None}),
    "parametrization": lambda net: nn.utils.parametrize.register_parametrization(
        net.layers[0], "weight", nn.Identity()
    ),
}


@pytest.mark.parametrize("name", MODULE_CHANGES)
def test_a_change_of_a_module_is_seen(name: str) -> None:
    net = type("Own", (Net,), {"forward": Net.forward})()
    checked = Checked(net, torch.ones(4, 2))
    net(torch.ones(4, 2))  # a step of the running statistics is no change
    assert checked.holds()
    MODULE_CHANGES[name](net)
    assert not checked.holds()


@pytest.mark.parametrize("place", range(3))
def test_a_layer_that_stands_in_several_places_is_seen_in_each(place: int) -> None:
    first, second = nn.Tanh(), nn.Linear(2, 2)
    net = nn.Sequential(first, first, second)
    checked = Checked(net, torch.ones(4, 2))
    net[place] = first if place == 2 else second
    assert not checked.holds()


def test_a_function_that_layers_call_may_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.ReLU()
    compiled = torch.compile(layer)
    x = torch.tensor([-1.0, 2.0])
    for _ in range(2):
        assert compiled(x).tolist() == [0, 2]
    with monkeypatch.context() as patch:
        patch.setattr(F, "relu", lambda x, inplace=False: x * 10)
        for _ in range(2):
            assert compiled(x).tolist() == [-10, 20]
    assert compiled(x).tolist() == [0, 2]


def test_values_of_parameters_may_change() -> None:
    net = Net()
    checked = Checked(net, torch.ones(4, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1)
    net.load_state_dict(net.state_dict())
    assert checked.holds()


def test_hooks_of_all_modules_are_seen() -> None:
    checked = Checked(Net(), torch.ones(4, 2))
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, r: None)
    try:
        assert not checked.holds()
    finally:
        handle.remove()
    assert checked.holds()


def test_a_layer_that_somebody_patches_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked(Net(), torch.ones(4, 2))
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x)
    assert not checked.holds()


LAYERS: list[tuple[Callable[[], nn.Module], tuple[int, ...]]] = [
    (lambda: nn.Linear(4, 3), (2, 4)),
    (lambda: nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"), (1, 2, 5, 5)),
    (lambda: nn.ConvTranspose1d(2, 2, 3), (1, 2, 5)),
    (lambda: nn.BatchNorm2d(2), (2, 2, 3, 3)),
    (lambda: nn.LayerNorm(4), (2, 4)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.InstanceNorm1d(2, track_running_stats=True), (2, 2, 3)),
    (lambda: nn.Dropout(0.5), (2, 4)),
    (lambda: nn.MaxPool2d(2), (1, 1, 4, 4)),
    (lambda: nn.AvgPool1d(2), (1, 1, 4)),
    (lambda: nn.AdaptiveAvgPool2d(2), (1, 1, 4, 4)),
    (lambda: nn.GELU(), (2, 4)),
    (lambda: nn.LeakyReLU(0.3), (2, 4)),
    (lambda: nn.PReLU(), (2, 4)),
    (lambda: nn.Softmax(-1), (2, 4)),
    (lambda: nn.Flatten(), (2, 2, 2)),
    (lambda: nn.Upsample(scale_factor=2), (1, 1, 2, 2)),
    (lambda: nn.ReflectionPad1d(1), (1, 1, 4)),
    (lambda: nn.LSTM(4, 3, 2), (2, 1, 4)),
    (lambda: nn.GRU(4, 3, bidirectional=True), (2, 1, 4)),
    (lambda: nn.RNN(4, 3), (2, 1, 4)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8), (3, 2, 4)),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), (3, 2, 4)),
    (lambda: nn.PixelShuffle(2), (1, 4, 2, 2)),
    (lambda: nn.Unfold(2), (1, 1, 3, 3)),
    (lambda: nn.RMSNorm(4), (2, 4)),
]


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_every_attribute_that_a_layer_reads_is_guarded(number: int) -> None:
    """The guards of a layer come from the names in its code; here its attributes are watched while it runs."""
    make, shape = LAYERS[number]
    layer = make()
    checked = Checked(layer, torch.ones(shape))
    guarded = {str(guard.source) for guard in checked.verdict.guards}
    read: set[str] = set()
    base = type(layer)

    class Watched(base):  # type: ignore[misc, valid-type]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    layer.__class__ = Watched
    layer(torch.ones(shape))
    own = {name for name in read if name in vars(layer) and not name.startswith(("_load", "_state"))}
    ignored = {"_non_persistent_buffers_set", "_is_full_backward_hook"}
    missing = {name for name in own - ignored if f"function.{name}" not in guarded}
    assert not missing


# ---- arguments ----
def test_arguments_are_guarded_by_structure() -> None:
    f = defined("def f(batch, k=1): return batch['x'][0] * batch['n'] * k")
    checked = Checked(f, {"x": [X], "n": 2})
    assert checked.holds({"x": [X + 1], "n": 2})
    assert not checked.holds({"x": [X], "n": 3})
    assert not checked.holds({"x": [X], "n": 2.0})
    assert not checked.holds({"x": (X,), "n": 2})
    assert not checked.holds({"x": [2.0], "n": 2})
    assert not checked.holds({"x": [X], "n": 2}, 1)
    assert not checked.check(f, (), {"batch": {"x": [X], "n": 2}})


def test_objects_as_arguments_are_guarded_by_what_is_read() -> None:
    f = defined("def f(x, c): return x * c.rate")
    checked = Checked(f, X, Config(2.0))
    assert checked.holds(X, Config(2.0, ["unread"]))
    assert not checked.holds(X, Config(3.0))
    assert not checked.holds(X, SimpleNamespace(rate=2.0))


def test_functions_and_modules_as_arguments_are_guarded_by_identity() -> None:
    f = defined("def f(g, x): return g(x)")
    checked = Checked(f, torch.relu, X)
    assert not checked.holds(torch.tanh, X)
    layer = nn.Linear(2, 2)
    checked = Checked(f, layer, X)
    assert checked.holds(layer, X + 1)
    assert not checked.holds(nn.Linear(2, 2), X)


def test_checks_run_no_code_of_the_user() -> None:
    class Loud:
        def __eq__(self, o: object) -> bool:
            raise AssertionError("asked")

        __hash__ = None  # type: ignore[assignment]

        def __bool__(self) -> bool:
            raise AssertionError("asked")

        def __len__(self) -> int:
            raise AssertionError("asked")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("asked")

    f = defined("def f(x): return x * k * c.rate * d['a'] * len(e)", k=2, c=Config(), d={"a": 1}, e=[1])
    for name in "kcde":
        checked = Checked(f, X)
        before = f.__globals__[name]
        f.__globals__[name] = Loud()
        assert not checked.holds()
        f.__globals__[name] = before
    assert not Checked(f, X).check(f, (Loud(),), {})


# ---- tensors ----
def test_tensor_guards() -> None:
    where = Source("item", ARGS, 0)
    x = torch.ones(4, 3)
    check = compile_guards([tensor_guard(where, x)])

    def holds(tensor: Any) -> bool:
        return check(None, (tensor,), {})

    assert holds(torch.zeros(4, 3))
    assert not holds(torch.ones(4, 4))
    assert not holds(torch.ones(12))
    assert not holds(torch.ones(3, 4).t())
    assert not holds(torch.ones(4, 3, dtype=torch.float64))
    assert not holds(torch.ones(4, 3, requires_grad=True))
    assert not holds(nn.Parameter(torch.ones(4, 3), requires_grad=False))
    assert not holds(torch.ones(4, 3).as_subclass(type("Sub", (torch.Tensor,), {})))
    assert not holds(3.0)
    assert not check(None, (), {})
    leaf = compile_guards([tensor_guard(where, torch.ones(2, requires_grad=True))])
    assert leaf(None, (torch.zeros(2, requires_grad=True),), {})
    assert not leaf(None, (torch.zeros(2, requires_grad=True) * 2,), {})
    inner = compile_guards([tensor_guard(where, torch.ones(2, requires_grad=True) * 2)])
    assert inner(None, (torch.zeros(2, requires_grad=True) + 1,), {})
    assert not inner(None, (torch.zeros(2, requires_grad=True),), {})


def test_tensor_guards_with_sizes_that_change() -> None:
    where = Source("item", ARGS, 0)
    check = compile_guards([tensor_guard(where, torch.ones(4, 3), dynamic=[0])])
    assert check(None, (torch.ones(9, 3),), {})
    assert not check(None, (torch.ones(9, 4),), {})
    assert not check(None, (torch.ones(1, 3),), {})
    assert not check(None, (torch.ones(0, 3),), {})
    assert not check(None, (torch.ones(3, 9).t(),), {})
    with pytest.raises(ValueError, match="contiguous"):
        tensor_guard(where, torch.ones(3, 4).t(), dynamic=[0])
    with pytest.raises(ValueError, match="from 2"):
        tensor_guard(where, torch.ones(1, 4), dynamic=[0])


def test_alias_guards() -> None:
    first, second = Source("item", ARGS, 0), Source("item", ARGS, 1)
    a, b = torch.ones(4), torch.ones(4)
    apart = compile_guards([alias_guard([(first, a), (second, b)])])
    assert apart(None, (b, a), {})
    assert apart(None, (a[:2], a[2:]), {})
    assert not apart(None, (a, a), {})
    assert not apart(None, (a[:3], a[2:]), {})
    same_one = compile_guards([alias_guard([(first, a), (second, a)])])
    assert same_one(None, (b, b), {})
    assert not same_one(None, (a, a[:]), {})
    assert not same_one(None, (a, b), {})


# ---- words ----
def test_guards_in_words() -> None:
    net = Net()
    f = defined("def f(x): return net(x) * cfg.rate + t['a'][0]", net=net, cfg=Config(), t={"a": [1]})
    guards = analyse(f, (torch.ones(4, 2),), {}).guards
    words = {str(guard) for guard in guards}
    assert {"cfg.rate == 1.0", "t['a'][0] == 1", "net.layers[1].training == True", "type(args[0]) is Tensor"} <= words
    net.layers[1].eval()
    assert why_not(guards, f, (torch.ones(4, 2),), {}) == "no longer true: net.layers[1].training == True"


def test_sources_are_read_again() -> None:
    weight = torch.ones(2)
    f = defined("def f(x, *, w=None): return x * k['w'] * w", k={"w": weight})
    verdict = analyse(f, (X,), {"w": X})
    ((source, tensor),) = verdict.tensors
    assert tensor is weight
    assert source.read(f, (X,), {"w": X}) is weight
    assert (FUNCTION.root, KWARGS.root, constant(1, "one").root, source.root) == (
        "function",
        "kwargs",
        "constant",
        "function",
    )
    assert isinstance(verdict.guards[0], Guard)


def test_tensors_are_listed_once_with_their_places() -> None:
    net = Net()
    verdict = analyse(net, (torch.ones(4, 2),), {})
    assert {id(tensor) for _, tensor in verdict.tensors} >= {id(p) for p in net.parameters()}
    assert len(verdict.tensors) == len({id(tensor) for _, tensor in verdict.tensors})
    for source, tensor in verdict.tensors:
        assert source.read(net, (torch.ones(4, 2),), {}) is tensor


# ---- random programs over Python's state ----
KINDS = ("int", "float", "bool", "none", "str")


def leaves() -> st.SearchStrategy[Any]:
    floats = st.sampled_from([0.0, -0.0, 1.0, 2.5, math.inf, math.nan])
    return st.one_of(st.integers(-3, 3), floats, st.booleans(), st.none(), st.sampled_from(["", "a", "b"]))


def trees() -> st.SearchStrategy[Any]:
    def several(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        keys = st.sampled_from(["a", "b", "c"])
        objects = st.builds(lambda rate, names: ("object", rate, names), inner, inner)
        return st.one_of(
            st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(keys, inner, max_size=3), objects
        )

    return st.recursive(leaves(), several, max_leaves=6)


def built(tree: Any) -> Any:
    """Make fresh objects of a description, so that changing them changes nothing else."""
    if isinstance(tree, tuple) and tree[:1] == ("object",):
        return Config(built(tree[1]), built(tree[2]))
    if isinstance(tree, list):
        return [built(one) for one in tree]
    if isinstance(tree, tuple):
        return tuple(built(one) for one in tree)
    return {key: built(one) for key, one in tree.items()} if isinstance(tree, dict) else tree


def paths(value: Any, text: str) -> list[tuple[str, Any]]:
    """Return expressions for all places inside a value."""
    found = [(text, value)]
    if isinstance(value, (list, tuple)):
        for k, one in enumerate(value):
            found += paths(one, f"{text}[{k}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            found += paths(one, f"{text}[{key!r}]")
    elif isinstance(value, Config):
        found += paths(value.rate, f"{text}.rate") + paths(value.names, f"{text}.names")
    return found


READS = (
    "({p})",
    "(1 if {p} else 2)",
    "(1 if {p} is None else 2)",
    "(isinstance({p}, (int, list)), isinstance({p}, float))",
    "[v for v in {p}] if isinstance({p}, (list, tuple)) else 0",
    "len({p}) if isinstance({p}, (list, dict, tuple, str)) else 0",
    "list({p}.items()) if isinstance({p}, dict) else 0",
    "{p}.get('a', 7) if isinstance({p}, dict) else 0",
    "('b' in {p}) if isinstance({p}, dict) else 0",
    'f"{{{p}}}" if isinstance({p}, (int, float, str)) else 0',
    "({p} + {p}) if isinstance({p}, (int, float)) else 0",
    "getattr({p}, 'rate', 5) if not isinstance({p}, (int, float, str)) else 0",
    "sorted({p}) if isinstance({p}, dict) else 0",
    "({p} == 1, {p} == 0)",
    "helper({p})",
    "(lambda v=1: ({p}, v))()",
    "[k for k in {p}] if isinstance({p}, dict) else 0",
    "{p}[:1] if isinstance({p}, list) else 0",
)
PLACES = ("global", "closure", "default", "keyword_default", "attribute", "module", "argument")
PROGRAM = """
def helper(v):
    return (v, 1) if isinstance(v, (int, float, str, list)) else 3
def make(closed):
    def f(x, given=None, default=DEFAULT, *, keyword=KEYWORD):
        if flags.rate:
            x = x * 2
        return x, {reads}
    return f
f = make(CLOSED)
"""


def shown(value: Any) -> Any:
    """Return a result in a form that is equal exactly if nobody can tell two results apart."""
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.tolist()))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(shown(one) for one in value))
    if isinstance(value, dict):
        return ("dict", tuple((shown(key), shown(one)) for key, one in value.items()))
    if isinstance(value, Config):
        return ("Config", id(value))  # an object of the user's is returned as it is
    return strict_key(value)


class Holder(nn.Module):
    held: Any


def mutate(data: Any, value: Any) -> bool:
    """Change something inside a value in place; tell whether that was possible."""
    inside = [one for _, one in paths(value, "") if isinstance(one, (list, dict, Config))]
    if not inside:
        return False
    one = data.draw(st.sampled_from(inside))
    new = built(data.draw(trees()))
    if isinstance(one, Config):
        setattr(one, data.draw(st.sampled_from(["rate", "names"])), new)
    elif isinstance(one, list):
        action = data.draw(st.sampled_from(["set", "append", "pop", "reverse"]))
        if action == "append":
            one.append(new)
        elif action == "reverse":
            one.reverse()
        elif one:
            one.__setitem__(0, new) if action == "set" else one.pop()
    else:
        action = data.draw(st.sampled_from(["set", "pop", "order"]))
        key = data.draw(st.sampled_from(["a", "b", "c"]))
        if action == "set":
            one[key] = new
        elif key in one:
            last = one.pop(key)
            if action == "order":
                one[key] = last
    return True


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whenever_the_result_would_differ_a_guard_fails(data: Any) -> None:
    state = {name: built(data.draw(trees())) for name in ("G", "CLOSED", "DEFAULT", "KEYWORD", "GIVEN")}
    names = {"G": "G", "CLOSED": "closed", "DEFAULT": "default", "KEYWORD": "keyword", "GIVEN": "given"}
    module, flags = Holder(), Config(data.draw(st.booleans()))
    module.held = built(data.draw(trees()))
    reads = []
    for _ in range(data.draw(st.integers(1, 3))):
        kind = data.draw(st.sampled_from([*state, "module"]))
        found = paths(module.held, "module.held") if kind == "module" else paths(state[kind], names[kind])
        path, _ = data.draw(st.sampled_from(found))
        reads.append(data.draw(st.sampled_from(READS)).replace("{p}", path).replace("{{", "{").replace("}}", "}"))
    scope = {**state, "module": module, "flags": flags}
    f = defined(PROGRAM.replace("{reads}", ", ".join(reads)), **scope)
    args = X, state["GIVEN"]
    verdict = analyse(f, args, {})
    if not verdict.pure:
        assert "the proof itself failed" not in verdict.reason
        return
    check = compile_guards(verdict.guards)
    before = shown(f(*args))
    assert check(f, args, {}), why_not(verdict.guards, f, args, {})
    for _ in range(3):
        kind = data.draw(st.sampled_from(["G", "CLOSED", "DEFAULT", "KEYWORD", "GIVEN", "module", "flags", "training"]))
        if kind == "flags":
            flags.rate = data.draw(st.sampled_from([True, False, 1, 0, None]))
        elif kind == "training":
            module.train(not module.training)
        elif kind == "module":
            if not mutate(data, module.held):
                module.held = built(data.draw(trees()))
        elif not mutate(data, state[kind]):
            new = built(data.draw(trees()))
            if kind == "G":
                f.__globals__["G"] = state["G"] = new
            elif kind == "CLOSED":
                index = f.__code__.co_freevars.index("closed") if "closed" in f.__code__.co_freevars else None
                if index is not None:
                    f.__closure__[index].cell_contents = state["CLOSED"] = new
            elif kind == "DEFAULT":
                f.__defaults__ = (None, new)
                state["DEFAULT"] = new
            elif kind == "KEYWORD":
                f.__kwdefaults__["keyword"] = state["KEYWORD"] = new
            else:
                state["GIVEN"] = new
                args = X, new
        held = check(f, args, {})
        try:
            after = shown(f(*args))
        except (TypeError, LookupError, AttributeError):
            after = "raised"
        assert after == before or not held, f"{reads}: {before} became {after}"
