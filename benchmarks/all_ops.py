"""How quick is every operation against torch eager, on 3 elements and on a million?

python benchmarks/all_ops.py [--small] [--large] [--ops NAME,...] [--quick] [--unlisted]      needs torch==2.13.0

Both libraries run the same expression in turns, one thread each; the best of several rounds of each is compared. A ratio
above 1 says how many times slower ours is. Every expression is timed forward (recorded for autograd) and, where it can be,
forward and backward. The worst come first. `--ops` takes parts of expressions; `--unlisted` names the public operations
that no expression here calls.
"""

from __future__ import annotations

import argparse
import gc
import re
import timeit
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import torch
from threadpoolctl import threadpool_limits

import retrograd
from retrograd.tensor._names import LATER, NOW

# The operands: a, b, c are vectors and m, n matrices that require grad; p is positive, u is in (0, 1); x and y do not
# require grad and may be written; k are int64 indices of a vector, km of a matrix, mask and mm are bool; j are numbers
# of type int64; s is 0-d. An expression that does not begin with a name of these is a function of the package.
GROUPS = {
    "arithmetic": """
        a + b; a - b; a * b; a / b; a + 1.5; a * 2; 2.0 - a; 1.0 / p; a ** 2; p ** 1.5; 2.0 ** a; p ** b; -a; a // 2.0;
        a % 2.0; lib.add(a, b, alpha=2); lib.sub(a, b); lib.mul(a, b); lib.div(a, b); lib.fmod(a, b); lib.remainder(a, b);
        lib.addcmul(a, b, c); lib.addcdiv(a, b, p); lib.lerp(a, b, 0.3); lib.lerp(a, b, u); lib.rsub(a, b);
        lib.floor_divide(a, p); lib.true_divide(a, p); lib.square(a); lib.hypot(a, b); lib.float_power(p, 2.0)
    """,
    "functions": """
        a.exp(); a.expm1(); p.log(); p.log1p(); p.log2(); p.log10(); p.sqrt(); p.rsqrt(); a.sin(); a.cos(); a.tan();
        a.sinh(); a.cosh(); a.tanh(); u.asin(); u.acos(); a.atan(); a.sigmoid(); a.relu(); a.erf(); p.reciprocal(); a.abs();
        a.sign(); a.sgn(); a.floor(); a.ceil(); a.trunc(); a.round(); a.neg(); lib.atan2(a, b); lib.exp2(a); lib.erfc(a);
        lib.erfinv(u); lib.lgamma(p); lib.digamma(p); lib.logit(u); lib.sinc(a); lib.asinh(a); lib.acosh(p + 1);
        lib.atanh(u); lib.frac(a); lib.logaddexp(a, b); lib.logaddexp2(a, b); lib.xlogy(a, p); lib.copysign(a, b);
        lib.nan_to_num(a); lib.deg2rad(a); lib.rad2deg(a); lib.i0(a); lib.heaviside(a, b); lib.ldexp(a, j);
        lib.positive(a); lib.special.entr(u); lib.special.ndtr(a); lib.special.log_ndtr(a); lib.polygamma(1, p)
    """,
    "choosing": """
        a.clamp(0.0, 1.0); a.clamp(min=0.0); a.clamp(b, c); lib.clamp_min(a, 0.0); lib.clamp_max(a, 0.0);
        lib.where(mask, a, b); lib.where(mask, a, 0.0); lib.maximum(a, b); lib.minimum(a, b); lib.fmax(a, b); lib.fmin(a, b);
        a.masked_fill(mask, 0.0); a.masked_select(mask); lib.take_along_dim(a, k, 0); lib.threshold(a, 0.5, 0.0)
    """,
    "comparing": """
        a == b; a != b; a < b; a > 0.5; a <= b; a >= 0; lib.isnan(a); lib.isinf(a); lib.isfinite(a); lib.logical_not(mask);
        lib.logical_and(mask, mask); mask & mask; mask | mask; mask ^ mask; ~mask; lib.isclose(x, y); lib.equal(x, y);
        lib.allclose(x, x); lib.signbit(a); mask.any(); mask.all(); m.argmax(); m.argmax(1); m.argmin(0);
        lib.count_nonzero(x); lib.isin(j, k)
    """,
    "integers": "j + j; j * 2; j - j; j // 2; j % 2; j == 2; j < j; j & j; j | 1; j << 1; -j; j.sum(); j.float(); j / 2; j * a",
    "reductions": """
        a.sum(); m.sum(0); m.sum(1, keepdim=True); m.sum((0, 1)); a.mean(); m.mean(1); p.prod(); m.prod(1); a.max(); m.max(1);
        m.min(0); m.amax(1); m.amin(0); m.aminmax(dim=1); m.logsumexp(1); a.softmax(0); m.softmax(1); m.log_softmax(1);
        a.cumsum(0); m.cumsum(1); m.cumprod(1); m.cummax(1); m.cummin(1); m.logcumsumexp(1); a.var(); m.std(1);
        lib.var_mean(m, 1); lib.std_mean(m, 1); a.norm(); m.norm(dim=1); a.norm(1); lib.nansum(a); lib.nanmean(a); a.median();
        m.median(1); lib.quantile(a, 0.3); m.mode(1); lib.dist(a, b); lib.trace(m); lib.diff(a); lib.trapezoid(a);
        lib.renorm(m, 2, 0, 1.0); lib.histc(x, 10); lib.bincount(j); lib.cov(m[:3]); lib.nanmedian(a)
    """,
    "views": """
        a[0]; a[-1]; a[1:]; a[:2]; a[::2]; a[...]; a[None]; m[0]; m[0, 1]; m[:, 1]; m[1:, :2]; m[..., 0]; a.view(-1, 1);
        m.view(-1); m.reshape(-1); m.t(); m.T; m.mT; m.transpose(0, 1); m.permute(1, 0); lib.movedim(m, 0, 1); a.unsqueeze(0);
        a.unsqueeze(-1); a.unsqueeze(0).squeeze(0); a.expand(2, -1); lib.broadcast_to(a, (2, a.shape[0])); m.flatten();
        m.ravel(); m.select(0, 1); a.narrow(0, 1, 2); m.diagonal(); a.split(2) if small else m.split(500); m.chunk(3);
        m.unbind(0) if small else m[:3].unbind(0); m.swapaxes(0, 1); a.detach(); a.data; a.view_as(b); a.expand_as(m);
        a.unfold(0, 2, 1); m.adjoint(); lib.atleast_2d(a); lib.unflatten(a, 0, (-1, 1)); lib.tensor_split(m, 3);
        lib.hsplit(m[:, :3], 3); lib.as_strided(a, (2,), (1,)); s.view(1); m.t().contiguous(); m.t().reshape(-1)
    """,
    "joining and copying": """
        lib.cat([a, b]); lib.cat([m, n], 1); lib.stack([a, b]); lib.stack([a, b], 1); lib.hstack([a, b]); lib.vstack([a, b]);
        lib.column_stack([a, b]); a.clone(); m.flip(0); lib.roll(a, 1); a.repeat(2); lib.tile(a, (2,)); m.tril(); m.triu();
        lib.rot90(m); lib.fliplr(m); lib.repeat_interleave(a, 2); lib.diag(m); lib.diag(a[:3]); lib.diag_embed(a[:3]);
        lib.kron(a[:3], b[:3]); lib.meshgrid(a[:3], b[:3], indexing="ij"); lib.cartesian_prod(a[:3], b[:3]); a.double();
        a.to(lib.float64); a.half(); a.bfloat16(); a.long(); a.contiguous(); lib.block_diag(a[:3], b[:3])
    """,
    "indices": """
        a[k]; m[k]; m[:, k]; m[k, k]; a[mask]; m[mm]; a.gather(0, k); m.gather(1, km); m.index_select(0, k);
        a.scatter(0, k, b); m.scatter(1, km, n); m.scatter(1, km, 1.0); a.scatter_add(0, k, b); m.index_add(0, k, n);
        lib.index_put(a, (k,), b); m.sort(1); a.sort(); a.argsort(); m.topk(2, 1); m.kthvalue(2, 1); x.nonzero();
        lib.unique(j); a.take(k); m.index_fill(0, k, 1.0); m.index_copy(0, k, n); lib.searchsorted(x.sort()[0], x);
        a.scatter_reduce(0, k, b, "sum"); lib.bucketize(x, y.sort()[0]); lib.tril_indices(3, 3); lib.msort(m)
    """,
    "matrices": """
        m @ n; m @ a; a @ b; a @ m; lib.mm(m, n); lib.mv(m, a); lib.dot(a, b); lib.outer(a[:3], b[:3]); lib.matmul(m, n);
        lib.bmm(m[None], n[None]); lib.addmm(m, m, n); lib.addmv(a, m, b); lib.baddbmm(m[None], m[None], n[None]);
        lib.addr(m[:3, :3], a[:3], b[:3]); lib.vdot(a, b); lib.inner(a, b); lib.einsum("ij,jk->ik", m, n);
        lib.tensordot(m, n, 1); lib.cross(a[:3], b[:3], dim=0); lib.cdist(m[:3], n[:3]); lib.linalg.det(q); lib.linalg.inv(q);
        lib.linalg.solve(q, a[:3]); lib.linalg.cholesky(spd); lib.linalg.eigh(spd); lib.linalg.qr(q); lib.linalg.svd(q);
        lib.linalg.norm(m); lib.linalg.vector_norm(a); lib.chain_matmul(q, q); lib.linalg.matrix_power(q, 3)
    """,
    "numbers and questions": """
        s.item(); x[0].item(); float(s); int(s); bool(s); len(a); a.shape; a.size(); a.size(0); a.dim(); a.numel(); a.dtype;
        a.device; a.requires_grad; a.is_leaf; a.grad; a.stride(); a.is_contiguous(); list(a[:3]); x.tolist() if small else 0;
        lib.is_tensor(a); a.is_floating_point(); s + s; s * 2.0; s.exp(); x.numpy()
    """,
    "making": """
        lib.zeros(3); lib.ones(3, 3); lib.full((3,), 1.0); lib.zeros_like(x); lib.ones_like(x); lib.empty_like(x);
        lib.full_like(x, 2.0); lib.arange(3); lib.linspace(0, 1, 5); lib.eye(3); lib.tensor([1.0, 2.0, 3.0]);
        lib.tensor(1.0); lib.rand(3); lib.randn(3); x.new_zeros(3); lib.scalar_tensor(1.0); lib.randint(0, 5, (3,));
        lib.logspace(0, 1, 5); lib.tensor(1.0, requires_grad=True); lib.rand_like(x); lib.bernoulli(uu)
    """,
    "writing": """
        x.add_(0.0); x.mul_(1.0); x.add_(y, alpha=0.0); x.sub_(0.0); x.div_(1.0); x.zero_(); x.fill_(1.0); x.copy_(y);
        x.clamp_(0.0, 1.0); x.abs_(); x.exp_(); x.neg_(); x.masked_fill_(mask, 0.5); x.sqrt_(); x.addcmul_(y, y, value=0.0);
        x.addcdiv_(y, y, value=0.0); x.lerp_(y, 0.0); x.relu_(); x.sigmoid_(); x.t_(); x.requires_grad_(False);
        x.__setitem__(0, 1.0); x.__setitem__(slice(1, 3), 2.0); x.__setitem__(0, y[0]); x.__setitem__(k, y);
        x.__setitem__(mask, 0.5); xm.__setitem__((0, 1), 1.0); xm.__setitem__((slice(None), 1), y); x.scatter_(0, k, y);
        x.index_add_(0, k, y); x.index_put_((k,), y); a.clone().add_(1.0); a.clone().mul_(b); x.uniform_(); x.normal_();
        put(a.clone(), 0, 1.0); put(a.clone(), 0, s); put(a.clone(), slice(1, 3), b[:2])
    """,
    "modes and programs": """
        quiet(lib, a, b); no_grad(lib); step(lib, w, x); (a * b).sum(); ((a * b + c).tanh() ** 2).mean(); (m @ a).relu().sum();
        lib.nn.functional.linear(a, m, b); lib.nn.functional.mse_loss(a, b); lib.nn.functional.gelu(a);
        lib.nn.functional.silu(a); lib.nn.functional.softplus(a); lib.nn.functional.leaky_relu(a);
        lib.nn.functional.cross_entropy(m, km[:, 0]); lib.nn.functional.layer_norm(m, m.shape[1:]);
        lib.nn.functional.dropout(a, 0.5); lib.nn.functional.embedding(k, m); lib.nn.functional.one_hot(k)
    """,
}

