"""torch.nn: modules and their parameters."""

from typing import TYPE_CHECKING, Any

from .._absent import finder
from .._tracebacks import guarded as _guarded
from . import attention as attention
from . import common_types as common_types
from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from . import utils as utils
from .modules.activation import *
from .modules.adaptive import *
from .modules.batchnorm import *
from .modules.channelshuffle import *
from .modules.container import *
from .modules.conv import *
from .modules.distance import *
from .modules.dropout import *
from .modules.flatten import *
from .modules.fold import *
from .modules.instancenorm import *
from .modules.lazy import *
from .modules.linear import *
from .modules.loss import *
from .modules.module import Module as Module
from .modules.normalization import *
from .modules.padding import *
from .modules.pixelshuffle import *
from .modules.pooling import *
from .modules.rnn import *
from .modules.sparse import *
from .modules.transformer import *
from .modules.upsampling import *
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

if TYPE_CHECKING:
    from ._summary import Summary as Summary
    from ._summary import summary as summary

_LATER = ("Summary", "summary")
_absent = finder("torch.nn")


@_guarded
def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    if name in _LATER:
        from . import _summary

        return getattr(_summary, name)
    return _absent(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
