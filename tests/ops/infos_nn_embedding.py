"""Tables that are looked up. Padding and frequencies, which change the gradient but not the value, have tests of their own."""

from __future__ import annotations

from tests.ops.opinfo import F, K, Op, S

INDICES = K([[0, 2], [2, 1]])


def embedding(torch, weight, indices, **kw):
    return torch.nn.functional.embedding(indices, weight, **kw)


def embedding_bag(torch, weight, indices, *own, offsets=None, **kw):
    if offsets is not None:
        kw["offsets"] = torch.tensor(offsets)
    if own:
        kw["per_sample_weights"] = own[0]
    return torch.nn.functional.embedding_bag(indices, weight, **kw)


OPS = [
    Op(
        "nn_embedding",
        embedding,
        (
            S(F(4, 3), INDICES),
            S(F(4, 3), K(1)),
            S(F(4, 3, layout="transposed"), INDICES),
        ),
    ),
    Op(
        "nn_embedding_bag",
        embedding_bag,
        (
            S(F(4, 3), INDICES),
            S(F(4, 3), INDICES, mode="sum"),
            S(F(4, 3), INDICES, mode="max"),
            S(F(4, 3), INDICES, mode="mean", padding_idx=2),
            S(F(4, 3), INDICES, F(2, 2), mode="sum"),
            S(F(4, 3), K([0, 1, 1, 3, 2]), mode="mean", offsets=[0, 3, 3]),
            S(F(4, 3), K([0, 1, 1, 3, 2]), mode="max", offsets=[0, 3, 3]),
            S(F(4, 3), K([0, 1, 1, 3, 2]), mode="sum", offsets=[0, 3, 5], include_last_offset=True),
        ),
        same_graph=False,
    ),
]