# Where NumPy itself (or an interpreted language) offers no better way.
PYTHON_CALL = "a Python call or property, against one in C"
REDUCTIONS = "NumPy's reductions take 1 us each, and it needs two or more"
SEVERAL = "NumPy has no such function: several calls of 0.3 us and more"
NOTED = "the place of the write is noted: 0.3 us"
ADD_AT = "NumPy adds at indices in 0.9 us, however few"
TWO = "two results: two Python objects, and several calls of NumPy"
VIEWS = "each view is a Python object that knows its base and is known to it: 1.5 us"
REASONS = {
    **dict.fromkeys(["a.detach()", "a.data"], "the place of the call is noted for autograd.explain: 0.3 us"),
    **dict.fromkeys(["j * a", "j % 2"], "operands of two dtypes: one is converted first, off the quick path"),
    **dict.fromkeys(
        [
            "lib.cov(m[:3])",
            "lib.cdist(m[:3], n[:3])",
            "lib.quantile(a, 0.3)",
            "lib.cross(a[:3], b[:3], dim=0)",
            "m.cumprod(1)",
        ],
        "several NumPy calls, each of 1 us, against one loop in C",
    ),
    **dict.fromkeys(["m[1:, :2]", "m[:, k]", "m.flip(0)"], "reading the index in Python"),
    **dict.fromkeys(["lib.positive(a)", "x.add_(y, alpha=0.0)"], "a Python call or property, against one in C"),
    **dict.fromkeys(
        [
            "a.shape",
            "a.size()",
            "a.dim()",
            "a.numel()",
            "a.grad",
            "a.requires_grad",
            "a.is_leaf",
            "a.dtype",
            "a.device",
        ],
        PYTHON_CALL,
    ),
    **dict.fromkeys(["a.size(0)", "len(a)", "s.item()", "float(s)", "int(s)", "x.requires_grad_(False)"], PYTHON_CALL),
    **dict.fromkeys(
        ["a.stride()", "a.is_contiguous()"], "NumPy counts strides in bytes, and makes an object for flags"
    ),
    **dict.fromkeys(["x.zero_()", "x.neg_()", "x.exp_()", "x.sqrt_()", "x.abs_()", "x.relu_()", "x.t_()"], NOTED),
    **dict.fromkeys(["x.copy_(y)", "x.uniform_()", "x.clamp_(0.0, 1.0)"], NOTED),
    **dict.fromkeys(
        ["x.normal_()", "lib.randn(3)"], "torch's numbers to the last bit: logarithm and sine by Python's math"
    ),
    **dict.fromkeys(["lib.bernoulli(uu)", "lib.randint(0, 5, (3,))"], "torch's stream of random words, kept in Python"),
    **dict.fromkeys(["lib.linspace(0, 1, 5)", "lib.logspace(0, 1, 5)"], SEVERAL),
    **dict.fromkeys(["x.index_add_(0, k, y)", "a.scatter_add(0, k, b)", "m.index_add(0, k, n)"], ADD_AT),
    'a.scatter_reduce(0, k, b, "sum")': ADD_AT,
    **dict.fromkeys(
        ["m.gather(1, km)", "m.scatter(1, km, n)", "m.scatter(1, km, 1.0)", "m.index_fill(0, k, 1.0)"], SEVERAL
    ),
    **dict.fromkeys(["put(a.clone(), 0, 1.0)", "put(a.clone(), 0, s)", "put(a.clone(), slice(1, 3), b[:2])"], VIEWS),
    **dict.fromkeys(["lib.as_strided(a, (2,), (1,))", "m[0, 1]", "a[None]", "lib.repeat_interleave(a, 2)"], VIEWS),
    **dict.fromkeys(["m.logsumexp(1)", "lib.isin(j, k)"], REDUCTIONS),
    **dict.fromkeys(["a.softmax(0)", "m.softmax(1)", "m.log_softmax(1)", "a.var()", "m.std(1)"], SEVERAL),
    **dict.fromkeys(["lib.var_mean(m, 1)", "lib.std_mean(m, 1)", "m.max(1)", "m.min(0)"], TWO),
    **dict.fromkeys(["m.cummax(1)", "m.cummin(1)", "m.median(1)", "m.mode(1)", "lib.linalg.qr(q)"], TWO),
    **dict.fromkeys(["m.tril()", "m.triu()", "lib.renorm(m, 2, 0, 1.0)", "lib.kron(a[:3], b[:3])"], SEVERAL),
    **dict.fromkeys(["a @ m", "lib.vstack([a, b])", "lib.column_stack([a, b])", "lib.diff(a)"], VIEWS),
    **dict.fromkeys(["m.chunk(3)", "m.unbind(0) if small else m[:3].unbind(0)", "lib.tensor_split(m, 3)"], VIEWS),
    **dict.fromkeys(
        [
            "lib.hsplit(m[:, :3], 3)",
            'lib.meshgrid(a[:3], b[:3], indexing="ij")',
            "lib.cartesian_prod(a[:3], b[:3])",
            "lib.broadcast_to(a, (2, a.shape[0]))",
            "lib.unflatten(a, 0, (-1, 1))",
            "a.unfold(0, 2, 1)",
            "a.expand(2, -1)",
            "a.expand_as(m)",
        ],
        VIEWS,
    ),
    "lib.polygamma(1, p)": "SciPy's zeta function, called through Python",
    **dict.fromkeys(
        ["lib.bmm(m[None], n[None])", "lib.baddbmm(m[None], m[None], n[None])"],
        "NumPy's product of batches takes 1.3 us, however small",
    ),
    **dict.fromkeys(
        ["a.sigmoid()", "x.sigmoid_()", "lib.lerp(a, b, 0.3)", "lib.lerp(a, b, u)", "x.lerp_(y, 0.0)"], SEVERAL
    ),
    **dict.fromkeys(["lib.addcmul(a, b, c)", "lib.addcdiv(a, b, p)", "lib.add(a, b, alpha=2)", "a.sign()"], SEVERAL),
    **dict.fromkeys(
        ["x.addcmul_(y, y, value=0.0)", "x.addcdiv_(y, y, value=0.0)", "lib.logit(u)", "lib.sinc(a)"], SEVERAL
    ),
    **dict.fromkeys(["m.sort(1)", "a.sort()", "a.argsort()", "m.topk(2, 1)", "m.kthvalue(2, 1)"], SEVERAL),
}

