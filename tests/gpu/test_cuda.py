"""CUDA through CuPy: the same programs give the same numbers on both devices."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as torch

pytestmark = pytest.mark.gpu


if not torch.cuda.is_available():
    pytest.skip("needs CuPy and a CUDA device", allow_module_level=True)


def mlp(x, w):
    return torch.log_softmax(torch.tanh(x @ w) @ w.T, 1).sum()


PROGRAMS = {
    "arithmetic": lambda x, w: ((x * 2 - 1) / (w.sum() + 3) + x**2).sum(),
    "broadcasting": lambda x, w: (x[:, :1] * w.T[:1] + w[:, 0]).exp().sum(),
    "functions": lambda x, w: (x.sin() * x.exp() + x.tanh().sigmoid() + (x * x + 1).log().sqrt() + x.relu()).sum(),
    "matmul": lambda x, w: (x @ w).tanh().sum(),
    "batched matmul": lambda x, w: (x.unsqueeze(0) @ w.expand(2, 3, 4)).sum(),
    "reductions": lambda x, w: x.mean(0).sum() + x.amax(1).sum() + x.max(0)[0].sum() + x.logsumexp(1).sum() + x.var(),
    "softmax": lambda x, w: (x.softmax(1) * x.log_softmax(0)).sum(),
    "views": lambda x, w: (x.T.reshape(-1)[::2].sum() + x[1:, 0].exp().sum() + x.diagonal().sum()) * w[0, 0],
    "indexing": lambda x, w: x[torch.tensor([0, 0, 1], device=x.device)].pow(2).sum() + x[x > 0].sum(),
    "gather": lambda x, w: x.gather(1, torch.tensor([[0, 2], [1, 1]], device=x.device)).sum(),
    "joining": lambda x, w: (torch.cat([x, w.T], 0).cumsum(0) * torch.stack([x[0], x[1]]).sum()).sum(),
    "sorting": lambda x, w: (x.sort(1)[0] * torch.arange(3.0, device=x.device)).sum(),
    "choice": lambda x, w: (
        torch.where(x > 0, x * 2, x * x).sum() + torch.maximum(x, w.T[:2]).sum() + x.clamp(-1, 1).sum()
    ),
    "in place": lambda x, w: _in_place(x, w),
    "mlp": mlp,
}


def _in_place(x, w):
    y = x.clone()
    y[0] = w[:, 0] * 2
    y.mul_(x).add_(1.0)
    y[:, 1].neg_()
    return (y * y).sum()


def inputs(device):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((2, 3)), device=device, requires_grad=True)
    w = torch.tensor(rng.standard_normal((3, 4)), device=device, requires_grad=True)
    return x, w


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_equal_the_cpu(name):
    results = []
    for device in ("cpu", "cuda"):
        x, w = inputs(device)
        loss = PROGRAMS[name](x, w)
        assert loss.device.type == device
        gx, gw = torch.autograd.grad(loss, (x, w), create_graph=True, allow_unused=True)
        assert gx.device.type == device
        second = torch.autograd.grad((gx * gx).sum(), x, allow_unused=True)[0] if gx.requires_grad else None
        results.append([t.detach().cpu().numpy() for t in (loss, gx, gw, second) if t is not None])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["arithmetic", "functions", "matmul", "softmax", "views", "mlp", "in place"])
def test_transforms_equal_the_cpu(name):
    f = PROGRAMS[name]
    results = []
    for device in ("cpu", "cuda"):
        x, w = (t.detach() for t in inputs(device))
        batch = torch.stack([x, x * 2, -x])
        per_sample = torch.func.vmap(torch.func.grad(f), in_dims=(0, None))(batch, w)
        tangent = torch.func.jvp(lambda x: torch.func.grad(f)(x, w), (x,), (x,))[1]  # noqa: B023 - called at once
        results.append([per_sample.cpu().numpy(), tangent.cpu().numpy()])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_backward_accumulates_on_the_device():
    x, w = inputs("cuda")
    for _ in range(2):
        mlp(x, w).backward()
    assert x.grad.device.type == "cuda"
    y, v = inputs("cpu")
    mlp(y, v).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * y.grad.numpy(), rtol=1e-9)


def test_moving_is_differentiable():
    x = torch.ones(3, requires_grad=True)
    (x.cuda() * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    assert x.grad.device.type == "cpu"


def test_training_without_grad_in_place():
    w = torch.zeros(3, device="cuda", requires_grad=True)
    target = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    for _ in range(50):
        ((w - target) ** 2).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
    assert torch.allclose(w.detach(), target, atol=1e-3)


def test_printing_item_and_errors():
    x = torch.tensor([1.0, 2.0], device="cuda")
    assert repr(x) == "tensor([1., 2.], device='cuda:0')"
    assert x.sum().item() == 3.0
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(2)


SENSITIVE = "acos asin cosh tan sinh exp expm1 log log10 log1p log2 pow reciprocal rsqrt erfinv softmax cumsum sum prod"


@pytest.mark.parametrize("name", SENSITIVE.split())
def test_autocast_computes_sensitive_functions_in_float32(name):
    x = torch.rand(3, device="cuda", dtype=torch.float16) * 0.5 + 0.25
    more = {"pow": (2,), "softmax": (0,), "cumsum": (0,)}.get(name, ())
    with torch.autocast("cuda"):
        found = getattr(torch, name)(x, *more)
    assert found.dtype is torch.float32
    assert torch.equal(found, getattr(torch, name)(x.float(), *more))
