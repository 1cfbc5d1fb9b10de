"""Functions and modules whose products are counted, in torch and here. Each function takes a library and what makes its tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[[Any, Callable[..., Any]], Any]

FUNCTIONS: dict[str, Function] = {
    "matrices": lambda t, r: r(3, 4) @ r(4, 5),
    "batches": lambda t, r: r(2, 3, 4) @ r(2, 4, 5),
    "matrix and vector": lambda t, r: r(3, 4) @ r(4),
    "vectors": lambda t, r: r(4) @ r(4),
    "vector and matrix": lambda t, r: r(4) @ r(4, 3),
    "many dimensions": lambda t, r: r(2, 3, 4, 5) @ r(5, 6),
    "broadcast batches": lambda t, r: r(2, 1, 4, 5) @ r(3, 5, 6),
    "matrix and batch": lambda t, r: r(3, 4) @ r(2, 4, 5),
    "addmm": lambda t, r: t.addmm(r(5), r(3, 4), r(4, 5)),
    "baddbmm": lambda t, r: t.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)),
    "addmv": lambda t, r: t.addmv(r(3), r(3, 4), r(4)),
    "tensordot": lambda t, r: t.tensordot(r(2, 3, 4), r(3, 4, 5), 2),
    "tensordot of dimensions": lambda t, r: t.tensordot(r(2, 3, 4), r(4, 5, 2), ([0, 2], [2, 0])),
    "tensordot with a sum": lambda t, r: t.tensordot(r(2, 1, 4), r(4, 5, 3), ([1, 2], [2, 0])),
    "einsum": lambda t, r: t.einsum("ij,jk->ik", r(2, 3), r(3, 4)),
    "einsum of three": lambda t, r: t.einsum("ij,jk,kl->il", r(2, 3), r(3, 4), r(4, 5)),
    "einsum of batches": lambda t, r: t.einsum("bij,bjk,bkl->bil", r(6, 2, 3), r(6, 3, 4), r(6, 4, 5)),
    "einsum of four": lambda t, r: t.einsum("ij,jk,kl,lm->im", r(2, 3), r(3, 4), r(4, 5), r(5, 2)),
    "einsum with dots": lambda t, r: t.einsum("...ij,...jk->...ik", r(6, 2, 3), r(6, 3, 4)),
    "einsum of a diagonal": lambda t, r: t.einsum("ii,ij->j", r(3, 3), r(3, 4)),
    "einsum without a sum": lambda t, r: t.einsum("i,j->ij", r(3), r(4)),
    "einsum of rows": lambda t, r: t.einsum("ij,ij->i", r(3, 2), r(3, 2)),
    "bilinear": lambda t, r: t.nn.functional.bilinear(r(5, 3), r(5, 4), r(2, 3, 4), r(2)),
    "multi_dot": lambda t, r: t.linalg.multi_dot([r(2, 3), r(3, 4), r(4, 5)]),
    "multi_dot with vectors": lambda t, r: t.linalg.multi_dot([r(3), r(3, 4), r(4, 5), r(5)]),
    "multi_dot of five": lambda t, r: t.linalg.multi_dot([r(9, 2), r(2, 8), r(8, 3), r(3, 7), r(7, 2)]),
    "chain_matmul": lambda t, r: t.chain_matmul(r(2, 3), r(3, 4), r(4, 5)),
    "inner": lambda t, r: t.inner(r(2, 3), r(4, 3)),
    "inner of three dimensions": lambda t, r: t.inner(r(2, 5, 3), r(4, 3)),
    "matrix_power": lambda t, r: t.matrix_power(r(3, 3), 5),
    "matrix_power of batches": lambda t, r: t.linalg.matrix_power(r(2, 3, 3), 6),
    "cov": lambda t, r: t.cov(r(3, 5)),
    "corrcoef": lambda t, r: t.corrcoef(r(3, 5)),
    "outer": lambda t, r: t.outer(r(3), r(4)),
    "kron": lambda t, r: t.kron(r(2, 3), r(3, 2)),
    "vecdot": lambda t, r: t.linalg.vecdot(r(3, 4), r(3, 4)),
    "linear": lambda t, r: t.nn.functional.linear(r(2, 3, 4), r(5, 4), r(5)),
    "linear without bias": lambda t, r: t.nn.functional.linear(r(2, 3, 4), r(5, 4)),
    "linear of a vector": lambda t, r: t.nn.functional.linear(r(4), r(5, 4), r(5)),
    "conv1d": lambda t, r: t.nn.functional.conv1d(r(2, 3, 8), r(4, 3, 3)),
    "conv2d in groups": lambda t, r: t.nn.functional.conv2d(r(2, 4, 8, 8), r(6, 2, 3, 3), r(6), 2, 1, 1, 2),
    "conv3d": lambda t, r: t.nn.functional.conv3d(r(1, 2, 4, 4, 4), r(3, 2, 2, 2, 2)),
    "conv_transpose2d": lambda t, r: t.nn.functional.conv_transpose2d(r(2, 3, 5, 5), r(3, 4, 3, 3), None, 2),
    "conv_transpose1d": lambda t, r: t.nn.functional.conv_transpose1d(r(2, 3, 5), r(3, 4, 3)),
    "conv2d of one image": lambda t, r: t.nn.functional.conv2d(r(3, 8, 8), r(4, 3, 3, 3), padding="same"),
    "attention": lambda t, r: t.nn.functional.scaled_dot_product_attention(r(2, 3, 4), r(2, 5, 4), r(2, 5, 4)),
    "svd_lowrank": lambda t, r: t.svd_lowrank(r(5, 4), 2)[1],
    "pca_lowrank": lambda t, r: t.pca_lowrank(r(5, 4), 2)[1],
}
# Their backwards differ: torch's formula for singular values has other products.
OTHER_BACKWARD = {"svd_lowrank", "pca_lowrank"}


def _in(kind: str) -> Callable[[Callable[..., Any]], Function]:
    """Make a function of a transform: of a function of samples (6, 3, 4) and a matrix (4, 5)."""

    def of(function: Callable[..., Any]) -> Function:
        def run(t: Any, r: Any) -> Any:
            weight, x = r(4, 5), r(6, 3, 4)
            if kind == "vmap":
                return t.func.vmap(lambda a: function(t, a, weight))(x)
            if kind == "grad":
                return t.func.grad(lambda a: function(t, a, weight).sin().sum())(x[0])
            if kind == "vmap of grad":
                return t.func.vmap(t.func.grad(lambda a: function(t, a, weight).sin().sum()))(x)
            if kind == "per sample":
                return t.func.vmap(t.func.grad(lambda w, a: function(t, a, w).sin().sum()), (None, 0))(weight, x)
            if kind == "jvp":
                return t.func.jvp(lambda a, w: function(t, a, w), (x[0], weight), (x[1], weight))
            return t.func.jacrev(lambda a: function(t, a, weight))(x[0])

        return run

    return of


TRANSFORMS: dict[str, Function] = {
    f"{kind} of {name}": _in(kind)(function)
    for kind in ("vmap", "grad", "vmap of grad", "per sample", "jvp", "jacrev")
    for name, function in {
        "a product": lambda t, a, w: a @ w,
        "a sum over indices": lambda t, a, w: t.einsum("ij,jk->ik", a, w),
        "a layer": lambda t, a, w: t.nn.functional.linear(a, w.t()),
    }.items()
}

MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "Linear": (lambda n: n.Linear(4, 5), (3, 4)),
    "Conv1d": (lambda n: n.Conv1d(3, 4, 3), (2, 3, 8)),
    "Conv2d": (lambda n: n.Conv2d(3, 4, 3), (2, 3, 8, 8)),
    "Conv3d": (lambda n: n.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "ConvTranspose2d": (lambda n: n.ConvTranspose2d(3, 4, 3), (2, 3, 5, 5)),
    "LSTM": (lambda n: n.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3)),
    "GRU": (lambda n: n.GRU(3, 4, 2), (5, 2, 3)),
    "GRU of both ways": (lambda n: n.GRU(3, 4, bidirectional=True, batch_first=True), (5, 2, 3)),
    "RNN": (lambda n: n.RNN(3, 4), (5, 2, 3)),
    "RNN without biases": (lambda n: n.RNN(3, 4, nonlinearity="relu", bias=False), (5, 2, 3)),
    "LSTMCell": (lambda n: n.LSTMCell(3, 4), (5, 3)),
    "GRUCell": (lambda n: n.GRUCell(3, 4), (5, 3)),
    "RNNCell": (lambda n: n.RNNCell(3, 4), (5, 3)),
    "LayerNorm": (lambda n: n.Sequential(n.Linear(4, 6), n.LayerNorm(6), n.Linear(6, 2)), (3, 4)),
    "TransformerEncoderLayer": (
        lambda n: n.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (2, 5, 8),
    ),
    "GELU": (lambda n: n.Sequential(n.Linear(4, 8), n.GELU(), n.Linear(8, 3)), (5, 4)),
}