# At a million elements; what takes less than this touches few of them.
CALLS_ALONE = 60e-6
CALLS = "hardly an element is touched: the time of the calls, see 3 elements"
SLOWER_WHEN_LARGE = {
    "NumPy's accumulate goes number by number": "a.cumsum(0)",
    "the products of backward are OpenBLAS's, torch's are MKL's": """
        m @ a; (m @ a).relu().sum(); a @ m; lib.linalg.matrix_power(q, 3)
    """,
    "the rule takes three passes": "a.abs(); lib.index_put(a, (k,), b)",
    "our .grad has memory of its own; torch's shares that of the seed": """
        m.reshape(-1); m.adjoint(); m.swapaxes(0, 1); m.permute(1, 0); a[None]; a.view(-1, 1); m.ravel(); m.mT; m.T; m.t();
        m.transpose(0, 1); lib.unflatten(a, 0, (-1, 1)); m.flatten(); m.view(-1); lib.atleast_2d(a); a.unsqueeze(0);
        a.view_as(b); lib.movedim(m, 0, 1); a.unsqueeze(-1); a.unsqueeze(0).squeeze(0); lib.cat([a, b]); lib.stack([a, b]);
        lib.hstack([a, b]); lib.vstack([a, b]); lib.column_stack([a, b])
    """,
    "several passes over memory: NumPy has no such function": """
        lib.lerp(a, b, u); lib.lerp(a, b, 0.3); x.lerp_(y, 0.0); x.addcmul_(y, y, value=0.0); lib.frac(a); a.sigmoid();
        x.addcdiv_(y, y, value=0.0); x.add_(y, alpha=0.0); lib.nan_to_num(a); x.sigmoid_(); a.clamp(b, c); p.rsqrt();
        lib.copysign(a, b); m.softmax(1); m.log_softmax(1); a.softmax(0); lib.logit(u); lib.addcmul(a, b, c); a.sgn();
        a.sign(); lib.remainder(a, b); lib.fmod(a, b); lib.trapezoid(a); lib.add(a, b, alpha=2); lib.renorm(m, 2, 0, 1.0);
        a % 2.0; a.tanh(); m.logsumexp(1)
    """,
    "the old value is kept in case that it is needed: a copy": "a.clone().add_(1.0); a.clone().mul_(b)",
    "NumPy runs along the last axis one number at a time": """
        m.prod(1); p.prod(); m.cumprod(1); m.cumsum(1); m.cummax(1); m.cummin(1)
    """,
    "NumPy copies backwards, or across rows, number by number": """
        lib.rot90(m); lib.fliplr(m); lib.repeat_interleave(a, 2)
    """,
    "SciPy's function, or our own in float64: NumPy has none": """
        lib.erfc(a); lib.special.ndtr(a); lib.erfinv(u); a.erf(); lib.i0(a); lib.lgamma(p); lib.special.log_ndtr(a)
    """,
    "NumPy indexes with 64-bit places of all elements, made in a pass of its own": """
        m.gather(1, km); m.scatter(1, km, n); m.index_add(0, k, n); m.index_select(0, k); m.index_copy(0, k, n)
    """,
    "NumPy converts to halves in software, torch by an instruction": "a.half(); a.bfloat16()",
    "NumPy's loop is half as fast": """
        x.relu_(); x.clamp_(0.0, 1.0); x.abs_(); m.amax(1); lib.ones_like(x); lib.full_like(x, 2.0); x.fill_(1.0); x.zero_();
        m.sum((0, 1)); a.sum()
    """,
    "torch's stream to the bit: each fused multiply-add is float64 arithmetic and a rounding": "x.normal_()",
    "NumPy multiplies integers and floats in float64": "j * a",
    "NumPy calls the C library for each element": "lib.logaddexp(a, b); lib.logaddexp2(a, b)",
    "torch calls Intel's MKL, which is quicker on Intel's processors": "a.sin(); a.cos(); p.log(); a.exp(); p.reciprocal()",
}
LARGE_REASONS = {one.strip(): reason for reason, group in SLOWER_WHEN_LARGE.items() for one in group.split(";")}


