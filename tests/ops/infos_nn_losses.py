"""Losses."""

from __future__ import annotations

import numpy as np

from tests.ops.opinfo import EVERYWHERE, NOT_ZERO, POSITIVE, F, K, Op, S

OPS: list[Op] = []
REAL = ("float64", "float32", "bfloat16", "float16")
WIDE = ("float64", "float32")
INSIDE = ((0.1, 0.9),)
REDUCTIONS = ("none", "mean", "sum")
PLAIN, ROWS = F(2, 3), F(3, 4)


def loss(name, samples, *, label=None, **options):
    """Add a loss that has its torch name in nn.functional."""
    options.setdefault("oracle_dtypes", REAL)
    call = lambda torch, *xs, **kw: getattr(torch.nn.functional, name)(*xs, **kw)  # noqa: E731
    OPS.append(Op(label or name, call, tuple(samples), **options))


def reductions(*inputs, **options):
    return [S(*inputs, **options, reduction=reduction) for reduction in REDUCTIONS]


# ---- two tensors ----
PAIRS = [*reductions(PLAIN, PLAIN), S(F(), F()), S(F(0), F(0), reduction="sum"), S(F(2, 3, layout="transposed"), PLAIN)]
loss("mse_loss", [*PAIRS, S(F(4, layout="strided"), F(4))])
loss("l1_loss", PAIRS)
loss("smooth_l1_loss", [*PAIRS, *reductions(PLAIN, PLAIN, beta=0.7)], domain=((-2.1, -1.2), (-0.2, 0.2), (1.2, 2.1)))
loss("huber_loss", [*PAIRS, *reductions(PLAIN, PLAIN, delta=0.9)], domain=((-2.1, -1.2), (-0.2, 0.2), (1.2, 2.1)))
loss("soft_margin_loss", [*reductions(PLAIN, K([[1.0, -1, 1], [-1, 1, -1]])), S(F(), K(1.0))])
loss("binary_cross_entropy", PAIRS, domain=INSIDE)
loss("binary_cross_entropy_with_logits", PAIRS, oracle_dtypes=WIDE)
loss(
    "kl_div", [*reductions(PLAIN, F(2, 3, domain=INSIDE))[::2], S(PLAIN, PLAIN, log_target=True, reduction="batchmean")]
)
loss(
    "poisson_nll_loss",
    [*reductions(PLAIN, F(2, 3, domain=POSITIVE)), S(F(2, 3, domain=POSITIVE), PLAIN, log_input=False)],
)
loss("poisson_nll_loss", [S(PLAIN, F(2, 3, domain=((0.2, 0.8), (1.2, 3.0))), full=True)], label="poisson_nll_full")
loss(
    "hinge_embedding_loss",
    reductions(PLAIN, K([[1, -1, 1], [-1, 1, -1]]), margin=3.0),
    same_graph=False,
    oracle_dtypes=WIDE,
)


def _weighted(torch, x, y, weight, *, name, **options):
    """Weights get no gradient."""
    return getattr(torch.nn.functional, name)(x, y, weight=weight.detach(), **options)


WEIGHTS = K(np.array([[0.5, 1.5, 2.0], [1.0, 0.25, 3.0]]))
for _name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
    OPS.append(
        Op(
            f"{_name}_weighted",
            _weighted,
            tuple(S(PLAIN, PLAIN, WEIGHTS, name=_name, reduction=r) for r in REDUCTIONS),
            domain=INSIDE,
            oracle_dtypes=("float64",),
        )
    )
OPS.append(
    Op(
        "binary_cross_entropy_pos_weight",
        lambda torch, x, y, weight, **kw: torch.nn.functional.binary_cross_entropy_with_logits(
            x, y, pos_weight=weight, **kw
        ),
        tuple(S(PLAIN, PLAIN, K(np.array([0.5, 2.0, 1.25])), reduction=r) for r in REDUCTIONS),
        oracle_dtypes=("float64",),
    )
)
for _name in ("mse_loss", "l1_loss", "huber_loss"):
    OPS.append(
        Op(
            f"{_name}_weighted",
            lambda torch, x, y, w, *, name, **kw: getattr(torch.nn.functional, name)(x, y, weight=w, **kw),
            tuple(
                S(
                    F(2, 3, domain=EVERYWHERE),
                    F(2, 3, domain=((3.3, 4.0),)),
                    F(2, 3, domain=POSITIVE),
                    name=_name,
                    reduction=r,
                )
                for r in REDUCTIONS
            ),
            oracle_dtypes=WIDE,
        )
    )
loss(
    "gaussian_nll_loss",
    [*reductions(PLAIN, PLAIN, F(2, 3, domain=POSITIVE)), S(PLAIN, PLAIN, F(2, 1, domain=POSITIVE), full=True)],
    oracle_dtypes=WIDE,
    batching=False,
)

