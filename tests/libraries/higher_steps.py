"""higher: gradients through the steps of an optimizer."""

import higher
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
outer = torch.optim.Adam(model.parameters(), 0.01)
inner = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
x, y = (torch.randn(16, 3), torch.randn(16, 1))
for _ in range(3):
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (copy, inner_optimizer):
        for _ in range(3):
            inner_optimizer.step(((copy(x) - y) ** 2).mean())
        loss = ((copy(x) - y) ** 2).mean()
        outer.zero_grad()
        loss.backward()
        outer.step()
        print(round(loss.item(), 4))
