"""Programs about nn.Module. Each gets the library and returns text; torch's text is the expected one."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tests import oracle

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def said(action: Callable[[], Any]) -> str:
    """Return what an action gives as a text, or the error it raises."""
    return oracle.said(action, words=oracle.before_the_hint, ignore_warnings=False)


def net(torch: Any) -> Any:
    nn = torch.nn

    class Scale(nn.Module):
        def __init__(self, n, value=2.0):
            super().__init__()
            self.weight = nn.Parameter(torch.full((n,), value))
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("scratch", torch.ones(2), persistent=False)
            self.register_parameter("bias", None)

        def forward(self, x, gain=1.0):
            return x * self.weight * gain

        def extra_repr(self):
            return f"n={self.weight.shape[0]}"

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Scale(3)
            self.rest = nn.Sequential(Scale(3, 0.5), nn.Sequential(OrderedDict(a=Scale(3), b=Scale(3))))
            self.tied = self.first
            self.empty = None

        def forward(self, x):
            return self.rest(self.first(x))

    return Net()


@program
def traversal(torch):
    m = net(torch)
    yield [n for n, _ in m.named_parameters()]
    yield [n for n, _ in m.named_parameters(remove_duplicate=False)]
    yield [n for n, _ in m.named_parameters(prefix="p", recurse=False)]
    yield [n for n, _ in m.named_buffers()]
    yield [n for n, _ in m.named_modules()]
    yield [n for n, _ in m.named_modules(remove_duplicate=False)]
    yield [n for n, _ in m.named_children()]
    yield len(list(m.parameters())), len(list(m.buffers())), len(list(m.modules())), len(list(m.children()))
    yield m
    yield sorted(n for n in dir(m) if not n.startswith("_") and n not in ("T_destination", "ipu", "mtia", "xpu"))


@program
def state(torch):
    m = net(torch)
    d = m.state_dict()
    yield list(d)
    yield type(d).__name__, [(k, v) for k, v in d._metadata.items()]
    yield {k: v.requires_grad for k, v in d.items()}
    yield m.state_dict(keep_vars=True)["first.weight"] is m.first.weight
    yield list(m.state_dict(prefix="q."))
    d["first.weight"] = torch.tensor([7.0, 8.0, 9.0])
    yield m.load_state_dict(d)
    yield m.first.weight
    yield said(lambda: m.load_state_dict({"first.weight": torch.ones(4), "other": torch.ones(1)}))
    yield said(
        lambda: m.load_state_dict(
            {"first.weight": torch.ones(3), "other": torch.ones(1), "rest.9.weight": 1}, strict=False
        )
    )
    yield said(lambda: m.load_state_dict({"first.weight": 3}, strict=False))
    yield said(lambda: m.load_state_dict(3))
    new = {k: v.clone() for k, v in m.state_dict().items()}
    yield m.load_state_dict(new, assign=True)
    yield m.first.weight.data_ptr() == new["first.weight"].data_ptr(), m.first.weight.requires_grad


@program
def state_hooks(torch):
    m = net(torch)
    log = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, d, prefix, meta: log.append(("post", len(d), prefix, meta)))
    m.rest._register_state_dict_hook(lambda mod, d, prefix, meta: log.append(("old", prefix)))
    m.register_load_state_dict_pre_hook(lambda mod, d, prefix, *a: log.append(("load", prefix, len(d))))
    m.rest.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    d = m.state_dict()
    del d["rest.0.weight"]
    yield said(lambda: m.load_state_dict(d))
    yield log

    class Extra(torch.nn.Module):
        def get_extra_state(self):
            return {"v": 3}

        def set_extra_state(self, state):
            self.got = state

    e = Extra()
    yield e.state_dict()
    e.load_state_dict({"_extra_state": 5})
    yield e.got
    yield said(lambda: e.load_state_dict({}))


@program
def assigning(torch):
    nn = torch.nn
    m = net(torch)
    yield said(lambda: setattr(m.first, "weight", torch.ones(3)))
    yield said(lambda: setattr(m.first, "weight", 3))
    yield said(lambda: setattr(m, "first", 3))
    yield said(lambda: setattr(m.first, "count", 3))
    yield said(lambda: setattr(m.first, "weight", None))
    yield m.first.weight
    m.first.weight = nn.Parameter(torch.ones(2))
    yield list(m.first._parameters)
    m.first.count = torch.ones(4)
    yield m.first.count
    m.plain = 3
    yield "plain" in m.__dict__
    m.plain = nn.Parameter(torch.ones(1))
    yield "plain" in m.__dict__, "plain" in m._parameters
    yield said(lambda: setattr(m, "plain", nn.Sequential()))
    yield "plain" in m._parameters, "plain" in m._modules
    del m.plain
    yield said(lambda: m.plain)
    yield said(lambda: delattr(m, "plain"))
    yield said(lambda: m.nothing)
    m.b = nn.Buffer(torch.ones(2), persistent=False)
    yield list(m._buffers), m._non_persistent_buffers_set, isinstance(m.b, nn.Buffer), type(m.b).__name__


@program
def registering(torch):
    nn = torch.nn
    m = net(torch)
    p = nn.Parameter(torch.ones(2))
    for name in ("a.b", "", "forward", 3):
        yield said(lambda name=name: m.register_parameter(name, p))
        yield said(lambda name=name: m.register_buffer(name, torch.ones(1)))
        yield said(lambda name=name: m.add_module(name, nn.Sequential()))
    yield said(lambda: m.register_parameter("q", torch.ones(2)))
    yield said(lambda: m.register_parameter("q", p * 2))
    yield said(lambda: m.register_buffer("q", 3))
    yield said(lambda: m.add_module("q", 3))
    yield said(lambda: m.register_module("first", None))
    yield [n for n, _ in m.named_children()]

    class Early(nn.Module):
        def __init__(self, what):
            self.x = what

    for what in (p, nn.Sequential(), torch.ones(1), 3):
        yield said(lambda what=what: type(Early(what)).__name__)
    yield said(lambda: nn.Module(3))
    yield said(lambda: nn.Module(a=3))
    yield said(lambda: nn.Module()(3))


@program
def by_path(torch):
    m = net(torch)
    yield m.get_submodule("rest.1.a") is m.rest[1].a, m.get_submodule("") is m
    yield said(lambda: m.get_submodule("rest.7"))
    yield said(lambda: m.get_submodule("first.weight"))
    yield m.get_parameter("rest.0.weight")
    yield said(lambda: m.get_parameter("rest.0.count"))
    yield said(lambda: m.get_parameter("rest.0.nope"))
    yield m.get_buffer("rest.0.count")
    yield said(lambda: m.get_buffer("rest.0.weight"))
    m.set_submodule("rest.1.a", torch.nn.Sequential())
    yield m.rest[1].a
    yield said(lambda: m.set_submodule("", torch.nn.Sequential()))
    yield said(lambda: m.set_submodule("rest.zz", torch.nn.Sequential(), strict=True))
    yield said(lambda: m.set_submodule("rest.1.a", 3))


@program
def modes(torch):
    m = net(torch)
    m.eval()
    yield [x.training for x in m.modules()]
    m.rest.train()
    yield [x.training for x in m.modules()]
    yield said(lambda: m.train(3))
    m.requires_grad_(False)
    yield [p.requires_grad for p in m.parameters()]
    m.requires_grad_()
    m(torch.ones(3)).sum().backward()
    m.zero_grad(set_to_none=False)
    yield [p.grad for p in m.parameters()]
    m.zero_grad()
    yield [p.grad for p in m.parameters()]
    names = []
    m.apply(lambda x: names.append(type(x).__name__))
    yield names


@program
def casting(torch):
    m = net(torch)
    kept = m.first.weight
    m.first.register_buffer("ints", torch.ones(2, dtype=torch.int64))
    m.double()
    yield m.first.weight.dtype, m.first.count.dtype, m.first.ints.dtype, m.first.weight is kept
    m.to(torch.bfloat16)
    yield m.first.weight
    m.to("cpu", torch.float32)
    m.to(torch.ones(1, dtype=torch.float64))
    yield m.first.weight.dtype
    yield said(lambda: m.to(torch.int64))
    m.half().float()
    m(torch.ones(3)).sum().backward()
    m.double()
    yield m.first.weight.grad.dtype
    yield m.type(torch.float32).first.ints.dtype


@program
def forward_hooks(torch):
    m = net(torch)
    log = []
    h = m.first.register_forward_hook(lambda mod, args, out: log.append(("after", len(args), out.tolist())))
    m.first.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    m.first.register_forward_pre_hook(
        lambda mod, args, kwargs: ((args[0] * 2,), {"gain": 10.0}), with_kwargs=True, prepend=True
    )
    m.first.register_forward_hook(
        lambda mod, args, kwargs, out: log.append(("kw", kwargs)) or out * 1, with_kwargs=True, prepend=True
    )
    yield m(torch.ones(3))
    yield log
    h.remove()
    log.clear()
    m(torch.ones(3))
    yield log
    m.first.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    yield said(lambda: m(torch.ones(3)))
    n = net(torch)
    n.first.register_forward_hook(lambda mod, args, out: log.append("always"), always_call=True)
    n.first.forward = lambda x: 1 / 0
    log.clear()
    yield said(lambda: n(torch.ones(3)))
    yield log


@program
def backward_hooks(torch):
    m = net(torch)
    log = []
    m.rest.register_full_backward_hook(
        lambda mod, gi, go: log.append(("full", [g.tolist() for g in gi], [g.tolist() for g in go]))
    )
    m.rest.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    x = torch.ones(3, requires_grad=True)
    m(x).sum().backward()
    yield x.grad
    yield log
    log.clear()
    m.rest.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10,))
    x.grad = None
    m(x).sum().backward()
    yield x.grad
    yield said(lambda: m.rest.register_backward_hook(lambda *a: None))
    n = net(torch)
    n.first.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n(torch.ones(3)).sum().backward()
    yield log[-1]
    k = net(torch)
    k.rest.register_full_backward_hook(lambda mod, gi, go: (1, 2, 3))
    yield said(lambda: k(x).sum().backward())
    old = net(torch)
    old.first.register_backward_hook(lambda mod, gi, go: log.append(len(gi)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old(x).sum().backward()
    yield log[-1]
    yield said(lambda: old.first.register_full_backward_hook(lambda *a: None))


@program
def global_hooks(torch):
    from_module = torch.nn.modules.module
    m = net(torch)
    log = []
    handles = [
        from_module.register_module_forward_pre_hook(lambda mod, args: log.append("pre " + type(mod).__name__)),
        from_module.register_module_forward_hook(lambda mod, args, out: log.append("post " + type(mod).__name__)),
        from_module.register_module_full_backward_hook(lambda mod, gi, go: log.append("back " + type(mod).__name__)),
        from_module.register_module_full_backward_pre_hook(lambda mod, go: log.append("before " + type(mod).__name__)),
    ]
    m(torch.ones(3, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    yield log
    count = len(log)
    m(torch.ones(3))
    yield len(log) == count
    log.clear()
    handles = [
        from_module.register_module_parameter_registration_hook(lambda mod, name, p: log.append(("p", name))),
        from_module.register_module_buffer_registration_hook(lambda mod, name, b: log.append(("b", name))),
        from_module.register_module_module_registration_hook(lambda mod, name, s: log.append(("m", name))),
    ]
    net(torch)
    for handle in handles:
        handle.remove()
    yield log


@program
def copies(torch):
    m = net(torch)
    c = copy.deepcopy(m)
    yield c.tied is c.first, c.first.weight is not m.first.weight
    yield c.first.weight
    c.first.weight.data.fill_(9.0)
    yield m.first.weight
    s = torch.nn.Sequential(torch.nn.Sequential(), torch.nn.ParameterList([torch.ones(2)]))
    s[1].note = "kept"
    p = pickle.loads(pickle.dumps(s))
    yield p
    yield p[1].note, p[1][0]


@program
def containers(torch):
    nn = torch.nn
    empty = lambda: nn.Sequential()  # noqa: E731 - short
    s = nn.Sequential(empty(), nn.ModuleList(), empty())
    yield s, len(s), s[-1] is s[2], s[:2]
    yield said(lambda: s[3]), said(lambda: s[-4])
    s.append(nn.ModuleDict()).insert(0, nn.ModuleList())
    yield s
    yield said(lambda: s.insert(9, empty())), said(lambda: s.insert(0, 3))
    del s[1]
    yield s, type(s.pop(0)).__name__
    yield s + nn.Sequential(nn.ModuleDict()), said(lambda: s + 3), s * 2, said(lambda: s * 0)
    ml = nn.ModuleList([empty(), empty(), nn.Sequential(empty()), nn.Sequential(empty()), nn.ModuleDict()])
    yield ml
    yield ml[1:3], len(ml), said(lambda: ml[9]), [n for n, _ in ml.named_modules()]
    ml += [nn.ModuleDict()]
    ml.insert(1, nn.ParameterList())
    ml[0] = nn.ModuleDict()
    del ml[2:4]
    yield ml, said(lambda: ml.extend(3)), said(lambda: ml.append(3)), said(lambda: nn.ModuleList([3]))
    yield said(lambda: ml(3)), nn.ModuleList()
    d = nn.ModuleDict({"x": empty(), "y": nn.ModuleList()})
    d.update([("z", empty())])
    yield d, list(d), "x" in d, len(d), list(d.keys()), type(d.pop("y")).__name__
    yield said(lambda: d.update(3)), said(lambda: d.update([(1, 2, 3)])), said(lambda: d["nope"])
    d.clear()
    yield d


@program
def parameter_containers(torch):
    nn = torch.nn
    pl = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(2, 3)), "text"])
    yield pl, len(pl), pl[-1], type(pl[0]).__name__, [n for n, _ in pl.named_parameters()]
    pl.append(torch.ones(1)).extend([torch.ones(3)])
    pl[0] = torch.zeros(5)
    yield pl, pl[1:3], said(lambda: pl[9]), said(lambda: pl(1)), said(lambda: pl.extend(3))
    pd = nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.zeros(3))})
    yield pd, list(pd), len(pd), "a" in pd, pd.get("zz"), pd.setdefault("c", torch.ones(1))
    yield (
        said(lambda: pd["zz"]),
        said(lambda: pd(1)),
        pd.popitem()[0],
        list(reversed(pd)),
    )
    yield pd | {"n": torch.ones(2)}, list(pd.copy()), list(pd.fromkeys(["q"], torch.ones(1)))
    pd.clear()
    yield pd, [n for n, _ in pd.named_parameters()]
    yield said(lambda: pd.__setitem__(3, 4))  # torch keeps the key, and cannot print it any more


@program
def functional_calls(torch):
    nn, call, stack = torch.nn, torch.func.functional_call, torch.func.stack_module_state

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))
            self.b = self.a
            self.register_buffer("c", torch.ones(1))
            self.inner = nn.Module()
            self.inner.w = nn.Parameter(torch.ones(1))

        def forward(self, x, scale=1.0):
            return (self.a + self.b * 10 + self.c * 100 + self.inner.w * 1000 + x) * scale

    m, x, zero, one = Tied(), torch.zeros(1), torch.zeros(1), torch.ones(1)
    yield call(m, {"a": zero}, x)
    yield call(m, {"a": zero}, (x,), {"scale": 2.0}, tie_weights=False)
    yield call(m, [{"inner.w": zero}, {"c": zero}], x)
    yield said(lambda: call(m, {"a": zero, "b": one}, x))
    yield said(lambda: call(m, {"a": zero, "nope": one}, x, strict=True))
    yield said(lambda: call(m, [{"a": zero}, {"a": one}], x))
    yield said(lambda: call(m, 3, x)), said(lambda: call(m, [3], x)), said(lambda: call(m, {"a": 3}, x))
    yield said(lambda: call(m, {"": x}, x)), said(lambda: call(m, {"q.w": x}, x))
    yield said(lambda: call(m, {"a": zero}, ("no", "no", "no")))
    yield m.a, m(x)
    parameters, buffers = stack([Tied(), Tied()])
    yield {k: (v.shape, v.requires_grad, v.is_leaf) for k, v in {**parameters, **buffers}.items()}
    yield torch.func.grad(lambda p: call(m, p, x).sum())({"a": torch.ones(1)})
    yield (
        said(lambda: stack([])),
        said(lambda: stack([Tied(), Tied().eval()])),
        said(lambda: stack([Tied(), nn.Module()])),
    )
    frozen = Tied().requires_grad_(False)
    yield said(lambda: stack([frozen, Tied()]))
