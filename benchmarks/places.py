"""What does recording the user's line cost a small operation?

python benchmarks/places.py
"""

from __future__ import annotations

from compare import compare, report

import retrograd
from retrograd.tensor import _record


class _NoFrame:
    f_code = None
    f_lasti = 0


def main() -> None:
    a = retrograd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = retrograd.tensor([0.5, 0.6, 0.7], requires_grad=True)
    frame, nothing = _record.get_frame, _NoFrame()

    def with_places():
        return a * b

    def without_places():
        _record.get_frame = lambda _, nothing=nothing: nothing
        try:
            return a * b
        finally:
            _record.get_frame = frame

    def swap_alone():
        _record.get_frame = lambda _, nothing=nothing: nothing
        _record.get_frame = frame

    with_row = compare("a * b with places", with_places, with_places)
    without = compare("a * b without", without_places, without_places)
    swap = compare("switching them off", swap_alone, swap_alone)
    cost = with_row.ours_us - (without.ours_us - swap.ours_us)
    report("recording places", [with_row, without, swap])
    print(f"  share of the smallest operation: about {100 * cost / with_row.ours_us:.0f} %")


if __name__ == "__main__":
    main()
