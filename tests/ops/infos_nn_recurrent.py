"""Recurrent layers and cells."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import F, Op, S, Sample

OPS: list[Op] = []
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SMALL = ((-0.9, 0.9),)
REAL = ("float64", "float32", "bfloat16", "float16")


def weights(kind: str, inputs: int, hidden: int, *, bias: bool = True, projection: int = 0) -> list[Any]:
    """Return the parameters of one layer in one direction."""
    gates, output = GATES[kind] * hidden, projection or hidden
    params = [F(gates, inputs), F(gates, output)]
    params += [F(gates), F(gates)] if bias else []
    return params + ([F(projection, hidden)] if projection else [])


def layer(
    kind: str, x: Any, batch: int, *, layers: int = 1, bidirectional: bool = False, bias: bool = True, **options: Any
) -> Sample:
    """Return a call of a whole network with two hidden numbers."""
    hidden, projection = 2, options.pop("projection", 0)
    directions = 2 if bidirectional else 1
    params: list[Any] = []
    for k in range(layers):
        inputs = (projection or hidden) * directions if k else x.shape[-1]
        for _ in range(directions):
            params += weights(kind, inputs, hidden, bias=bias, projection=projection)
    states = [F(layers * directions, batch, projection or hidden)]
    if kind == "lstm":
        states.append(F(layers * directions, batch, hidden))
    return S(x, states, params, layers=layers, bidirectional=bidirectional, bias=bias, **options)


def call(kind: str) -> Any:
    """Return a function that calls torch.<kind>, packed if the sizes of its steps are given."""

    def run(
        torch: Any,
        x: Any,
        states: Any,
        params: Any,
        *,
        layers: int,
        bidirectional: bool,
        bias: bool,
        sizes: Any = None,
        batch_first: bool = False,
    ) -> Any:
        hx = states if kind == "lstm" else states[0]
        function = getattr(torch, kind)
        if sizes is None:
            return function(x, hx, params, bias, layers, 0.0, True, bidirectional, batch_first)
        return function(x, torch.tensor(sizes), hx, params, bias, layers, 0.0, True, bidirectional)

    return run


for _kind in GATES:
    _samples = [
        layer(_kind, F(2, 2, 3), 2),
        layer(_kind, F(1, 3, 2), 3, bias=False),
        layer(_kind, F(2, 0, 2), 0),
        layer(_kind, F(1, 2, 2, layout="transposed"), 1, batch_first=True),
        layer(_kind, F(3, 1, 2), 1, layers=2, bidirectional=True),
        layer(_kind, F(4, 2), 2, sizes=(2, 1, 1), bidirectional=True),
    ]
    if _kind == "lstm":
        _samples += [
            layer(_kind, F(2, 2, 2), 2, projection=1),
            layer(_kind, F(3, 2), 2, projection=1, bidirectional=True, layers=2, bias=False, sizes=(2, 1)),
        ]
    OPS.append(Op(_kind, call(_kind), tuple(_samples), domain=SMALL, same_graph=False, oracle_dtypes=REAL))


def cell(kind: str) -> Any:
    """Return a function that calls torch.<kind>_cell."""

    def run(torch: Any, x: Any, states: Any, params: Any) -> Any:
        return getattr(torch, f"{kind}_cell")(x, states if kind == "lstm" else states[0], *params)

    return run


def cell_sample(kind: str, batch: int, inputs: int, *, bias: bool = True, layout: str = "plain") -> Sample:
    """Return one step with two hidden numbers."""
    states = [F(batch, 2, layout=layout) for _ in range(2 if kind == "lstm" else 1)]
    return S(F(batch, inputs, layout=layout), states, weights(kind, inputs, 2, bias=bias))


for _kind in GATES:
    OPS.append(
        Op(
            f"{_kind}_cell",
            cell(_kind),
            (
                cell_sample(_kind, 2, 3),
                cell_sample(_kind, 1, 2, bias=False),
                cell_sample(_kind, 0, 2),
                cell_sample(_kind, 3, 2, layout="transposed"),
            ),
            domain=SMALL,
            same_graph=False,
            oracle_dtypes=REAL,
        )
    )


def pack(torch: Any, x: Any, *, lengths: list[int], batch_first: bool = False) -> Any:
    """Return the rows of packed sequences."""
    return torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths, device="cpu"), batch_first).data


def unpack(torch: Any, rows: Any, *, sizes: list[int], batch_first: bool = False) -> Any:
    """Return padded sequences of packed rows."""
    rnn = torch.nn.utils.rnn
    return rnn.pad_packed_sequence(rnn.PackedSequence(rows, torch.tensor(sizes, device="cpu")), batch_first)[0]


OPS += [
    Op(
        "pack_padded_sequence",
        pack,
        (S(F(3, 2, 2), lengths=[3, 1]), S(F(2, 3), lengths=[3, 2], batch_first=True)),
        same_graph=False,
    ),
    Op(
        "pad_packed_sequence",
        unpack,
        (S(F(4, 2), sizes=[2, 1, 1]), S(F(5), sizes=[3, 2], batch_first=True)),
        same_graph=False,
    ),
]
