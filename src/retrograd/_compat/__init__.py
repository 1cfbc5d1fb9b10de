"""Names that torch has and programs ask for, but that are not part of the library itself.

Private modules of torch (`torch._C`, `torch._dynamo`), devices that are absent here (`torch.mps`), and the lists of torch's names.
The folder stands on the package's `__path__`, so `_compat/_C` is `retrograd._C` and, under `as_torch`, `torch._C`. Files here import
the library by its full name (`from retrograd.func import vmap`), and no file of the library imports from here at its top.
"""
