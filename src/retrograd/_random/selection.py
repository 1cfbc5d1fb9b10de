"""Choose the largest values in the order of torch.topk, also among equal ones."""

from __future__ import annotations

import numpy as np

from .filling import Array

# Beyond this many values equal ones come by index: following torch's algorithm there would take seconds.
_EXACT_TIES_LIMIT = 1 << 17
# Up to this length libstdc++ leaves a range to the final insertion sort.
_SHORT_RANGE = 16


def largest(values: Array, count: int) -> Array:
    """Return the indices of the `count` largest values, largest first."""
    threshold = np.partition(values, values.size - count)[values.size - count]
    candidates = np.flatnonzero(values >= threshold)
    order = candidates[np.argsort(-values[candidates], kind="stable")]
    ranked = values[order]
    is_unambiguous = order.size == count and bool((ranked[1:] != ranked[:-1]).all())
    if is_unambiguous or values.size > _EXACT_TIES_LIMIT:
        return order[:count]
    # Smaller rank is larger value; NaN is the largest of all.
    ranks = -np.unique(values, return_inverse=True)[1]
    return np.array(_Selection(ranks.tolist()).take(count), np.int64)


class _Selection:
    """Order ranks as libstdc++'s nth_element, sort and partial_sort do, which decides between equal ones."""

    def __init__(self, ranks: list[int]) -> None:
        self.queue = list(zip(ranks, range(len(ranks)), strict=True))

    def take(self, count: int) -> list[int]:
        """Return the indices of the `count` smallest ranks by the algorithm torch picks for that count."""
        size = len(self.queue)
        if count * 64 <= size:
            self.partial_sort(0, count, size)
        else:
            self.nth_element(count - 1, size)
            self.sort(0, count - 1)
        return [index for _, index in self.queue[:count]]

    def swap(self, a: int, b: int) -> None:
        self.queue[a], self.queue[b] = self.queue[b], self.queue[a]

    def sift(self, first: int, length: int, hole: int, entry: tuple[int, int]) -> None:
        """Put an entry into the heap at a hole: sink the hole to the bottom, then float the entry up."""
        queue, top = self.queue, hole
        while 2 * hole + 2 < length:
            child = 2 * hole + 2
            if queue[first + child][0] < queue[first + child - 1][0]:
                child -= 1
            queue[first + hole] = queue[first + child]
            hole = child
        if 2 * hole + 2 == length:
            queue[first + hole] = queue[first + 2 * hole + 1]
            hole = 2 * hole + 1
        while hole > top and queue[first + (hole - 1) // 2][0] < entry[0]:
            queue[first + hole] = queue[first + (hole - 1) // 2]
            hole = (hole - 1) // 2
        queue[first + hole] = entry

    def pop_to(self, first: int, last: int, place: int) -> None:
        """Move the top of the heap to `place` and what stood there into the heap."""
        entry = self.queue[place]
        self.queue[place] = self.queue[first]
        self.sift(first, last - first, 0, entry)

    def heap_select(self, first: int, middle: int, last: int) -> None:
        for hole in range((middle - first - 2) // 2, -1, -1):
            self.sift(first, middle - first, hole, self.queue[first + hole])
        for place in range(middle, last):
            if self.queue[place][0] < self.queue[first][0]:
                self.pop_to(first, middle, place)

    def partial_sort(self, first: int, middle: int, last: int) -> None:
        self.heap_select(first, middle, last)
        for end in range(middle - 1, first, -1):
            self.pop_to(first, end, end)

    def partition(self, first: int, last: int) -> int:
        """Move the median of three to the front, split the rest around it and return where."""
        queue = self.queue
        one, middle, end = first + 1, first + (last - first) // 2, last - 1
        rank_one, rank_middle, rank_end = queue[one][0], queue[middle][0], queue[end][0]
        if rank_one < rank_middle:
            median = middle if rank_middle < rank_end else end if rank_one < rank_end else one
        else:
            median = one if rank_one < rank_end else end if rank_middle < rank_end else middle
        self.swap(first, median)
        pivot = queue[first][0]
        left, right = first + 1, last
        while True:
            while queue[left][0] < pivot:
                left += 1
            right -= 1
            while pivot < queue[right][0]:
                right -= 1
            if left >= right:
                return left
            self.swap(left, right)
            left += 1

    def insertion_sort(self, first: int, last: int) -> None:
        # A stable sort orders a range exactly as insertion does.
        self.queue[first:last] = sorted(self.queue[first:last], key=lambda entry: entry[0])

    def nth_element(self, nth: int, last: int) -> None:
        first, budget = 0, 2 * (last.bit_length() - 1)
        while last - first > 3:
            if budget == 0:
                self.heap_select(first, nth + 1, last)
                self.swap(first, nth)
                return
            budget -= 1
            cut = self.partition(first, last)
            if cut <= nth:
                first = cut
            else:
                last = cut
        self.insertion_sort(first, last)

    def sort(self, first: int, last: int) -> None:
        self.sort_coarsely(first, last, 2 * max((last - first).bit_length() - 1, 0))
        self.insertion_sort(first, last)

    def sort_coarsely(self, first: int, last: int, budget: int) -> None:
        while last - first > _SHORT_RANGE:
            if budget == 0:
                self.partial_sort(first, last, last)
                return
            budget -= 1
            cut = self.partition(first, last)
            self.sort_coarsely(cut, last, budget)
            last = cut
