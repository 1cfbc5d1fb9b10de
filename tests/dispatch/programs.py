# ruff: noqa: E501 - one program, one line
"""Small programs whose operations are compared with torch's. Each takes a library, torch or ours, and returns what is to be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def drawn(library: Any, *shape: int) -> Any:
    """Return a leaf of small numbers."""
    count = 1
    for n in shape:
        count *= n
    return (library.arange(count, dtype=library.float32).reshape(shape) / count - 0.4).requires_grad_()


def program(make: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[make.__name__] = make
    return make


def simple(name: str, run: Callable[[Any, Any, Any], Any]) -> None:
    """Add a program of two leaves of shape (3, 4)."""

    def make(library: Any) -> Any:
        x, y = drawn(library, 3, 4), drawn(library, 3, 4)
        return lambda: run(library, x, y)

    PROGRAMS[name] = make


simple("product and its gradient", lambda t, x, y: (x * y).sum().backward())
simple("arithmetic", lambda t, x, y: ((x + y - 1) / y * 2).sum().backward())
simple("number minus tensor", lambda t, x, y: (1 - x).mean().backward())
simple("powers", lambda t, x, y: (x**2 + (x + 2) ** y).sum().backward())
simple("a leaf used often", lambda t, x, y: ((x * x) + (x * y)).sum().backward())
simple("exponential", lambda t, x, y: x.exp().sum().backward())
simple(
    "activations",
    lambda t, x, y: (
        (x.tanh() + x.sigmoid() + t.relu(x) + t.nn.functional.gelu(x) + t.nn.functional.silu(x)).sum().backward()
    ),
)
simple("softmax", lambda t, x, y: t.nn.functional.softmax(x, -1).sum().backward())
simple("softmax in another dtype", lambda t, x, y: (t.softmax(x, 1, t.float64), x.log_softmax(0, t.float64)))
simple(
    "conversions", lambda t, x, y: (x.to(float), x.to(t.float64, False, True), x.to("cpu", t.int64), x.half(), x.to(y))
)
simple("log softmax", lambda t, x, y: t.nn.functional.log_softmax(x, 1).sum().backward())
simple(
    "activations with kinks",
    lambda t, x, y: (
        (
            t.nn.functional.hardswish(x)
            + t.nn.functional.softshrink(x)
            + t.nn.functional.elu(x)
            + t.nn.functional.hardsigmoid(x)
        )
        .sum()
        .backward()
    ),
)
simple("cross entropy", lambda t, x, y: t.nn.functional.cross_entropy(x, t.tensor([0, 2, 1])).backward())
simple("squared loss", lambda t, x, y: t.nn.functional.mse_loss(x, y).backward())
simple("smooth loss", lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y).backward())
simple("logits", lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, t.zeros(3, 4)).backward())
simple("matrix product", lambda t, x, y: (x @ y.t()).sum().backward())
simple("matrix and vector", lambda t, x, y: x @ t.ones(4))
simple("sum of products", lambda t, x, y: t.einsum("ij,kj->ik", x, y))
simple("added product", lambda t, x, y: t.addmm(t.ones(4), x, t.ones(4, 4)).sum().backward())
simple("a row", lambda t, x, y: x[0])
simple("slices", lambda t, x, y: x[:, 1:3].sum().backward())
simple("rows by numbers", lambda t, x, y: x[t.tensor([0, 2, 1])].sum().backward())
simple("elements by a mask", lambda t, x, y: x[x > 0])
simple("new dimension", lambda t, x, y: x[None, ..., 0])
simple("an element", lambda t, x, y: x[1, 2])
simple(
    "views",
    lambda t, x, y: (x.view(12), x.reshape(4, 3), x.t(), x.T, x.transpose(0, 1), x.permute(1, 0), x.unsqueeze(0), x.squeeze(), x.flatten(),
                     x.expand(2, 3, 4), x.narrow(0, 0, 2), x.select(0, 1), x.chunk(2, 1), x.split(2, 1), x.unbind(0)),
)  # fmt: skip
simple("gradient of views", lambda t, x, y: x.view(2, 6).transpose(0, 1).reshape(12).sum().backward())
simple("joining", lambda t, x, y: t.cat([x, y]).sum().backward())
simple("stacking", lambda t, x, y: t.stack([x, y]).sum().backward())
simple("padding", lambda t, x, y: t.nn.functional.pad(x, (1, 1)).sum().backward())
simple("normalised rows", lambda t, x, y: t.nn.functional.normalize(x))
simple("divergence", lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="batchmean"))
simple("triangles", lambda t, x, y: (t.tril(x), t.triu(x)))
simple(
    "conversions",
    lambda t, x, y: (x.to(t.float64), x.float(), x.double(), x.long(), x.half(), x.clone(), x.contiguous(), x.t().contiguous(), x.detach(),
                     x.bool(), x.cpu()),
)  # fmt: skip
simple(
    "reductions",
    lambda t, x, y: (x.sum(), x.sum(1), x.mean(), x.mean(0), x.max(), x.max(1), x.amax(1), x.argmax(), x.std(), x.var(1), x.norm(),
                     x.logsumexp(1), x.cumsum(0), x.all(), x.any(), x.topk(2), x.sort()),
)  # fmt: skip
simple(
    "comparisons",
    lambda t, x, y: (x > 0, x == y, x < y, x != 0, (x > 0) & (y > 0), ~(x > 0), t.where(x > 0, x, y), x.clamp(0, 1), x.masked_fill(x > 0, 0.0),
                     x.abs(), x.maximum(y), x.isnan()),
)  # fmt: skip
simple("numbers", lambda t, x, y: (x.detach().sum().item(), float(x.detach()[0, 0]), bool(x.sum() > 0)))
simple(
    "elementwise",
    lambda t, x, y: (x.sqrt(), x.rsqrt(), x.log(), x.sin(), x.cos(), x.neg(), -x, x.reciprocal(), x.square(), x.erf(), x.sign(), x.floor(), x.round(),
                     x.log1p(), x.expm1()),
)  # fmt: skip
simple("gathering", lambda t, x, y: (x.gather(1, t.tensor([[0], [1], [2]])), x.index_select(0, t.tensor([0, 2]))))


@program
def writing(library: Any) -> Any:
    x, y = drawn(library, 3, 4), drawn(library, 3, 4)

    def run() -> None:
        a = x * 2
        a.add_(1).mul_(y)
        a.relu_()
        a.sum().backward()

    return run


@program
def writing_elements(library: Any) -> Any:
    z = drawn(library, 3, 4).detach()

    def run() -> None:
        a = z.clone()
        a[0] = 1.0
        a[:, 1] = z[:, 1]
        a[a > 0] = 0

    return run


@program
def second_derivative(library: Any) -> Any:
    x = drawn(library, 3, 4)
    grad = library.autograd.grad
    return lambda: grad(grad((x**3).sum(), x, create_graph=True)[0].sum(), x)


@program
def without_gradients(library: Any) -> Any:
    x, y = drawn(library, 3, 4), drawn(library, 3, 4)

    def run() -> None:
        with library.no_grad():
            (x + y).exp()

    return run


@program
def making(library: Any) -> Any:
    t = library
    x = drawn(library, 3, 4)
    return lambda: (
        t.zeros(3), t.ones(2, 2), t.arange(5), t.full((2,), 3.0), t.randn(3), t.rand(3), t.eye(3), t.linspace(0, 1, 5), t.tensor([1.0, 2.0]),
        t.zeros_like(x), t.randn_like(x), t.empty(3), t.randint(3, (2,)), x.new_zeros(3), t.randperm(4),
    )  # fmt: skip


def layer(name: str, make: Callable[[Any], Any], *shape: int) -> None:
    """Add a program that runs a layer and its backward."""

    def of(library: Any) -> Any:
        module, x = make(library), drawn(library, *shape)
        return lambda: module(x).sum().backward()

    PROGRAMS[name] = of


layer("linear layer", lambda t: t.nn.Linear(4, 5), 3, 4)
layer("linear layer on three dimensions", lambda t: t.nn.Linear(4, 5), 2, 3, 4)
layer("linear layer without bias", lambda t: t.nn.Linear(4, 5, bias=False), 2, 3, 4)
layer("convolution", lambda t: t.nn.Conv2d(3, 4, 3, padding=1), 2, 3, 8, 8)
layer("convolution of signals", lambda t: t.nn.Conv1d(3, 4, 3, stride=2), 2, 3, 8)
layer("transposed convolution", lambda t: t.nn.ConvTranspose2d(3, 4, 3), 2, 3, 8, 8)
layer("batch normalisation", lambda t: t.nn.BatchNorm2d(3), 2, 3, 4, 4)
layer("layer normalisation", lambda t: t.nn.LayerNorm(4), 3, 4)
layer("group normalisation", lambda t: t.nn.GroupNorm(2, 4), 2, 4, 3, 3)
simple("group normalisation of other strides", lambda t, x, y: t.nn.functional.group_norm(x.t(), 3))
layer("mean of blocks", lambda t: t.nn.AvgPool3d(2), 1, 2, 4, 4, 4)
layer("greatest of windows", lambda t: t.nn.MaxPool2d(2), 1, 2, 4, 4)
layer("mean of windows", lambda t: t.nn.AvgPool2d(2), 1, 2, 4, 4)
layer("mean of images", lambda t: t.nn.Sequential(t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten()), 1, 2, 4, 4)
layer("perceptron", lambda t: t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 3)), 3, 4)
layer("larger images", lambda t: t.nn.Upsample(scale_factor=2), 1, 2, 4, 4)
layer("dropout", lambda t: t.nn.Dropout(0.5), 3, 4)


@program
def embedding(library: Any) -> Any:
    module = library.nn.Embedding(10, 4)
    return lambda: module(library.tensor([1, 2])).sum().backward()


@program
def attention(library: Any) -> Any:
    q = drawn(library, 1, 2, 3, 4).detach()
    return lambda: library.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


@program
def transformer_layer(library: Any) -> Any:
    module = library.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    x = drawn(library, 2, 3, 4)
    return lambda: module(x)
