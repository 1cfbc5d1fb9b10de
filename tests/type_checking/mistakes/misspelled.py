"""Names that nobody has."""

import torch
from torch import nn
from torch.nn import Linaer  # error
from torch.optim import Adma  # error
from torch.utils.data import DataLoder  # error

x = torch.zros(3)  # error
y = torch.zeros(3)
y.summ()  # error
y.add__(1)  # error
torch.nn.functional.reluu(y)  # error
torch.linalg.invv(y)  # error
torch.optim.lr_scheduler.StepLr  # error
torch.float23  # error
y.max(0).vlaues  # error
y.sum(dims=0)  # error
nn.Linear(2, 3, biass=False)  # error
torch.optim.SGD([y], learning_rate=0.1)  # error
torch.func.gard(torch.sin)  # error
torch.distributions.Normel(0, 1)  # error
torch.autograd.gradd(y)  # error
torch.cuda.is_availabl()  # error
torch.backends.cudnn.benchmarkk  # error
torch.utils.data.Datast  # error
module: nn.Modul  # error
print(y.shape, y.grad_fn, Linaer, Adma, DataLoder)
