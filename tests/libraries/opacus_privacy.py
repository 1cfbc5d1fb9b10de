"""opacus: gradients of each sample, and training with noise."""

import torch
from opacus import GradSampleModule, PrivacyEngine

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
x = torch.randn(32, 4)
y = (x.sum(1) > 0).long()
sampled = GradSampleModule(model)
loss = torch.nn.functional.cross_entropy(sampled(x), y)
loss.backward()
print(
    [tuple(p.grad_sample.shape) for p in sampled.parameters()],
    round(sum(p.grad_sample.norm().item() for p in sampled.parameters()), 4),
)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 2, 3), torch.nn.GroupNorm(1, 2), torch.nn.Flatten(), torch.nn.Linear(2 * 36, 2)
)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), y), 8)
torch.manual_seed(0)
engine = PrivacyEngine()
private, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for a, b in loader:
    loss = torch.nn.functional.cross_entropy(private(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 3))
print(round(engine.get_epsilon(1e-05), 2))
