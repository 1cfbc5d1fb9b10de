"""Batch normalisation."""

from __future__ import annotations

from typing import Any

from ..._dtypes import int64
from ..._modes import current_mode
from ..._public import set_all
from ...tensor._functions.creation import empty, ones, tensor, zeros
from ...tensor._functions.elementwise import add
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import later_buffer, later_parameter, make_parameter
from ._layers import with_named_init
from .lazy import LazyModuleMixin
from .module import Module


class _NormBase(Module):
    """What batch and instance normalisation have in common: parameters and running statistics by channel."""

    _version = 2  # since which num_batches_tracked is part of the state
    _ranks: tuple[int, ...] = ()  # of inputs
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            parameter = make_parameter(empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, parameter)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set scales to 1 and shifts to 0, and reset the running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        if not self._ranks:
            raise NotImplementedError
        if input.dim() not in self._ranks:
            _refuse(" or ".join([f"{rank}D" for rank in self._ranks]), input)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own is not None and own.device.type != "meta" else tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


@with_named_init
class _BatchNorm(_NormBase):
    """Normalise each channel over the batch in training, by running statistics in evaluation."""

    _normalises_batches = True  # by which `func.replace_all_batch_norm_modules_` knows it

    def forward(self, input: Any) -> Any:
        """Normalise, and in training move the running statistics."""
        self._check_input_dim(input)
        training, tracks = self.training, self.track_running_stats
        factor = 0.0 if self.momentum is None else self.momentum
        running_mean, running_var = self.running_mean, self.running_var
        if training and tracks and (count := self.num_batches_tracked) is not None:
            if (
                current_mode().transforms
            ):  # which refuse in-place operations on what was made outside: torch's layer fails here
                add(count, 1, out=count)
            else:
                count.add_(1)
            if self.momentum is None:  # the average of all batches so far
                factor = 1.0 / float(count)
        if training and not tracks:
            running_mean = running_var = None
        by_batch = training or (running_mean is None and running_var is None)
        return self._normalise(input, (running_mean, running_var), by_batch, factor)

    def _normalise(self, input: Any, running: tuple[Any, Any], by_batch: bool, factor: float) -> Any:
        return F.batch_norm(input, *running, self.weight, self.bias, by_batch, factor, self.eps)


def _refuse(wanted: str, input: Any) -> None:
    raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation whose number of channels is that of its first input."""

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = later_parameter(device=device, dtype=dtype)
            if bias:
                self.bias = later_parameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = later_buffer(device=device, dtype=dtype)
            self.running_var = later_buffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Reset what has a shape already."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Take the number of channels from the input, or from what has been loaded."""
        members = [getattr(self, name) for name in ("weight", "bias", "running_mean", "running_var")]
        members = [value for value in members if value is not None]
        if not members:
            return
        fresh = self.has_uninitialized_params()
        self.num_features = input.shape[1] if fresh else members[0].shape[0]
        if fresh:
            for value in members:
                value.materialize((self.num_features,))
            self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of (N, C) or (N, C, L) over the samples.

    Args:
        num_features: C
        eps: what is added to the variance
        momentum: the share of a batch in the running statistics; None averages over all batches
        affine: whether channels are scaled and shifted by learned numbers
        track_running_stats: whether statistics are kept, for `eval()`
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> nn.BatchNorm1d(1)(torch.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.0000],
                [ 1.0000]])
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of images (N, C, H, W) over the samples and pixels.

    Args:
        num_features: C
        eps: what is added to the variance
        momentum: the share of a batch in the running statistics; None averages over all batches
        affine: whether channels are scaled and shifted by learned numbers
        track_running_stats: whether statistics are kept, for `eval()`
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> norm = nn.BatchNorm2d(3)
        >>> norm(torch.ones(2, 3, 4, 4)).shape, norm.num_batches_tracked
        (torch.Size([2, 3, 4, 4]), tensor(1))
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (samples, channels, depth, height, width)."""

    _ranks = (5,)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d with the number of channels of its first input."""

    cls_to_become = BatchNorm1d
    _ranks = BatchNorm1d._ranks


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d with the number of channels of its first input."""

    cls_to_become = BatchNorm2d
    _ranks = BatchNorm2d._ranks


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d with the number of channels of its first input."""

    cls_to_become = BatchNorm3d
    _ranks = BatchNorm3d._ranks


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes of a group.

    Args:
        num_features: the size of dimension 1
        eps: a small number under the root
        momentum: how much of a batch goes into the running statistics; None for a plain mean
        affine: whether there are a weight and a bias
        track_running_stats: whether running statistics are kept
        process_group: which processes; all unless it is given

    Example:
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
        Sequential(
          (0): Linear(in_features=2, out_features=3, bias=True)
          (1): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            _refuse("at least 2D", input)
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalise(self, input: Any, running: tuple[Any, Any], by_batch: bool, factor: float) -> Any:
        from ._sync_batch_norm import group_of_several, sync_batch_norm  # loads torch.distributed

        group = group_of_several(self.process_group) if self.training else None
        if group is None:
            return super()._normalise(input, running, by_batch, factor)
        return sync_batch_norm(input, self.weight, self.bias, running, factor, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replace every BatchNorm in a module by a SyncBatchNorm with the same parameters and statistics."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


set_all(globals())