# ---- classes ----
CLASSES, SOME = K([1, 3, 0]), K([1, -100, 0])
CLASS_WEIGHTS = K(np.array([0.5, 1.5, 2.0, 0.75]))
PLACES = K([[1, 3, 0], [2, -100, 1]])
INDEXED = [
    *reductions(ROWS, CLASSES),
    *reductions(ROWS, SOME),
    *reductions(ROWS, CLASSES, ignore_index=3),
    S(F(3, 4, layout="transposed"), CLASSES),
    S(F(4), K(2)),
    S(F(4), K(2), reduction="none"),
    *reductions(F(2, 4, 3), PLACES),
    S(F(1, 4, 2, 2), K([[[0, 3], [1, 1]]])),
    S(F(1, 4, 2, 1, 2), K([[[[0, 3]], [[1, 1]]]]), reduction="none"),
]  # fmt: skip
loss("nll_loss", INDEXED, same_graph=False)
loss("cross_entropy", INDEXED, same_graph=False, oracle_dtypes=WIDE)
WEIGHTED = [S(*s.inputs, CLASS_WEIGHTS, **s.options) for s in INDEXED]
loss("nll_loss", WEIGHTED, label="nll_loss_weighted", same_graph=False, oracle_dtypes=("float64",))
loss("cross_entropy", WEIGHTED, label="cross_entropy_weighted", same_graph=False, oracle_dtypes=("float64",))
SMOOTHED = [S(*s.inputs, **s.options, label_smoothing=0.2) for s in [*INDEXED, *WEIGHTED]]
loss("cross_entropy", SMOOTHED, label="cross_entropy_smoothed", same_graph=False, oracle_dtypes=("float64",))
SHARES = F(3, 4, domain=INSIDE)
loss(
    "cross_entropy",
    [
        *reductions(ROWS, SHARES),
        S(ROWS, SHARES, label_smoothing=0.2),
        S(F(4), F(4, domain=INSIDE)),
        *reductions(F(2, 4, 3), F(2, 4, 3, domain=INSIDE)),
    ],
    label="cross_entropy_probabilities",
    same_graph=False,
    oracle_dtypes=WIDE,
)
loss(
    "multi_margin_loss",
    [*reductions(ROWS, CLASSES), S(ROWS, CLASSES, p=2), S(F(4), K(1)), S(ROWS, CLASSES, margin=0.5)],
    oracle_dtypes=WIDE,
)
loss(
    "multi_margin_loss",
    [S(ROWS, CLASSES, 2, 1.0, CLASS_WEIGHTS)],
    label="multi_margin_loss_weighted",
    oracle_dtypes=("float64",),
)
LABELS = K([[1, 0, -1, 2], [2, -1, 0, 0], [3, 3, 1, -1]], batched=False)
loss(
    "multilabel_margin_loss", [*reductions(ROWS, LABELS), S(F(4), K([2, 0, -1, 1], batched=False))], oracle_dtypes=WIDE
)
loss("multilabel_soft_margin_loss", reductions(ROWS, SHARES), oracle_dtypes=WIDE)

# ---- distances and ranking ----
SIGNS = K(np.array([1.0, -1.0, 1.0]))
loss("margin_ranking_loss", reductions(F(3), F(3), SIGNS, margin=5.0), same_graph=False, oracle_dtypes=WIDE)
loss(
    "cosine_embedding_loss",
    [*reductions(ROWS, ROWS, SIGNS, margin=-0.99), S(F(4), F(4), K(-1.0), margin=-0.99)],
    same_graph=False,
    oracle_dtypes=WIDE,
)
loss(
    "triplet_margin_loss",
    [*reductions(ROWS, ROWS, ROWS, margin=9.0), S(ROWS, ROWS, ROWS, p=3, margin=9.0, swap=True)],
    domain=NOT_ZERO,
    same_graph=False,
    oracle_dtypes=WIDE,
)
loss(
    "triplet_margin_with_distance_loss",
    reductions(ROWS, ROWS, ROWS, margin=9.0),
    domain=NOT_ZERO,
    same_graph=False,
    oracle_dtypes=WIDE,
)


# ---- alignments: the gradient is right behind a log_softmax only ----
def _ctc(torch, x, targets, *lengths, **options):
    lengths = lengths or (options.pop("input_lengths"), options.pop("target_lengths"))
    return torch.nn.functional.ctc_loss(x.log_softmax(-1), targets, *lengths, **options)


PADDED, JOINED = K([[1, 2, 2], [3, 1, 0]], batched=False), K([1, 2, 2, 3, 1], batched=False)
COUNTS = {"input_lengths": (6, 4), "target_lengths": (3, 2)}
OPS.append(
    Op(
        "ctc_loss",
        _ctc,
        (
            *(S(F(6, 2, 4), PADDED, **COUNTS, reduction=r) for r in REDUCTIONS),
            S(F(6, 2, 4), JOINED, **COUNTS),
            S(F(6, 2, 4), PADDED, K([6, 5], batched=False), K([3, 2], batched=False)),
            S(F(6, 2, 4), PADDED, input_lengths=(2, 4), target_lengths=(3, 0), zero_infinity=True, reduction="none"),
            S(F(5, 4), K([1, 3], batched=False), input_lengths=(5,), target_lengths=(2,)),
            S(F(6, 2, 4), PADDED, **COUNTS, blank=3),
        ),
        oracle_dtypes=("float32",),
        same_graph=False,
    )
)
OPS.append(
    Op(
        "linear_cross_entropy",
        lambda torch, x, w, b, t, **kw: torch.nn.functional.linear_cross_entropy(x, w, t, linear_bias=b, **kw),
        (
            *reductions(F(3, 2), F(4, 2), F(4), CLASSES),
            S(F(2, 3), F(4, 3, 3), F(4, 3), PLACES),
            S(F(2), F(4, 2), F(4), K(2)),
        ),
        oracle_dtypes=WIDE,
        same_graph=False,
    )
)
