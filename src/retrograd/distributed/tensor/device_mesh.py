"""torch.distributed.tensor.device_mesh: an older home of the mesh."""

from ..device_mesh import DeviceMesh, _mesh_resources, init_device_mesh

__all__ = ["DeviceMesh", "_mesh_resources", "init_device_mesh"]
