"""Distributions: densities, samples with gradients, divergences, transforms."""

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    MultivariateNormal,
    Normal,
    kl_divergence,
)
from torch.distributions.transforms import ExpTransform


def score(distribution: Distribution, value: Tensor) -> float:
    return round(distribution.log_prob(value).sum().item(), 4)


torch.manual_seed(0)
mean = torch.zeros(2, requires_grad=True)
normal = Normal(mean, torch.ones(2))
sample: Tensor = normal.rsample((3,))
sample.sum().backward()
print(sample.shape, mean.grad, score(normal, torch.ones(2)))
print(kl_divergence(normal, Normal(torch.ones(2), 2.0)).detach())
choice = Categorical(logits=torch.tensor([0.1, 0.2, 0.7]))
print(choice.probs.sum().item() > 0.99, choice.entropy().dim(), int(choice.sample()) in (0, 1, 2))
print(score(Independent(normal, 1), torch.zeros(2)), Bernoulli(0.3).mean.item() < 0.5)
joint = MultivariateNormal(torch.zeros(2), torch.eye(2))
print(score(joint, torch.zeros(2)), joint.event_shape, joint.batch_shape)
print(ExpTransform()(torch.tensor([0.0, 1.0])))
