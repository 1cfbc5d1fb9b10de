"""torch.nn: modules and their parameters."""

from .._absent import finder
from . import attention as attention
from . import common_types as common_types
from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from . import utils as utils
from .modules import *
from .modules.module import Module as Module
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

__getattr__ = finder("torch.nn")
