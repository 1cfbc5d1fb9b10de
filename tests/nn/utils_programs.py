"""Programs about nn.utils. Each gets the library and returns text; torch's text is the expected one."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

from tests.nn.module_programs import said

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def numbers(value: Any) -> Any:
    """Round what tensors hold, so that the last digits do not tell."""
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        digits = 6 if value.dtype.itemsize == 8 else 3
        values = [round(v, digits) + 0.0 for v in value.detach().double().reshape(-1).tolist()]
        return f"{str(value.dtype)[6:]} {tuple(value.shape)} {values}"
    return value


def trained(torch: Any, *shapes: Any, dtype: Any = None) -> Any:
    """Return parameters with gradients."""
    torch.manual_seed(0)
    made = [torch.nn.Parameter(torch.randn(s, dtype=dtype)) for s in shapes]
    for one in made:
        one.grad = torch.randn(one.shape, dtype=dtype)
    return made


def warned(action: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = said(action)
    return f"{[f'{w.category.__name__}: {w.message}' for w in seen]} {result}"


# ---- gradients ----
@program
def clipping(torch):
    utils = torch.nn.utils
    for norm in (2.0, 1, float("inf"), 3.0, 0.5):
        for dtype in (torch.float32, torch.float64):
            parameters = trained(torch, (3, 4), (5,), (), dtype=dtype)
            yield numbers([utils.clip_grad_norm_(parameters, 0.5, norm), *(p.grad for p in parameters)])
    one = trained(torch, (3,))[0]
    yield numbers(
        [utils.clip_grad_norm_(one, 100.0), one.grad, utils.get_total_norm([one.grad]), one.grad._version > 0]
    )
    yield numbers(utils.get_total_norm([]))
    yield numbers(utils.get_total_norm(torch.ones(2, 2), foreach=True))
    parameters = trained(torch, (3, 4), (5,))
    parameters[0].grad = None
    utils.clip_grad_value_(parameters, 0.3)
    yield numbers([p.grad for p in parameters if p.grad is not None])
    utils.clip_grad_value_(parameters[1], 0, foreach=False)
    yield numbers(parameters[1].grad)
    utils.clip_grads_with_norm_(parameters, 1.0, torch.tensor(4.0))
    mixed = [trained(torch, (3,), dtype=torch.float64)[0], *trained(torch, (2, 2))]
    yield numbers([utils.clip_grad_norm_(mixed, 0.1), *(p.grad for p in mixed)])
    half = trained(torch, (3, 4), dtype=torch.bfloat16)
    yield utils.clip_grad_norm_(half, 0.1).dtype
    turned = trained(torch, (3, 4))
    turned[0].grad = torch.arange(12.0).view(4, 3).t()
    yield numbers([utils.clip_grad_norm_(turned, 1.0), turned[0].grad])


@program
def clipping_what_is_not_finite(torch):
    utils = torch.nn.utils
    for bad in (float("nan"), float("inf")):
        parameter = torch.nn.Parameter(torch.zeros(3))
        parameter.grad = torch.tensor([1.0, bad, 2.0])
        yield said(lambda p=parameter: utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True))
        yield said(lambda p=parameter: utils.clip_grad_norm_([p], 1.0, 1.0, error_if_nonfinite=True))
        yield numbers([utils.clip_grad_norm_([parameter], 1.0), parameter.grad])
    yield warned(lambda: utils.clip_grad_norm_((p for p in ()), 1.0))
    yield warned(lambda: utils.clip_grad_norm_([], 1.0))
    yield warned(lambda: utils.clip_grad_norm(trained(torch, (1,)), 1.0) * 0)


@program
def vectors(torch):
    utils = torch.nn.utils
    parameters = trained(torch, (2, 3), (2,))
    vector = utils.parameters_to_vector(parameters)
    yield numbers(vector), vector.requires_grad, vector.grad_fn.name()
    utils.vector_to_parameters(torch.arange(8.0), parameters)
    yield numbers(parameters), [p.requires_grad for p in parameters]
    yield said(lambda: utils.vector_to_parameters([1.0], parameters))
    yield said(lambda: utils.parameters_to_vector([]))


@program
def other_helpers(torch):
    utils, nn = torch.nn.utils, torch.nn
    torch.manual_seed(3)
    linear = utils.skip_init(nn.Linear, 3, 2, bias=False)
    yield linear, linear.weight.shape, numbers(torch.rand(2))
    yield said(lambda: utils.skip_init(nn.ReLU))
    yield said(lambda: utils.skip_init(int))
    conv = utils.convert_conv2d_weight_memory_format(nn.Sequential(nn.Conv2d(3, 4, 2)), torch.channels_last)
    yield conv[0].weight.stride(), conv[0].weight.requires_grad
    module = nn.Linear(2, 1, bias=False)
    weights = {"weight": torch.ones(1, 2)}
    yield warned(lambda: numbers(utils.stateless.functional_call(module, weights, torch.ones(2))))
    yield sorted(utils.__all__), all(hasattr(utils, name) for name in utils.__all__)


# ---- parametrizations ----
def symmetric(torch: Any) -> Any:
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


def functions(torch: Any, **methods: Any) -> Any:
    return type("Made", (torch.nn.Module,), methods)()


@program
def registering(torch):
    parametrize = torch.nn.utils.parametrize
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 3)
    weight = layer.weight
    made = parametrize.register_parametrization(layer, "weight", symmetric(torch))
    yield made is layer, layer, type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
    yield list(layer.state_dict()), [n for n, _ in layer.named_parameters()]
    yield layer.parametrizations.weight.original is weight, numbers(layer.weight), layer.weight.requires_grad
    layer(torch.ones(3)).sum().backward()
    yield numbers(weight.grad), layer.weight is layer.weight
    with parametrize.cached():
        yield layer.weight is layer.weight
    layer.weight = torch.arange(9.0).view(3, 3)
    yield numbers([layer.weight, weight]), layer.parametrizations.weight.original is weight
    yield [parametrize.is_parametrized(layer, n) for n in ("weight", "bias", None)]
    yield said(lambda: pickle.dumps(layer)), numbers(copy.deepcopy(layer).weight), copy.deepcopy(layer)
    other = torch.nn.Linear(3, 3)
    parametrize.register_parametrization(other, "weight", symmetric(torch))
    yield other.load_state_dict(layer.state_dict()), numbers(other.weight), type(other) is type(layer)
    parametrize.register_parametrization(layer, "weight", functions(torch, forward=lambda self, x: 2 * x))
    yield layer, numbers(layer.weight), len(layer.parametrizations["weight"])
    yield said(lambda: setattr(layer, "weight", torch.ones(3, 3)))
    parametrize.remove_parametrizations(layer, "weight")
    yield layer, numbers(layer.weight), type(layer), layer.weight is weight, list(layer.state_dict())
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    yield numbers(other.weight), hasattr(other, "parametrizations")
    yield said(lambda: parametrize.remove_parametrizations(layer, "weight"))
    yield said(lambda: parametrize.register_parametrization(layer, "nothing", symmetric(torch)))


@program
def registering_what_is_wrong(torch):
    register = torch.nn.utils.parametrize.register_parametrization
    wrong = {
        "shape": {"forward": lambda self, x: x[0]},
        "dtype": {"forward": lambda self, x: x.double()},
        "nothing": {"forward": lambda self, x: None},
        "inverse": {"forward": lambda self, x: x, "right_inverse": lambda self, x: 1},
        "inverse_dtype": {"forward": lambda self, x: x, "right_inverse": lambda self, x: x.double()},
        "inverse_shape": {"forward": lambda self, x: x, "right_inverse": lambda self, x: x[0]},
        "inverse_list": {"forward": lambda self, x, y: x, "right_inverse": lambda self, x: [x, 1]},
        "not_implemented": {"forward": lambda self, x: x, "right_inverse": lambda self, x: NotImplemented.no},
    }
    for name, methods in wrong.items():
        layer = torch.nn.Linear(2, 3)
        yield name, said(lambda layer=layer, m=methods: register(layer, "weight", functions(torch, **m)))
        yield said(
            lambda layer=layer, m=methods: register(layer, "weight", functions(torch, **m), unsafe=True).weight.shape
        )
        layer = register(torch.nn.Linear(2, 3), "weight", functions(torch, forward=lambda self, x: x))
        yield name, said(lambda layer=layer, m=methods: register(layer, "weight", functions(torch, **m)))
    yield said(lambda: torch.nn.utils.parametrize.ParametrizationList([], torch.ones(2)))


@program
def of_several_tensors(torch):
    parametrize = torch.nn.utils.parametrize

    class Outer(torch.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0], z[0]

    torch.manual_seed(0)
    layer = parametrize.register_parametrization(torch.nn.Linear(3, 2), "weight", Outer())
    yield layer, list(layer.state_dict()), numbers(layer.weight)
    layer.weight = torch.ones(2, 3)
    yield numbers(layer.state_dict())
    yield said(lambda: parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False))
    other = parametrize.transfer_parametrizations_and_params(layer, torch.nn.Linear(3, 2))
    yield other, other.parametrizations.weight.original0 is layer.parametrizations.weight.original0
    parametrize.remove_parametrizations(layer, "weight")
    yield layer, type(layer.weight).__name__, list(layer.state_dict()), numbers(layer.weight)
    buffers = torch.nn.BatchNorm1d(2)
    parametrize.register_parametrization(buffers, "running_mean", functions(torch, forward=lambda self, x: x + 1))
    yield buffers, list(buffers.state_dict()), numbers(buffers.running_mean)
    parametrize.remove_parametrizations(buffers, "running_mean")
    yield list(buffers.state_dict()), type(buffers.running_mean).__name__


@program
def orthogonal(torch):
    apply = torch.nn.utils.parametrizations.orthogonal
    for rows, columns in ((3, 3), (4, 2), (2, 4)):
        for kind in (None, "matrix_exp", "cayley", "householder"):
            for trivial in (True, False):
                torch.manual_seed(0)
                layer = torch.nn.Linear(columns, rows, dtype=torch.float64)
                apply(layer, orthogonal_map=kind, use_trivialization=trivial)
                yield kind, trivial, layer, list(layer.state_dict())
                layer.weight.sin().sum().backward()
                yield numbers([layer.weight, layer.parametrizations.weight.original.grad])
                yield said(
                    lambda layer=layer: setattr(
                        layer, "weight", torch.nn.init.orthogonal_(torch.empty_like(layer.bias)[:0])
                    )
                )
                target = torch.linalg.qr(torch.arange(16.0, dtype=torch.float64).pow(2).sin().view(4, 4))[0][
                    :rows, :columns
                ]
                yield said(
                    lambda layer=layer, target=target: numbers((setattr(layer, "weight", target), layer.weight)[1])
                )
    yield said(lambda: apply(torch.nn.Linear(2, 2), "bias"))
    yield said(lambda: apply(torch.nn.Linear(2, 2), "none"))
    yield said(lambda: apply(torch.nn.Linear(2, 2), orthogonal_map="other"))
    layer = torch.nn.Linear(3, 2, dtype=torch.complex128)
    yield said(lambda: apply(layer, orthogonal_map="householder"))


@program
def weight_norms(torch):
    utils = torch.nn.utils
    x = torch.linspace(-1, 1, 3, dtype=torch.float64)
    for dim in (0, 1, None, -1):
        for how in (utils.parametrizations.weight_norm, utils.weight_norm):
            torch.manual_seed(0)
            layer = torch.nn.Linear(3, 2, dtype=torch.float64)
            yield warned(lambda how=how, layer=layer, dim=dim: how(layer, dim=dim))
            layer(x).sin().sum().backward()
            yield numbers([layer.weight, *layer.parameters(), *(p.grad for p in layer.parameters())])
            yield list(layer.state_dict()), layer.weight.requires_grad, layer.weight.grad_fn.name()
    utils.remove_weight_norm(layer)
    yield list(layer.state_dict()), layer, numbers(layer.weight)
    yield said(lambda: utils.remove_weight_norm(layer))
    yield said(lambda: utils.weight_norm(utils.weight_norm(torch.nn.Linear(2, 2))))
    yield said(lambda: utils.weight_norm(torch.nn.LazyLinear(2)))
    old = utils.weight_norm(torch.nn.Linear(3, 2))
    new = utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    yield new.load_state_dict(old.state_dict()), bool((new.weight == old.weight).all())
    conv = utils.parametrizations.weight_norm(torch.nn.Conv1d(2, 3, 2))
    yield conv, {n: p.shape for n, p in conv.named_parameters()}


@program
def spectral_norms(torch):
    utils = torch.nn.utils
    x = torch.linspace(-1, 1, 3, dtype=torch.float64)
    for how in (utils.parametrizations.spectral_norm, utils.spectral_norm):
        for steps in (1, 4):
            torch.manual_seed(0)
            layer = how(torch.nn.Linear(3, 4, dtype=torch.float64), n_power_iterations=steps)
            yield layer, list(layer.state_dict()), numbers(layer.state_dict())
            (layer(x) + layer(2 * x)).sin().sum().backward()
            yield numbers([*layer.state_dict().values(), *(p.grad for p in layer.parameters())])
            yield numbers(layer.eval()(x)), numbers(layer.state_dict()), layer.state_dict()._metadata
            yield said(lambda layer=layer: type(copy.deepcopy(layer)).__name__)
            yield said(lambda how=how: how(torch.nn.Linear(2, 2), n_power_iterations=0))
            yield said(lambda how=how: how(torch.nn.Linear(2, 2), "none"))
        conv = how(torch.nn.ConvTranspose2d(2, 3, 2))
        yield {n: b.shape for n, b in conv.named_buffers()}
    yield said(lambda: utils.spectral_norm(utils.spectral_norm(torch.nn.Linear(2, 2))))
    yield said(lambda: utils.spectral_norm(torch.nn.Linear(2, 2, bias=False), "bias"))
    utils.remove_spectral_norm(layer)
    yield layer, list(layer.state_dict()), numbers(layer.weight), layer.state_dict()._metadata
    yield said(lambda: utils.remove_spectral_norm(layer))
    yield said(lambda: utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2), dim=2))
    vector = utils.parametrizations.spectral_norm(torch.nn.LayerNorm(3))
    yield vector, numbers(vector.weight)
    old = utils.spectral_norm(torch.nn.Linear(3, 2, dtype=torch.float64))
    old(x)
    state = dict(old.state_dict()) | {"weight": old.weight.detach()}
    del state["weight_v"]
    again = utils.spectral_norm(torch.nn.Linear(3, 2, dtype=torch.float64))
    again.load_state_dict(state)
    yield numbers(again.eval()(x) - old.eval()(x))


# ---- pruning ----
@program
def pruning(torch):
    prune = __import__(f"{torch.__name__}.nn.utils.prune", fromlist=["x"])
    scores = torch.arange(12.0).view(3, 4)
    ways = {
        "identity": lambda m: prune.identity(m, "weight"),
        "random": lambda m: prune.random_unstructured(m, "weight", 5),
        "l1": lambda m: prune.l1_unstructured(m, "weight", 0.4),
        "scores": lambda m: prune.l1_unstructured(m, "weight", 3, importance_scores=scores),
        "random_channels": lambda m: prune.random_structured(m, "weight", 2, dim=1),
        "channels": lambda m: prune.ln_structured(m, "weight", 0.5, n=2, dim=0),
        "channels_of_scores": lambda m: prune.ln_structured(m, "weight", 1, 1, -1, importance_scores=scores),
        "none": lambda m: prune.ln_structured(m, "weight", 0, n=2, dim=0),
        "mask": lambda m: prune.custom_from_mask(m, "weight", torch.eye(3, 4)),
    }
    x = torch.linspace(-1, 1, 4)
    for first, one in ways.items():
        torch.manual_seed(0)
        layer = one(torch.nn.Linear(4, 3))
        yield first, layer, numbers(layer.state_dict()), prune.is_pruned(layer), numbers(layer(x))
        layer(x).sum().backward()
        yield numbers(layer.weight_orig.grad)
        for second, another in ways.items():
            torch.manual_seed(0)
            again = one(torch.nn.Linear(4, 3))
            yield second, said(lambda again=again, another=another: numbers(another(again).weight_mask))
            yield [[type(one).__name__ for one in hooks] for hooks in again._forward_pre_hooks.values()]
        original = layer.weight_orig
        prune.remove(layer, "weight")
        yield (
            numbers(layer.state_dict()),
            layer.weight is original,
            prune.is_pruned(layer),
            len(layer._forward_pre_hooks),
        )


@program
def pruning_errors(torch):
    prune = __import__(f"{torch.__name__}.nn.utils.prune", fromlist=["x"])
    layer = torch.nn.Linear(4, 3)
    yield said(lambda: prune.remove(layer, "weight"))
    for amount in (-1, 1.5, "x", 13, 0.0):
        yield said(lambda amount=amount: prune.l1_unstructured(layer, "weight", amount))
        yield sorted(layer._parameters)
    yield said(lambda: prune.random_structured(layer, "bias", 1, 0))
    yield said(lambda: prune.random_structured(layer, "weight", 1, 2))
    yield said(lambda: prune.custom_from_mask(layer, "bias", torch.ones(2)))
    yield said(lambda: prune.l1_unstructured(layer, "bias", 1, importance_scores=torch.ones(2)))
    yield said(lambda: prune.PruningContainer(1))
    yield said(lambda: prune.global_unstructured(1, prune.L1Unstructured, amount=1))
    yield said(lambda: prune.global_unstructured([], prune.L1Unstructured, importance_scores=1, amount=1))
    yield said(lambda: prune.global_unstructured([(layer, "bias")], prune.CustomFromMask, mask=1))
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)
    prune.l1_unstructured(first, "bias", 1)
    prune.global_unstructured([(first, "weight"), (second, "weight"), (first, "bias")], prune.L1Unstructured, amount=7)
    yield numbers([first.weight_mask, second.weight_mask, first.bias_mask])
    prune.global_unstructured([(first, "weight"), (second, "weight")], prune.RandomUnstructured, amount=0.5)
    yield numbers([first.weight_mask, second.weight_mask]), [len(h) for h in first._forward_pre_hooks.values()]
    yield numbers(prune.L1Unstructured(2).prune(torch.arange(4.0)))
    yield said(lambda: prune.L1Unstructured(2).prune(torch.arange(4.0), importance_scores=torch.ones(3)))


@program
def data_parallel(torch):
    torch.manual_seed(0)
    net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    yield net, list(net.state_dict()), net.device_ids, numbers(net(torch.ones(2)))
    yield said(lambda: torch.nn.parallel.data_parallel(net.module, torch.ones(2)))
