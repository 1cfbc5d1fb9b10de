"""torchdiffeq: solvers of several orders, and gradients by the adjoint equation."""

import torch
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)


class F(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t, y):
        return self.n(y**3)


f = F()
y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0, 2, 9)
for m in ("dopri5", "rk4", "euler", "bosh3", "implicit_adams"):
    y = odeint(f, y0, t, method=m)
    print(m, [round(v, 4) for v in y[-1].flatten().tolist()])
y = odeint_adjoint(f, y0, t)
y.pow(2).mean().backward()
print([round(p.grad.norm().item(), 4) for p in f.parameters()])
