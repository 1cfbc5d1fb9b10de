"""The table of compositions: importing this module gathers the rows of every theme."""

from __future__ import annotations

from tests.transforms import (
    rows_autograd,
    rows_batching,
    rows_capture,
    rows_complex,
    rows_confusion,
    rows_function,
    rows_higher,
    rows_mutation,
    rows_nesting,
    rows_state,
    rows_trees,
)
from tests.transforms.composition_row import ROWS, Row

THEMES = (
    rows_nesting,
    rows_confusion,
    rows_capture,
    rows_autograd,
    rows_batching,
    rows_trees,
    rows_higher,
    rows_complex,
    rows_mutation,
    rows_function,
    rows_state,
)
TABLE: list[Row] = list(ROWS.values())
