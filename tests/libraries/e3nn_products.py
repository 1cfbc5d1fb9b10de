"""e3nn: tensor products whose code is written by torch.fx, spherical harmonics, rotations."""

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet

torch.manual_seed(0)
irreps = o3.Irreps("4x0e+2x1o")
product = o3.FullyConnectedTensorProduct(irreps, "1x0e+1x1o", "3x0e+1x1o+1x2e")
x = irreps.randn(5, -1)
harmonics = o3.spherical_harmonics("0e+1o", torch.randn(5, 3), True)
y = product(x, harmonics)
y.pow(2).sum().backward()
print([round(v, 4) for v in y[0].tolist()][:5], round(product.weight.grad.norm().item(), 3))
print(
    [round(v, 4) for v in o3.wigner_3j(1, 1, 2).flatten().tolist()[:5]],
    round(o3.Linear(irreps, "2x0e+1x1o")(x).sum().item(), 4),
)
rotation = o3.rand_matrix()
matrix = irreps.D_from_matrix(rotation)
print(round((o3.Norm(irreps)(x) - o3.Norm(irreps)(x @ matrix.T)).abs().max().item(), 3))
network = FullyConnectedNet([3, 16, 4], torch.nn.functional.silu)
print(round(network(torch.ones(2, 3)).sum().item(), 4))
