"""torch.nn.functional: the functions behind the modules.

Some of them are functions of the package as well, with other arguments or results: `torch.layer_norm` stands in
`_torch_normalization.py`, and `torch.nn.functional.layer_norm`, which rests on it, in `_normalization.py`.
"""

from ..._absent import finder
from ...tensor._table import in_place_function
from ._activations import *
from ._attention import *
from ._convolution import *
from ._distances import *
from ._dropout import *
from ._embeddings import *
from ._linear import *
from ._losses import *
from ._normalization import *
from ._padding import *
from ._pooling import *
from ._resizing import *
from ._shuffling import *

__getattr__ = finder("torch.nn.functional")

# Functions, as in torch, and not methods: their tensor is called `input`, and others than tensors may take them over.
for _name in ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"):
    globals()[_name] = in_place_function(globals()[_name])
for _name in ("elu_", "hardtanh_", "leaky_relu_"):  # those that the package does not have
    globals()[_name].__module__ = __name__
