"""backpack, curvlinops and laplace: curvature of losses by hooks, by products with vectors and by Kronecker factors."""

import curvlinops
import torch
from backpack import backpack, extend
from backpack.extensions import KFAC, KFLR, BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, SumGradSquared, Variance
from laplace import Laplace
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
model = extend(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Sigmoid(), torch.nn.Linear(5, 3)))
loss = extend(torch.nn.CrossEntropyLoss())
torch.manual_seed(1)
kinds = BatchGrad(), DiagGGNExact(), KFAC(), Variance(), BatchL2Grad(), DiagHessian(), KFLR(), SumGradSquared()
with backpack(*kinds):
    loss(model(x), y).backward()
for name, one in model.named_parameters():
    found = (one.grad_batch.abs(), one.diag_ggn_exact, one.variance, one.batch_l2, one.diag_h, one.sum_grad_squared)
    print(name, [round(each.sum().item(), 4) for each in found], [tuple(each.shape) for each in (*one.kfac, *one.kflr)])

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
loss = torch.nn.CrossEntropyLoss()
for kind in (curvlinops.HessianLinearOperator, curvlinops.GGNLinearOperator, curvlinops.EFLinearOperator):
    operator = kind(model, loss, list(model.parameters()), [(x, y)])
    print(kind.__name__, f"{(operator @ torch.ones(operator.shape[1])).sum().item():.4f}")
factored = curvlinops.KFACLinearOperator(model, loss, list(model.parameters()), [(x, y)])
print(f"{(factored @ torch.ones(factored.shape[1])).sum().item():.4f}")
for weights, structure in (("last_layer", "kron"), ("all", "diag"), ("all", "full"), ("last_layer", "full")):
    posterior = Laplace(model, "classification", subset_of_weights=weights, hessian_structure=structure)
    posterior.fit(DataLoader(TensorDataset(x, y), 5))
    posterior.optimize_prior_precision()
    evidence = posterior.log_marginal_likelihood().item()
    print(weights, structure, f"{evidence:.3f}", posterior(x[:2]).round(decimals=3).tolist())
