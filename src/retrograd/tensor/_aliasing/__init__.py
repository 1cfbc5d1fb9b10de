"""Views and writes: tensors that share memory, and what in-place operations do to the graph."""
