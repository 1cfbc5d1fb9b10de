"""The engine of a group of one process: what it gives, it gets. It needs neither MPI nor a device."""

from __future__ import annotations

from typing import Any

from ._reductions import before


class _Done:
    """A request that has ended."""

    @staticmethod
    def Test() -> bool:  # noqa: N802 - as MPI's requests have it
        return True


DONE = _Done()


class Alone:
    """What one process does with itself. Arrays have one dimension, and are written where they stand."""

    rank, size = 0, 1
    on_host = False  # it takes arrays where they are

    def all_reduce(self, flat: Any, op: Any) -> Any:
        """Reduce one term."""
        terms = before(flat, op)
        if terms is not flat:
            flat[...] = terms
        return DONE

    def reduce(self, flat: Any, root: int, op: Any) -> Any:
        """Reduce one term."""
        return self.all_reduce(flat, op)

    def broadcast(self, flat: Any, root: int) -> Any:
        """Leave the numbers as they are."""
        return DONE

    def all_gather(self, out: Any, given: Any) -> Any:
        """Copy the numbers."""
        out[...] = given
        return DONE

    def gather(self, out: Any, given: Any, root: int) -> Any:
        """Copy the numbers."""
        return self.all_gather(out, given)

    def scatter(self, out: Any, given: Any, root: int) -> Any:
        """Copy the numbers."""
        return self.all_gather(out, given)

    def reduce_scatter(self, out: Any, given: Any, op: Any) -> Any:
        """Copy the numbers, reduced."""
        out[...] = before(given, op)
        return DONE

    def all_to_all(self, out: Any, counts: list[int], given: Any, given_counts: list[int]) -> Any:
        """Copy the numbers."""
        return self.all_gather(out, given)

    def barrier(self) -> Any:
        """Be here."""
        return DONE
