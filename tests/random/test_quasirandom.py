"""Sobol sequences: torch's points, plain and scrambled."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from retrograd.quasirandom import SobolEngine
from tests.autograd.recording import Programs, caught

program = Programs("quasirandom")


def engine(torch, *args, **kwargs):
    return import_module(f"{torch.__name__}.quasirandom").SobolEngine(*args, **kwargs)


@program
def points_one_by_one_and_many(torch):
    e = engine(torch, 5)
    return e.draw(), e.draw(4), e.draw(2, dtype=torch.float64), e.num_generated, repr(e), e.quasi


@program
def scrambled_points(torch):
    e = engine(torch, 4, scramble=True, seed=7)
    torch.manual_seed(5)
    return e.draw(6), repr(e), engine(torch, 3, scramble=True).draw(2)


@program
def leaving_out_and_beginning_again(torch):
    e = engine(torch, 3)
    e.fast_forward(3)
    after = e.draw(2)
    e.reset()
    return (
        after,
        e.draw_base2(2),
        caught(e.draw_base2, 4),
        e.draw_base2(2),
        engine(torch, 2).fast_forward(4).draw_base2(2),
    )


@program
def out_and_refusals(torch):
    out = torch.empty(0)
    engine(torch, 2).draw(3, out=out)
    return out, caught(engine, torch, 0), caught(engine, torch, 21202)


@program
def many_dimensions(torch):
    return engine(torch, 21201).draw(3)[2, ::997], engine(torch, 21201).sobolstate[::1999, ::7]


test_as_torch, test_recording_is_torchs = program.tests()


def test_points_fill_each_half_equally() -> None:
    points = SobolEngine(8, scramble=True, seed=1).draw(256).numpy()
    assert np.array_equal((points < 0.5).sum(0), [128] * 8)
    assert all(len(set(np.floor(column * 256))) == 256 for column in points.T)
