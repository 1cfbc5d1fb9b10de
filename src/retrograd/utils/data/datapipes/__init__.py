"""torch.utils.data.datapipes: streams and tables of samples that are put together by their methods. torch calls them deprecated."""

from . import datapipe, iter, map, utils

__all__ = ["datapipe", "iter", "map", "utils"]
