"""The rows of `compiled.py` for jax.jit. Imported only if jax is there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


class Numbers:
    """Random numbers as arrays, of a fixed seed."""

    def __init__(self):
        self.stream = np.random.default_rng(0)

    def normal(self, *shape):
        return jnp.asarray(self.stream.standard_normal(shape, np.float32))

    def below(self, limit, *shape):
        return jnp.asarray(self.stream.integers(0, limit, shape))


def multiplications(numbers):
    def function(x):
        for _ in range(20):
            x = x * 1.01
        return x

    return function, (numbers.normal(4, 4),)


def multiplications_with_backward(numbers):
    function, args = multiplications(numbers)
    return jax.grad(lambda x: function(x).sum()), args


def scalar_graph(numbers):
    def function(a, b):
        x, y = a, b
        for _ in range(67):
            x, y = x * y, x + y * 0.01
        return x + y

    return jax.grad(function, (0, 1)), (jnp.float32(1.0), jnp.float32(0.9))


def cross_entropy_of(scores, targets):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), targets[:, None], 1)
    return -chosen.mean()


def layer(numbers, inputs, outputs):
    return numbers.normal(inputs, outputs) * inputs**-0.5, jnp.zeros(outputs)


def training_step(forward, params, x, y):
    """Return a step of gradient descent that goes on with the parameters of the last one."""

    def step(params, x, y):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy_of(forward(p, x), y))(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    compiled, kept = jax.jit(step, donate_argnums=0), [params]

    def call():
        kept[0], loss = compiled(kept[0], x, y)
        return loss

    return call


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def small_mlp_step(numbers):
    params = [layer(numbers, n, m) for n, m in ((16, 32), (32, 32), (32, 4))]
    return training_step(mlp, params, numbers.normal(32, 16), numbers.below(4, 32))


def mlp_step(numbers):
    params = [layer(numbers, n, m) for n, m in ((784, 512), (512, 512), (512, 10))]
    return training_step(mlp, params, numbers.normal(64, 784), numbers.below(10, 64))


def lenet_step(numbers):
    def block(x, w, b, padding):
        x = jax.nn.relu(jax.lax.conv(x, w, (1, 1), padding) + b[None, :, None, None])
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

    def forward(params, x):
        (first, second), rest = params
        return mlp(rest, block(block(x, *first, "SAME"), *second, "VALID").reshape(x.shape[0], -1))

    kernels = [(numbers.normal(6, 1, 5, 5) * 0.2, jnp.zeros(6)), (numbers.normal(16, 6, 5, 5) * 0.1, jnp.zeros(16))]
    params = kernels, [layer(numbers, n, m) for n, m in ((400, 120), (120, 84), (84, 10))]
    return training_step(forward, params, numbers.normal(32, 1, 28, 28), numbers.below(10, 32))


def rnn_loop(numbers):
    w, u, xs = numbers.normal(32, 32) * 0.15, numbers.normal(16, 32) * 0.15, numbers.normal(20, 8, 16)

    def function(w, u, xs):
        h = jnp.zeros((8, 32))
        for x in xs:
            h = jnp.tanh(x @ u + h @ w)
        return h.sum()

    return jax.grad(function, (0, 1)), (w, u, xs)


def normalised(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


def transformer_step(numbers):
    def forward(p, x):
        x = p["embedding"][x]
        parts = (x @ p["qkv"][0] + p["qkv"][1]).reshape(8, 32, 3, 4, 16).transpose(2, 0, 3, 1, 4)
        q, k, v = parts
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * 0.25)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(8, 32, 64)
        x = normalised(x + mixed @ p["out"][0] + p["out"][1], *p["first"])
        inner = jax.nn.relu(x @ p["up"][0] + p["up"][1]) @ p["down"][0] + p["down"][1]
        x = normalised(x + inner, *p["second"])
        return (x @ p["head"][0] + p["head"][1]).reshape(-1, 100)

    sizes = {"qkv": (64, 192), "out": (64, 64), "up": (64, 128), "down": (128, 64), "head": (64, 100)}
    params = {name: layer(numbers, *size) for name, size in sizes.items()}
    params |= {name: (jnp.ones(64), jnp.zeros(64)) for name in ("first", "second")}
    params["embedding"] = numbers.normal(100, 64)
    return training_step(forward, params, numbers.below(100, 8, 32), numbers.below(100, 256))


def elementwise_chain(numbers):
    def function(x, w, b):
        return (jnp.tanh(x * w + b) * jax.nn.sigmoid(x) - jnp.log1p(jnp.exp(x))).sum()

    return jax.grad(function, (0, 1, 2)), tuple(numbers.normal(2_000_000) for _ in range(3))


def cross_entropy(numbers):
    return jax.grad(cross_entropy_of), (numbers.normal(4096, 8192), numbers.below(8192, 4096))


def hessian(numbers):
    a, x = numbers.normal(64, 64), numbers.normal(64)

    def inner(x):
        y = jnp.tanh(a @ x)
        return (y * y).sum() + jnp.exp(-(x * x)).sum()

    return jax.hessian(inner), (x,)


def jacobian(numbers):
    a, b, c = (numbers.normal(64, 64) * 0.1 for _ in range(3))
    return jax.jacrev(lambda x: c @ jnp.tanh(b @ jnp.tanh(a @ x))), (numbers.normal(64),)


def hessian_vector_product(numbers):
    sizes = [(100, 256), (256, 256), (256, 32)]
    weights, vectors = ([numbers.normal(n, m) * 0.05 for n, m in sizes] for _ in range(2))
    x, y = numbers.normal(64, 100), numbers.normal(64, 32)

    def loss(w):
        return ((jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) @ w[2] - y) ** 2).mean()

    return (lambda w, v: jax.jvp(jax.grad(loss), (w,), (v,))[1]), (weights, vectors)


def call_of(row):
    """Return the compiled call of a row, which waits for its result."""
    made = globals()[row](Numbers())
    if callable(made):
        return lambda: jax.block_until_ready(made())
    function, args = made
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*args))
