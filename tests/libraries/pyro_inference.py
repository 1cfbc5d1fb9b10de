"""pyro: a Bayesian regression by stochastic variational inference, by an automatic guide, and by NUTS."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal
from torch.distributions import constraints

pyro.set_rng_seed(0)
x = torch.linspace(-1, 1, 30)
y = 0.5 + 2.0 * x + 0.3 * torch.randn(30)


def model(x, y=None):
    slope = pyro.sample("slope", dist.Normal(0.0, 5.0))
    offset = pyro.sample("offset", dist.Normal(0.0, 5.0))
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(offset + slope * x, noise), obs=y)


def guide(x, y=None):
    slope = pyro.param("slope_at", torch.tensor(0.0))
    offset = pyro.param("offset_at", torch.tensor(0.0))
    width = pyro.param("width", torch.tensor(0.1), constraint=constraints.positive)
    noise = pyro.param("noise_at", torch.tensor(0.5), constraint=constraints.positive)
    pyro.sample("slope", dist.Normal(slope, width))
    pyro.sample("offset", dist.Normal(offset, width))
    pyro.sample("noise", dist.Delta(noise))


pyro.clear_param_store()
inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO(num_particles=2))
for step in range(100):
    loss = inference.step(x, y)
    if step % 25 == 0:
        print(f"step {step} loss {loss:.2f}")
for name, value in pyro.get_param_store().items():
    print(f"{name} {value.item():.2f}")

for automatic in (AutoDiagonalNormal(model), AutoMultivariateNormal(model)):
    pyro.clear_param_store()
    inference = SVI(model, automatic, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO())
    for _ in range(60):
        loss = inference.step(x, y)
    print(type(automatic).__name__, f"{loss:.1f}", {k: round(v.item(), 1) for k, v in automatic.median().items()})
drawn = Predictive(model, guide=automatic, num_samples=20)(x)
print("predicted", tuple(drawn["y"].shape))

pyro.set_rng_seed(1)
sampler = MCMC(NUTS(model, max_tree_depth=4), num_samples=20, warmup_steps=20, disable_progbar=True)
sampler.run(x, y)
for name, values in sorted(sampler.get_samples().items()):
    print(f"{name} near {values.mean().item():.1f}, {values.shape[0]} samples")
