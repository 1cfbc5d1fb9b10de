"""gpytorch: an exact Gaussian process is trained on a sine, then asked for its mean and variance elsewhere."""

import gpytorch
import torch


class SineModel(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=2.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(x * 6.0) + 0.1 * torch.randn(40)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = SineModel(x, y, likelihood)

model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for step in range(20):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4f} noise {likelihood.noise.item():.4f}")

model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(model(torch.tensor([0.05, 0.5, 0.95, 1.5])))
    lower, upper = predicted.confidence_region()
print("mean", [round(value, 3) for value in predicted.mean.tolist()])
print("width", [round(value, 3) for value in (upper - lower).tolist()])

# a variational process with inducing points, whose objective is a bound


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, places):
        found = gpytorch.variational.CholeskyVariationalDistribution(places.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, places, found, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.LinearMean(1)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


sparse, likelihood = Sparse(x[::5, None].clone()), gpytorch.likelihoods.BernoulliLikelihood()
for parameter in sparse.mean_module.parameters():
    parameter.data.zero_()
sparse.train()
optimizer = torch.optim.Adam(sparse.parameters(), lr=0.05)
bound = gpytorch.mlls.VariationalELBO(likelihood, sparse, num_data=40)
for _ in range(20):
    optimizer.zero_grad()
    loss = -bound(sparse(x[:, None]), (y > 0).float())
    loss.backward()
    optimizer.step()
print(f"classes: loss {loss.item():.3f}")
sparse.eval()
print([round(value, 2) for value in likelihood(sparse(torch.tensor([[0.1], [0.5], [0.9]]))).probs.tolist()])
