"""Saving and loading, what files read with `weights_only` may name, and where their storages go."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import mkdtemp
from typing import Any, TypeAlias

from ._device import _get_layout, device
from .tensor._files.loading import get_unsafe_globals_in_checkpoint, load
from .tensor._files.locations import default_restore_location, location_tag, register_package, validate_cuda_device
from .tensor._files.old_files import MAGIC as MAGIC_NUMBER
from .tensor._files.old_files import VERSION as PROTOCOL_VERSION
from .tensor._files.old_files import SourceChangeWarning
from .tensor._files.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .tensor._files.safe_pickles import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .tensor._files.saving import DEFAULT_PROTOCOL, save
from .tensor._storage.storages import UntypedStorage
from .tensor._storage.typed_storages import OLD_STORAGES
from .torch_version import numbers_of

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAGIC_NUMBER",
    "PROTOCOL_VERSION",
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "_get_layout",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]


MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # for annotations


class StorageType:
    """The class of a storage, as a file describes it."""


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Tell whether a module is of a release or of a later one."""
    return numbers_of(module.__version__) >= req_version_tuple


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the class of storages that a file names by a class or a name."""
    return OLD_STORAGES.get(getattr(storage_type, "__name__", str(storage_type)), UntypedStorage)


def storage_to_tensor_type(storage: Any) -> Any:
    """Return the old class of the tensors that lie on a storage."""
    from .tensor._object import old_types as _legacy

    return getattr(_legacy, storage.pickle_storage_type().replace("Storage", "Tensor"))


def validate_hpu_device(location: str) -> int:
    """Refuse: there are no such devices here."""
    raise RuntimeError(
        "The HPU device module is not registered. If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') to map your storages to the CPU."
    )
