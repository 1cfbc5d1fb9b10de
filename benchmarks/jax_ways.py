"""The questions of `transforms.py`, asked of jax.jit. Imported only if jax is there."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def _ready(function, *args):
    """Compile now, and wait for the result at every call."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*args))
    return lambda: jax.block_until_ready(compiled(*args))


def hessian(inputs):
    a, x = (jnp.asarray(t.numpy()) for t in inputs)

    def f(x):
        y = jnp.tanh(a @ x)
        return (y * y).sum() + jnp.exp(-(x * x)).sum()

    return _ready(jax.hessian(f), x)


def jacobian(inputs):
    weights, x = inputs
    weights, x = [jnp.asarray(w.numpy()) for w in weights], jnp.asarray(x.numpy())

    def f(x):
        for w in weights[:-1]:
            x = jnp.tanh(w @ x)
        return weights[-1] @ x

    return _ready(jax.jacrev(f), x)


def hvp(inputs):
    weights, vectors, x, y = inputs
    weights, vectors = (tuple(jnp.asarray(t.numpy()) for t in ts) for ts in (weights, vectors))
    x, y = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())

    def loss(ws):
        h = x
        for w in ws[:-1]:
            h = jnp.tanh(h @ w)
        return ((h @ ws[-1] - y) ** 2).mean()

    return _ready(lambda ws, vs: jax.jvp(jax.grad(loss), (ws,), (vs,)), weights, vectors)


def per_sample(inputs):
    params, x, y = inputs
    params = {name: jnp.asarray(p.numpy()) for name, p in params.items()}
    x, y = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())

    def conv(x, w, b):
        out = jax.lax.conv(x, w, (1, 1), "VALID") + b[None, :, None, None]
        pooled = jax.lax.reduce_window(jax.nn.relu(out), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return pooled

    def loss(p, sample, target):
        h = conv(sample[None], p["0.weight"], p["0.bias"])
        h = conv(h, p["3.weight"], p["3.bias"]).reshape(1, -1)
        logits = h @ p["7.weight"].T + p["7.bias"]
        return -jax.nn.log_softmax(logits)[0, target]

    return _ready(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)), params, x, y)


WAYS = {
    "Hessian, 64 variables": hessian,
    "Jacobian 64 x 64, three-layer MLP": jacobian,
    "HVP, MLP of 100,000 parameters": hvp,
    "per-sample gradients, conv net, 32": per_sample,
}
