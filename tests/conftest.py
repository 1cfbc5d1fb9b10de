"""Tests that need torch are skipped without it; and two things that no test may depend on are drawn from a seed.

`pytest --order-seed 7` runs the tests in a random order. `pytest --noise-seed 7` changes the last bits of every factorisation.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # tests/gpu runs on machines where nothing can be installed, and needs none of it
    pass
else:
    # How long an example takes says something about the machine, not about the library.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-seed", type=int, metavar="NUMBER", help="run the tests in the random order of this seed")
    parser.addoption("--noise-seed", type=int, metavar="NUMBER", help="change the last bits of every factorisation")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--noise-seed")
    if seed is not None:
        from tests.last_bits import shake

        shake(seed)


def pytest_report_header(config: pytest.Config) -> list[str]:
    asked = ((name, config.getoption(name)) for name in ("--order-seed", "--noise-seed"))
    return [f"{name} {seed}" for name, seed in asked if seed is not None]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("oracle") is not None and find_spec("torch") is None:
        pytest.skip("compares with torch, which is not installed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--order-seed")
    if seed is not None:
        random.Random(seed).shuffle(items)  # the same in every worker of xdist, which compares them


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the collector of garbage away from what stays: tens of thousands of tests, half a second for each `gc.collect()`."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
