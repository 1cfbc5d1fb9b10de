"""torch's functions and methods of tensors, by family; a file has the name of its family in `_ops/`."""
