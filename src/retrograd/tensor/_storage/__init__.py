"""The memory under tensors: storages, copies that keep what is shared, other processes."""
