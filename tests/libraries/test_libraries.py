"""Libraries of others do real work on retrograd, unmodified, and print what they print on torch.

The libraries are large, so neither the development extra nor CI installs them: `make libraries` does, into an environment of
its own without torch. Elsewhere these tests are skipped.
"""

from __future__ import annotations

import pytest

from tests.libraries.checking import DRIVERS, differences, missing_libraries, recording, run


@pytest.mark.parametrize("driver", DRIVERS)
def test_library_prints_what_it_prints_on_torch(driver: str) -> None:
    if absent := missing_libraries(driver):
        pytest.skip(f"{', '.join(absent)} not installed: `make libraries` installs it")
    assert not differences(recording(driver).read_text(), run(driver))


@pytest.mark.parametrize(
    ("expected", "actual", "alike"),
    [
        ("loss 0.123", "loss 0.125", True),
        ("loss 0.123", "loss 0.126", False),
        ("loss 0.123", "cost 0.123", False),
        ("12 samples", "13 samples", False),
        ("1.5e-03", "1.7e-03", True),
        ("1.5e-03", "1.8e-03", False),
        ("[1.0, nan]", "[1.0, nan]", True),
        ("one\ntwo", "one", False),
    ],
)
def test_outputs_are_alike_within_two_units_of_the_last_digit(expected: str, actual: str, alike: bool) -> None:
    assert (not differences(expected, actual)) is alike


def test_every_driver_has_a_recording() -> None:
    drivers = {path.stem for path in recording("x").parent.glob("*.txt")}
    assert drivers == set(DRIVERS)
