"""The modules behind torch.func, under the names by which libraries import from them."""
