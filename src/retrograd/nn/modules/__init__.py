"""The modules of nn."""

from ..._absent import finder
from . import utils as utils
from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .lazy import *
from .linear import *
from .loss import *
from .module import Module as Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *

__getattr__ = finder("torch.nn.modules")

__all__ = sorted(name for name, value in globals().items() if isinstance(value, type))  # all are classes
