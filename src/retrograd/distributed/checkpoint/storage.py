"""torch.distributed.checkpoint.storage: the kinds of places for checkpoints. There is one of each: a folder."""

from .filesystem import FileSystemReader as StorageReader
from .filesystem import FileSystemWriter as StorageWriter

__all__ = ["StorageReader", "StorageWriter"]
