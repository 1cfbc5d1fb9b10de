"""torch.utils.data._utils: the parts of data loading that programs import from here."""

from __future__ import annotations

from . import collate, exceptions, fetch, pin_memory, worker
from .exceptions import ExceptionWrapper
from .worker import CHECK_INTERVAL as MP_STATUS_CHECK_INTERVAL

HAS_NUMPY = True  # torch can be without it
python_exit_status = False  # whether Python is ending

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "collate", "exceptions", "fetch", "pin_memory", "worker"]
