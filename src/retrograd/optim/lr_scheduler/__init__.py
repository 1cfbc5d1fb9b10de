"""torch.optim.lr_scheduler: rates that change from epoch to epoch."""

from ..optimizer import Optimizer as Optimizer
from ._base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._base import LRScheduler as LRScheduler
from ._base import _enable_get_lr_call as _enable_get_lr_call
from ._base import _LRScheduler as _LRScheduler
from ._base import _warn_get_lr_called_within_step as _warn_get_lr_called_within_step
from ._composed import ChainedScheduler as ChainedScheduler
from ._composed import SequentialLR as SequentialLR
from ._cyclic import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from ._cyclic import CyclicLR as CyclicLR
from ._cyclic import OneCycleLR as OneCycleLR
from ._decay import ConstantLR as ConstantLR
from ._decay import CosineAnnealingLR as CosineAnnealingLR
from ._decay import ExponentialLR as ExponentialLR
from ._decay import LambdaLR as LambdaLR
from ._decay import LinearLR as LinearLR
from ._decay import MultiplicativeLR as MultiplicativeLR
from ._decay import MultiStepLR as MultiStepLR
from ._decay import PolynomialLR as PolynomialLR
from ._decay import StepLR as StepLR
from ._plateau import ReduceLROnPlateau as ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
