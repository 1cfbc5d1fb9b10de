"""Tables of facts: whatever is changed in the objects that they name, the table tells, and it keeps no object and lets none go."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

import pytest

from retrograd._native import machine
from retrograd._native.facts import CODES, Fact, checking, dictionary_of

pytestmark = pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")


class Thing:
    pass


class World:
    def __init__(self) -> None:
        self.thing, self.items = Thing(), [1]
        self.thing.n, self.thing.kept = 2.5, self.items  # type: ignore[attr-defined]
        self.table: dict[Any, Any] = {"a": self.thing, "b": self.items}
        self.hooks: Any = OrderedDict()
        self.cls = type("Own", (), {"method": len})

    def facts(self) -> list[Fact]:
        thing = self.thing
        return [
            Fact("type", thing, Thing),
            Fact("empty", self.hooks),
            Fact("object", thing),
            Fact("value", "n", thing.n),  # type: ignore[attr-defined]
            Fact("value", "kept", self.items),
            Fact("absent", "other"),
            Fact("dictionary", self.table),
            Fact("length", 2),
            Fact("member", thing),
            Fact("member", self.items),
            Fact("value", "b", self.items),
            Fact("absent", "c"),
            Fact("dictionary", dictionary_of(self.cls.__dict__)),
            Fact("value", "method", len),
            Fact("absent", "other"),
        ]


class Other(Thing):
    pass


CHANGES: dict[str, Any] = {
    "class": lambda w: setattr(w.thing, "__class__", Other),
    "item": lambda w: w.hooks.update({1: 2}),
    "value": lambda w: setattr(w.thing, "n", 3.5),
    "equal value": lambda w: setattr(w.thing, "n", float("2.5")),
    "deleted": lambda w: delattr(w.thing, "n"),
    "added": lambda w: setattr(w.thing, "other", None),
    "dictionary of an object": lambda w: setattr(w.thing, "__dict__", {"n": w.thing.n, "kept": [1]}),
    "entry": lambda w: w.table.update(b=[1]),
    "more entries": lambda w: w.table.update(d=1),
    "fewer entries": lambda w: w.table.pop("a"),
    "order": lambda w: w.table.update(a=w.table.pop("a")),
    "attribute of a class": lambda w: setattr(w.cls, "other", 1),
    "method": lambda w: setattr(w.cls, "method", max),
    "no method": lambda w: delattr(w.cls, "method"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str) -> None:
    world = World()
    check = checking(world.facts())
    assert check() is True
    CHANGES[name](world)
    assert check() is False
    assert check() is False


def test_each_fact_is_asked_for_itself() -> None:
    """Of two facts the first must not stand for the second: with each fact alone, some changes are seen and others are not."""
    seen = set()
    for name, change in CHANGES.items():
        world = World()
        facts = world.facts()
        change(world)
        about: Fact | None = None
        before: list[Fact] = []
        for fact in facts:
            if fact.kind in ("object", "dictionary"):
                about, before = fact, []
                assert checking([about])()
                continue
            if fact.kind == "member":
                before.append(fact)
            alone = [fact] if about is None else [about, *(before or [fact])]
            if not checking(alone)():
                seen.add((fact.kind, name))
    assert {kind for kind, _ in seen} == set(CODES) - {"object", "dictionary"}
    assert ("absent", "value") not in seen
    assert ("type", "item") not in seen
    assert ("length", "order") not in seen
    assert ("member", "order") in seen


def test_the_same_entries_in_another_dictionary_are_the_same() -> None:
    world = World()
    check = checking(world.facts())
    world.thing.__dict__ = dict(world.thing.__dict__)
    assert check()


def test_nothing_is_kept_or_let_go() -> None:
    world = World()
    facts = world.facts()
    check = checking(facts)
    objects = [world.thing, world.items, world.table, world.hooks, world.thing.__dict__, facts[3].second, Thing]
    before = [sys.getrefcount(one) for one in objects]
    results = sys.getrefcount(True), sys.getrefcount(False)
    for _ in range(1000):
        check()
    world.table["d"] = 1
    for _ in range(1000):
        check()
    assert [sys.getrefcount(one) for one in objects] == before
    after = sys.getrefcount(True), sys.getrefcount(False)
    assert all(abs(a - b) < 100 for a, b in zip(results, after, strict=True))  # a thousand calls would be seen


def test_what_a_table_names_lives_as_long_as_the_table() -> None:
    table = checking(
        [Fact("object", Thing()), Fact("absent", "n"), Fact("dictionary", {"a": "x" * 100}), Fact("length", 1)]
    )
    assert table()


def test_an_error_is_no_error() -> None:
    """What cannot be asked does not hold, and no exception is left behind."""

    class Loud:
        def __eq__(self, other: object) -> bool:
            raise ArithmeticError("asked")

        def __hash__(self) -> int:
            return hash("a")

    table: dict[Any, Any] = {Loud(): 1}
    for facts in (
        [Fact("dictionary", table), Fact("value", "a", 1)],
        [Fact("dictionary", table), Fact("absent", "a")],
        [Fact("object", 1), Fact("absent", "a")],  # a number has no dictionary
        [Fact("value", "a", 1)],  # of nothing
        [Fact("empty", [])],  # which is no dictionary
    ):
        assert checking(facts)() is False
    assert len(table) == 1
