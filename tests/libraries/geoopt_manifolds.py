"""geoopt: parameters on manifolds, which are classes with constructors of their own, and their optimizers."""

import geoopt
import torch

torch.manual_seed(0)
ball = geoopt.PoincareBall(c=1.0)
x = geoopt.ManifoldParameter(ball.random_normal(5, 3, std=0.3), manifold=ball)
target = ball.projx(torch.randn(5, 3) * 0.3)
optimizer = geoopt.optim.RiemannianAdam([x], lr=0.05)
for _ in range(5):
    loss = ball.dist(x, target).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
stiefel = geoopt.Stiefel()
frame = geoopt.ManifoldParameter(stiefel.random(5, 2), manifold=stiefel)
optimizer = geoopt.optim.RiemannianSGD([frame], lr=0.1, momentum=0.9)
matrix = torch.randn(5, 5)
matrix = matrix @ matrix.T
for _ in range(5):
    loss = -(frame.T @ matrix @ frame).trace()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(round(loss.item(), 3), round((frame.T @ frame - torch.eye(2)).norm().item(), 4))