def put(target: Any, index: Any, value: Any) -> Any:
    """Write at an index and return what was written into."""
    target[index] = value
    return target


def quiet(lib: Any, a: Any, b: Any) -> Any:
    """Compute without recording."""
    with lib.no_grad():
        return a * b


def no_grad(lib: Any) -> None:
    """Enter and leave."""
    with lib.no_grad():
        pass


def step(lib: Any, w: Any, x: Any) -> None:
    """Train for one step: forward, backward, update, forget the gradient."""
    loss = ((w * x - 1.0) ** 2).sum()
    loss.backward()
    with lib.no_grad():
        w -= 0.01 * w.grad
    w.grad = None


HELPERS = {"put": put, "quiet": quiet, "no_grad": no_grad, "step": step}


def operands(lib: Any, small: bool) -> dict[str, Any]:
    """Make the operands of all expressions, the same numbers in either library."""
    generator = torch.Generator().manual_seed(0)
    rows = 3 if small else 1000
    count = 3 if small else 1_000_000

    def given(values: torch.Tensor, requires_grad: bool = False) -> Any:
        made = values if lib is torch else lib.tensor(values.numpy())
        return made.clone().requires_grad_(requires_grad)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    found = {name: given(normal(count), True) for name in ("a", "b", "c")}
    found |= {name: given(normal(rows, rows), True) for name in ("m", "n")}
    found["p"] = given(normal(count).abs() + 0.5, True)
    found["u"] = given(torch.rand(count, generator=generator) * 0.8 + 0.1, True)
    found["uu"] = given(torch.rand(count, generator=generator))
    found |= {"x": given(normal(count).abs()), "y": given(normal(count).abs()), "xm": given(normal(rows, rows))}
    found["w"] = given(normal(count), True)
    found["s"] = given(normal(1)[0], True)
    found["k"] = given(
        torch.randperm(count, generator=generator) if small else torch.randperm(rows, generator=generator)
    )
    found["km"] = given(torch.randint(0, rows, (rows, rows), generator=generator))
    found["j"] = given(torch.randint(0, 5, (count,), generator=generator))
    found["mask"] = given(normal(count) > 0)
    found["mm"] = given(normal(rows, rows) > 0)
    square = torch.tensor([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.1, 0.2, 3.0]])
    found |= {"q": given(square, True), "spd": given(square @ square.T, True)}
    if not small:  # a vector that the matrices can be multiplied by
        found |= {"v": given(normal(rows), True)}
    return found | HELPERS | {"lib": lib, "small": small}


