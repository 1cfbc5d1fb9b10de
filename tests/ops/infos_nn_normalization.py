"""Normalisation and distances."""

from __future__ import annotations

import math

from tests.ops.opinfo import NOT_ZERO, POSITIVE, F, Op, S

OPS: list[Op] = []
REAL = ("float64", "float32", "bfloat16", "float16")
WIDE = ("float64", "float32")


def function(name, samples, *, label=None, **options):
    """Add a function that has its torch name in nn.functional."""
    options.setdefault("oracle_dtypes", REAL)
    call = lambda torch, *xs, **kw: getattr(torch.nn.functional, name)(*xs, **kw)  # noqa: E731
    OPS.append(Op(label or name, call, tuple(samples), **options))


# Long planes are taken as rows, short ones as columns: see Note [Planes] in _ops/normalization_channels.py.
SHORT, LONG, CUBE = F(4, 3), F(2, 4, 6, 6), F(2, 3, 2, 2, 2)
FAR = ((5.0, 6.1),)  # many deviations from 0

# ---- layers ----
function(
    "layer_norm",
    [
        S(F(3), (3,)),
        S(F(2, 5), (5,), F(5), F(5)),
        S(F(2, 3, 4), (3, 4), F(3, 4), F(3, 4)),
        S(F(2, 3, 4), (4,), None, F(4), eps=0.1),
        S(F(2, 3, 4), (2, 3, 4), F(2, 3, 4)),
        S(F(3, 4, layout="transposed"), (4,), F(4), F(4)),
        S(F(8, layout="strided"), (8,), F(8), F(8)),
        S(F(0, 3), (3,), F(3), F(3)),
        S(F(2, 0), (0,)),
    ],
)
function("layer_norm", [S(F(6), (6,), F(6)), S(F(3, 6), (6,), F(6), F(6))], label="layer_norm_far", domain=FAR)
function(
    "rms_norm",
    [S(F(3), (3,)), S(F(2, 5), (5,), F(5)), S(F(2, 3, 4), (3, 4), F(3, 4), 0.1), S(F(0, 3), (3,), F(3)), S(LONG, (6,))],
    domain=NOT_ZERO,
    complex=True,
    oracle_dtypes=None,
    same_graph=False,
)
# ---- channels ----
PARAMETERS = F(4), F(4)
function(
    "group_norm",
    [
        S(LONG, 2, *PARAMETERS),
        S(LONG, 4),
        S(LONG, 1, None, F(4)),
        S(F(3, 6), 2, F(6), F(6)),
        S(F(2, 4, 3), 2, F(4)),
        S(F(2, 4, 2, 2, 2), 4, *PARAMETERS, 0.1),
        S(F(0, 4, 3), 2, *PARAMETERS),
    ],
)
function("group_norm", [S(LONG, 2, *PARAMETERS)], label="group_norm_far", domain=FAR, oracle_dtypes=WIDE)
function(
    "group_norm",
    [S(F(6, 6, 4, 2, layout="transposed"), 3, F(6), F(6))],
    label="group_norm_transposed",
    same_graph=False,  # torch records a copy
)


def batch_norm(label, samples, *, training, statistics, **options):
    """Add batch_norm; with statistics, which it moves, as fresh tensors in every call."""

    def call(torch, x, *parameters, **kw):
        running = [None, None]
        if statistics:
            like = {"dtype": x.dtype, "device": x.device}
            channels = x.shape[1]
            running = [torch.linspace(-1, 1, channels, **like), torch.linspace(0.5, 2, channels, **like)]
        return torch.nn.functional.batch_norm(x, *running, *parameters, training=training, **kw)

    options.setdefault("oracle_dtypes", REAL)
    OPS.append(Op(label, call, tuple(samples), **options))


THREE = F(3), F(3)
SAMPLES = [
    S(SHORT, *THREE),
    S(SHORT),
    S(F(3, 4, 5), None, F(4)),
    S(LONG, *PARAMETERS),
    S(LONG, F(4), eps=0.1),
    S(CUBE, *THREE),
    S(F(4, 3, layout="transposed"), *THREE),
    S(F(6, 6, 4, 2, layout="transposed"), F(6)),
]
batch_norm("batch_norm", SAMPLES, training=True, statistics=False)
batch_norm("batch_norm_eval", [*SAMPLES, S(F(0, 3), *THREE)], training=False, statistics=True, same_graph=False)
batch_norm(
    "batch_norm_running",
    [S(SHORT, *THREE), S(LONG), S(F(0, 3), *THREE)],
    training=True,
    statistics=True,
    same_graph=False,
    batching=False,
)
batch_norm("batch_norm_far", [S(SHORT, *THREE), S(LONG, *PARAMETERS)], training=True, statistics=False, domain=FAR)
function(
    "instance_norm",
    [S(F(2, 3, 4)), S(LONG, None, None, *PARAMETERS), S(CUBE, None, None, F(3), eps=0.1)],
    oracle_dtypes=WIDE,
)
function(
    "local_response_norm",
    [S(F(2, 4, 3), 2), S(F(2, 5, 2, 2), 3, alpha=0.5, beta=0.6, k=1.5), S(CUBE, 5, alpha=0.3), S(F(1, 2, 3), 1)],
    oracle_dtypes=WIDE,
    same_graph=False,
)
OPS.append(
    Op(
        "native_norms",
        lambda torch, x, w: (
            torch.native_layer_norm(x, x.shape[1:], None, None, 0.1)[0]
            + torch.native_batch_norm(x, w, None, None, None, True, 0.1, 0.1)[0]
            + torch.native_group_norm(x, w, None, x.shape[0], x.shape[1], x[0, 0].numel(), 2, 0.1)[0]
        ),
        (S(LONG, F(4)), S(F(2, 4, 3), F(4))),
        oracle_dtypes=WIDE,
    )
)
# ---- distances ----
ROWS = F(3, 4), F(3, 4)
function("normalize", [S(F(3, 4)), S(F(2, 3, 2), dim=-1), S(F(4), dim=0), S(F(2, 3), p=1.0)], domain=NOT_ZERO)
function("normalize", [S(F(2, 3, 2), 3.0, -1), S(F(2, 3), p=math.inf)], label="normalize_p", domain=NOT_ZERO)
function(
    "cosine_similarity",
    [S(*ROWS), S(F(4), F(4), dim=0), S(F(), F(), dim=0), S(F(2, 1, 3), F(3, 3), dim=-1), S(F(0, 3), F(0, 3))],
    domain=NOT_ZERO,
    same_graph=False,
)
function(
    "pairwise_distance",
    [
        S(*ROWS),
        S(F(3), F(3)),
        S(F(2, 3), F(3), keepdim=True),
        S(*ROWS, p=1.0),
        S(*ROWS, p=3.0, eps=0.1),
        S(F(0, 3), F(3)),
    ],
    same_graph=False,  # torch adds a number by another node
    domain=POSITIVE,
)
