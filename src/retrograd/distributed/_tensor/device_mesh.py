"""torch.distributed._tensor.device_mesh: the older name of `distributed.device_mesh`."""

from ..device_mesh import DeviceMesh, _mesh_resources, init_device_mesh

__all__ = ["DeviceMesh", "_mesh_resources", "init_device_mesh"]