LARGE = {  # where the vector of the small expression is not the one that the matrices need
    "m @ a": "m @ v",
    "a @ m": "v @ m",
    "lib.mv(m, a)": "lib.mv(m, v)",
    "lib.addmv(a, m, b)": "lib.addmv(v, m, v)",
    "(m @ a).relu().sum()": "(m @ v).relu().sum()",
    "lib.nn.functional.linear(a, m, b)": "lib.nn.functional.linear(m, n, v)",
    "a.expand_as(m)": "v.expand_as(m)",
    "a.scatter(0, k, b)": "v.scatter(0, k, v)",
    "a.scatter_add(0, k, b)": "v.scatter_add(0, k, v)",
    'a.scatter_reduce(0, k, b, "sum")': 'v.scatter_reduce(0, k, v, "sum")',
    "lib.index_put(a, (k,), b)": "lib.index_put(v, (k,), v)",
    "x.__setitem__(k, y)": "x.__setitem__(k, y[:1000])",
    "x.scatter_(0, k, y)": "x.scatter_(0, k, y[:1000])",
    "x.index_add_(0, k, y)": "x.index_add_(0, k, y[:1000])",
    "x.index_put_((k,), y)": "x.index_put_((k,), y[:1000])",
    "xm.__setitem__((slice(None), 1), y)": "xm.__setitem__((slice(None), 1), y[:1000])",
}


