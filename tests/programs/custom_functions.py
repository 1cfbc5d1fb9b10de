"""Functions with a backward of their own."""

import torch
from torch.autograd import Function


class SiLU(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, s = ctx.saved_tensors
        return grad_output * (s * (1 + x * (1 - s)))


class ClampedSigmoid(Function):
    @staticmethod
    def forward(ctx, x, min_grad=0.01):
        out = torch.sigmoid(x)
        ctx.save_for_backward(out)
        ctx.min_grad = min_grad
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (out,) = ctx.saved_tensors
        return grad_output * torch.clamp(out * (1 - out), min=ctx.min_grad), None


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        top = x.max(dim=-1, keepdim=True).values
        total = torch.exp(x - top).sum(dim=-1, keepdim=True)
        result = top + torch.log(total)
        ctx.save_for_backward(x, result)
        return result.squeeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, result = ctx.saved_tensors
        return grad_output.unsqueeze(-1) * torch.exp(x - result)


class Linear(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input @ weight

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight.t(), input.t() @ grad_output


x = torch.linspace(-2, 2, 5, requires_grad=True)
for function in (SiLU.apply, lambda x: ClampedSigmoid.apply(x, 0.2), StraightThrough.apply):
    x.grad = None
    out = function(x)
    out.sum().backward()
    print(out.detach(), x.grad, type(out.grad_fn).__name__)
x = torch.tensor([[1000.0, 1001.0, 1002.0]], requires_grad=True)
stable = LogSumExp.apply(x)
stable.sum().backward()
print(torch.log(torch.exp(x).sum(dim=-1)).detach(), stable.detach(), x.grad)
a = torch.ones(2, 3, requires_grad=True)
w = torch.arange(6.0).reshape(3, 2).requires_grad_()
Linear.apply(a, w).sum().backward()
print(a.grad, w.grad)
