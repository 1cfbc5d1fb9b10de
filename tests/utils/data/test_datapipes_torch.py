"""Data pipes: streams and tables made of each other give what torch's give, random orders included."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.oracle import outcome

PROGRAMS = [
    "list(wrap(range(10)).map(double).batch(3))",
    "list(wrap(range(10)).batch(3, drop_last=True).unbatch())",
    "list(wrap(range(10)).batch(2).batch(2).unbatch(unbatch_level=-1))",
    "list(wrap(range(10)).shuffle(buffer_size=4))",
    "list(wrap(range(10)).shuffle().set_seed(5))",
    "list(wrap(range(10)).shuffle().set_shuffle(False))",
    "list(wrap(range(7)).filter(is_even))",
    "list(wrap(range(6)).zip(wrap('abcd')))",
    "list(wrap(range(3)).concat(wrap('ab')))",
    "list(wrap(range(3)).mux(wrap('abcd')))",
    "[list(one) for one in wrap(range(6)).demux(2, is_odd)]",
    "[list(one) for one in wrap(range(4)).fork(3)]",
    "list(wrap(range(9)).groupby(third, buffer_size=5, group_size=2))",
    "list(wrap(range(9)).groupby(third, keep_key=True))",
    "list(wrap([(1, 2), (3, 4)]).map(double, input_col=0, output_col=-1))",
    "list(wrap([{'a': 1, 'b': 2}]).map(add, input_col=['a', 'b'], output_col='c'))",
    "list(wrap([(1, 2, 3)]).map(add, input_col=[0, 2]))",
    "[one.tolist() for one in wrap(range(4)).batch(2).collate()]",
    "list(settings.apply_sharding(wrap(range(7)).sharding_filter().map(double), 3, 1))",
    "list(settings.apply_shuffle_settings(wrap(range(5)), True))",
    "len(wrap(range(7)).batch(2)), len(wrap(range(7)).batch(2, drop_last=True)), len(wrap(range(3)).concat(wrap('ab')))",
    "len(wrap(range(3)).filter(is_even))",
    "wrap(range(3)).batch(0)",
    "wrap(range(3)).nothing",
    "repr(wrap(range(3)).map(double))",
    "[type(one).__name__ for one in settings.get_all_graph_pipes(graph.traverse_dps(wrap([1]).map(double)))]",
    "list(table(range(6)).shuffle())",
    "list(table(range(6)).map(double).batch(4))",
    "list(table('abc').concat(table('de')).zip(table(range(4))))",
    "table(range(3)).batch(2)[2]",
    "[one.tolist() for one in torch.utils.data.DataLoader(wrap(range(5)).map(double), 2)]",
    "two_iterators(wrap(range(3)))",
]


def double(x: Any) -> Any:
    return x * 2


def add(x: Any, y: Any) -> Any:
    return x + y


def is_even(x: int) -> bool:
    return x % 2 == 0


def is_odd(x: int) -> int:
    return x % 2


def third(x: int) -> int:
    return x % 3


def two_iterators(pipe: Any) -> Any:
    first = iter(pipe)
    next(first)
    return list(pipe), list(first)


def answer(library: Any, program: str) -> Any:
    name = library.__name__
    data = importlib.import_module(f"{name}.utils.data.datapipes")
    scope = {
        **{one.__name__: one for one in (double, add, is_even, is_odd, third, two_iterators)},
        "torch": library,
        "wrap": data.iter.IterableWrapper,
        "table": data.map.SequenceWrapper,
        "settings": importlib.import_module(f"{name}.utils.data.graph_settings"),
        "graph": importlib.import_module(f"{name}.utils.data.graph"),
    }
    library.manual_seed(0)
    return outcome(eval, program, scope, words=lambda error: str(error)[:60].rstrip("'"))


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pipe_gives_what_torchs_gives(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program) == answer(torch, program)


def test_files_are_listed_opened_and_decoded(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.json").write_text('{"one": 1}')
    (tmp_path / "c.bin").write_bytes(b"three")
    iter_ = importlib.import_module("retrograd.utils.data.datapipes.iter")
    names = list(iter_.FileLister(str(tmp_path), ["*.txt", "*.json"]))
    assert [Path(one).name for one in names] == ["a.json", "b.txt"]
    decoded = iter_.IterableWrapper(names).open_files("rb").routed_decode()
    assert [value for _, value in decoded] == [{"one": 1}, "two"]
    assert [value for _, value in iter_.IterableWrapper(names).open_files().read_from_stream()][1] == "two"