@dataclass
class Row:
    """One expression in one mode; above 1 the ratio says how many times slower ours is."""

    expression: str
    mode: str
    ours: float
    theirs: float
    large: bool = False

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def reason(self) -> str:
        """Say why it is slower than torch by half, or nothing."""
        if self.ratio <= 1.5:
            return ""
        if not self.large:
            return REASONS.get(self.expression, "")
        return CALLS if self.ours < CALLS_ALONE else LARGE_REASONS.get(self.expression, "")

    def __str__(self) -> str:
        return (
            f"{self.ratio:7.2f}  {self.mode:<9} {self.expression:<44} {self.ours * 1e6:11.2f} {self.theirs * 1e6:11.2f}  "
            f"{self.reason}"
        ).rstrip()


def expressions(wanted: list[str]) -> list[str]:
    """List the expressions of all groups that contain one of the wanted texts."""
    every = [one.strip() for group in GROUPS.values() for one in group.split(";")]
    return [one for one in every if not wanted or any(part in one for part in wanted)]


def differentiable(value: Any) -> Any:
    """Return the first output that a gradient can be pulled back from, or None."""
    for one in value if isinstance(value, (tuple, list)) else (value,):
        if getattr(one, "grad_fn", None) is not None:
            return one
    return None


def closures(lib: Any, expression: str, names: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Make what is timed of an expression: forward, and forward and backward if it has a gradient."""
    forward = eval(f"lambda: {expression}", names)
    first = forward()
    found = {"forward": forward}
    out = differentiable(first)
    if out is None or expression.startswith("step"):
        return found
    seed = lib.ones_like(out.detach())
    leaves = [v for n in set(re.findall(r"\b\w+\b", expression)) if getattr(v := names.get(n), "requires_grad", False)]

    def both_ways() -> None:
        differentiable(forward()).backward(seed)
        for leaf in leaves:
            leaf.grad = None

    def both_ways_single() -> None:
        forward().backward(seed)
        for leaf in leaves:
            leaf.grad = None

    found["backward"] = both_ways if isinstance(first, (tuple, list)) else both_ways_single
    found["backward"]()
    return found


def race(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, seconds: float) -> tuple[float, float]:
    """Time both in turns and return the best of each, in seconds a call; what takes long gets fewer rounds."""
    once = [min(timeit.repeat(function, number=1, repeat=2)) for function in (ours, theirs)]
    number = max(1, int(seconds / max(once[1], 1e-7)))
    best = [float("inf")] * 2
    for _ in range(max(1, min(rounds, int(100 * seconds / sum(once))))):
        for at, function in enumerate((ours, theirs)):
            # time of the processor: what else the machine does meanwhile does not count
            best[at] = min(best[at], timeit.timeit(function, number=number, timer=process_time) / number)
    return best[0], best[1]


def measure(small: bool, wanted: list[str], quick: bool) -> list[Row]:
    """Time all expressions at one size; what a library lacks is told and left out."""
    rows, missing = [], []
    rounds, seconds = (4, 0.001) if quick else (9, 0.003)
    ours, theirs = operands(retrograd, small), operands(torch, small)
    for expression in expressions(wanted):
        text = expression if small else LARGE.get(expression, expression)
        try:
            mine, his = closures(retrograd, text, ours), closures(torch, text, theirs)
        except Exception as error:  # an operation that is not there yet, or differs: not for this table to judge
            missing.append(f"{expression} ({type(error).__name__}: {str(error).splitlines()[0][:60]})")
            continue
        for mode in mine.keys() & his.keys():
            rows.append(Row(expression, mode, *race(mine[mode], his[mode], rounds, seconds), large=not small))
        gc.collect()
    if missing:
        print("not measured: " + "; ".join(missing))
    return sorted(rows, key=lambda row: -row.ratio)


def unlisted() -> list[str]:
    """Name the public operations that no expression calls."""
    used = set(re.findall(r"\w+", " ".join(GROUPS.values())))
    every = {name for table in (NOW, LATER) for names in table.values() for kind in names for name in kind.split()}
    return sorted(every - used)


def report(rows: list[Row], title: str) -> None:
    """Print a table, the worst first, and how many are slower than torch by half."""
    print(f"\n{title}\n{'ratio':>7}  {'mode':<9} {'expression':<44} {'ours, us':>11} {'torch, us':>11}  reason")
    for row in rows:
        print(row)
    slow = [row for row in rows if row.ratio > 1.5]
    explained = sum(bool(row.reason) for row in slow)
    print(f"{len(rows)} measured, {len(slow)} more than 1.5 times slower than torch ({explained} of them explained)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="3 elements (and 3 x 3) only")
    parser.add_argument("--large", action="store_true", help="a million elements (and 1000 x 1000) only")
    parser.add_argument("--ops", default="", help="parts of expressions, separated by commas")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--unlisted", action="store_true", help="name the operations that are not measured")
    options = parser.parse_args()
    if options.unlisted:
        print(" ".join(unlisted()))
        return
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.simplefilter("ignore")
    wanted = [part for part in options.ops.split(",") if part]
    if options.small or not options.large:
        report(measure(True, wanted, options.quick), "3 elements")
    if options.large or not options.small:
        report(measure(False, wanted, options.quick), "1,000,000 elements")


if __name__ == "__main__":
    main()
