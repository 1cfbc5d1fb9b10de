"""Recording: how a call on Tensors becomes an array and a node."""
