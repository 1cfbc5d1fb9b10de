"""Programs with mistakes that people who know torch make, beside those of `tools/make_errors.py`."""

from __future__ import annotations

PROGRAMS = {
    "linear after conv without flatten": (
        "m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(4*26*26, 10))\nm(torch.ones(2, 1, 28, 28))"
    ),
    "broadcast in place": ("a = torch.ones(3)\na += torch.ones(2, 3)"),
    "matmul vector size": "torch.ones(3, 4) @ torch.ones(3)",
    "bmm of 2-d": "torch.bmm(torch.ones(2, 3), torch.ones(3, 2))",
    "mm of 3-d": "torch.mm(torch.ones(2, 3, 4), torch.ones(4, 2))",
    "reshape minus one ambiguous": "torch.ones(6).reshape(-1, -1)",
    "reshape wrong": "torch.ones(6).reshape(4, -1)",
    "permute too few": "torch.ones(2, 3, 4).permute(0, 1)",
    "transpose 1d": "torch.ones(3).transpose(0, 1)",
    "squeeze unsqueeze dim": "torch.ones(3).unsqueeze(3)",
    "expand wrong": "torch.ones(3).expand(2, 4)",
    "split sizes": "torch.ones(5).split([2, 2])",
    "chunk zero": "torch.ones(5).chunk(0)",
    "gather dtype": "torch.ones(2, 3).gather(1, torch.ones(2, 1))",
    "gather dims": "torch.ones(2, 3).gather(1, torch.zeros(2, dtype=torch.long))",
    "scatter index out": "torch.zeros(2, 3).scatter_(1, torch.tensor([[5]]), 1.0)",
    "index float": "torch.ones(3)[1.5]",
    "index float tensor": "torch.ones(3)[torch.tensor([1.0])]",
    "too many indices": "torch.ones(3)[0, 1]",
    "bool mask shape": "torch.ones(3)[torch.tensor([True, False])]",
    "setitem shape": ("x = torch.zeros(3)\nx[:2] = torch.ones(3)"),
    "negative step slice": "torch.ones(3)[::-1]",
    "index tensor out of range": "torch.ones(3)[torch.tensor([0, 7])]",
    "one_hot float": "F.one_hot(torch.tensor([0.0, 1.0]))",
    "one_hot classes": "F.one_hot(torch.tensor([0, 5]), num_classes=3)",
    "einsum too few operands": "torch.einsum('ij,jk->ik', torch.ones(2, 3))",
    "einsum size mismatch": "torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(4, 5))",
    "einsum dims": "torch.einsum('ijk->i', torch.ones(2, 3))",
    "einsum bad output": "torch.einsum('ij->ijz', torch.ones(2, 3))",
    "einsum char": "torch.einsum('i1->i', torch.ones(2, 3))",
    "bce target float": "F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1]))",
    "bce out of range": "F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))",
    "bce shape": "F.binary_cross_entropy(torch.full((2, 1), 0.5), torch.ones(2))",
    "bce logits shape": "F.binary_cross_entropy_with_logits(torch.ones(2, 1), torch.ones(2))",
    "cross entropy float 1d target": "F.cross_entropy(torch.ones(2, 3), torch.ones(2))",
    "cross entropy target 2d": "F.cross_entropy(torch.ones(2, 3), torch.zeros(2, 1, dtype=torch.long))",
    "cross entropy int32": "F.cross_entropy(torch.ones(2, 3), torch.zeros(2, dtype=torch.int32))",
    "nll for images": "F.nll_loss(torch.ones(2, 3, 4, 4), torch.zeros(2, 4, dtype=torch.long))",
    "ctc": (
        "F.ctc_loss(torch.ones(5, 2, 3).log_softmax(-1), torch.ones(2, 2, dtype=torch.long), torch.tensor([5]), torch.tensor([2, 2]))"
    ),
    "batchnorm one value": "nn.BatchNorm1d(3)(torch.ones(1, 3))",
    "batchnorm dims": "nn.BatchNorm2d(3)(torch.ones(2, 3))",
    "batchnorm channels": "nn.BatchNorm1d(3)(torch.ones(4, 5))",
    "layernorm shape": "nn.LayerNorm(8)(torch.ones(2, 4))",
    "groupnorm": "nn.GroupNorm(4, 6)",
    "conv channels": "nn.Conv2d(3, 8, 3)(torch.ones(1, 1, 28, 28))",
    "conv kernel too big": "nn.Conv2d(1, 1, 5)(torch.ones(1, 1, 3, 3))",
    "pool too small": "F.max_pool2d(torch.ones(1, 1, 2, 2), 3)",
    "lstm dims": "nn.LSTM(4, 5)(torch.ones(2, 3, 6))",
    "lstm hidden": "nn.LSTM(4, 5)(torch.ones(2, 3, 4), (torch.zeros(1, 2, 5), torch.zeros(1, 2, 5)))",
    "lstm hidden not tuple": "nn.LSTM(4, 5)(torch.ones(2, 3, 4), torch.zeros(1, 3, 5))",
    "mha embed heads": "nn.MultiheadAttention(10, 3)",
    "mha mask": (
        "nn.MultiheadAttention(8, 2)(torch.ones(4, 1, 8), torch.ones(4, 1, 8), torch.ones(4, 1, 8), attn_mask=torch.ones(3, 3))"
    ),
    "embedding float": "nn.Embedding(3, 4)(torch.ones(2))",
    "embedding negative": "nn.Embedding(3, 4)(torch.tensor([-1]))",
    "dropout p": "nn.Dropout(1.5)",
    "module call wrong args": (
        "class N(nn.Module):\n    def forward(self, x, y):\n        return x + y\nN()(torch.ones(2))"
    ),
    "module without forward": ("class N(nn.Module):\n    pass\nN()(torch.ones(2))"),
    "module attribute missing": "nn.Linear(2, 2).wieght",
    "linear wrong keyword": "nn.Linear(2, 2, biases=False)",
    "linear float sizes": "nn.Linear(2.5, 2)",
    "linear str": "nn.Linear('2', 2)",
    "Sequential of class": "nn.Sequential(nn.Linear(2, 2), nn.ReLU)",
    "ModuleList called": "nn.ModuleList([nn.Linear(2, 2)])(torch.ones(2))",
    "module given class": ("net = nn.Linear\nnet(torch.ones(2))"),
    "forget instantiate loss": "nn.CrossEntropyLoss(torch.ones(2, 3), torch.tensor([0, 1]))",
    "assign tensor to parameter": ("m = nn.Linear(2, 2)\nm.weight = torch.ones(2, 2)"),
    "parameter of ints": "nn.Parameter(torch.tensor([1, 2]))",
    "state dict missing keys": "nn.Sequential(nn.Linear(2, 2)).load_state_dict({'weight': torch.ones(2, 2)})",
    "state dict given model": "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2))",
    "state dict given path": "nn.Linear(2, 2).load_state_dict('model.pt')",
    "load missing file": "torch.load('nothing.pt')",
    "load model weights_only": ("torch.save(nn.Linear(2, 2), 'm.pt')\ntorch.load('m.pt')"),
    "optimizer given model": "torch.optim.SGD(nn.Linear(2, 2), lr=0.1)",
    "optimizer given one tensor": "torch.optim.SGD(nn.Linear(2, 2).weight, lr=0.1)",
    "optimizer non leaf": ("x = torch.ones(2, requires_grad=True)\ntorch.optim.SGD([x * 2], lr=0.1)"),
    "optimizer negative lr": "torch.optim.Adam(nn.Linear(2, 2).parameters(), lr=-1)",
    "optimizer exhausted generator": ("p = nn.Linear(2, 2).parameters()\nlist(p)\ntorch.optim.SGD(p, lr=0.1)"),
    "optimizer twice same param": (
        "p = nn.Linear(2, 2)\ntorch.optim.SGD([{'params': p.parameters()}, {'params': p.parameters()}], lr=0.1)"
    ),
    "optimizer missing keyword": "torch.optim.SGD(nn.Linear(2, 2).parameters(), learning_rate=0.1)",
    "optimizer load other": (
        "a = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\n"
        "b = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)\n"
        "a.load_state_dict(b.state_dict())"
    ),
    "lbfgs no closure": ("o = torch.optim.LBFGS(nn.Linear(2, 2).parameters())\no.step()"),
    "scheduler given lr": "torch.optim.lr_scheduler.StepLR(0.1, 3)",
    "scheduler missing": (
        "o = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\ntorch.optim.lr_scheduler.StepLR(o)"
    ),
    "reduce on plateau no metric": (
        "o = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\n"
        "s = torch.optim.lr_scheduler.ReduceLROnPlateau(o)\n"
        "s.step()"
    ),
    "onecycle overrun": (
        "o = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\n"
        "s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=2)\n"
        "for _ in range(4):\n"
        "    o.step()\n"
        "    s.step()"
    ),
    "requires_grad_ on nonleaf": ("x = torch.ones(2, requires_grad=True)\ny = x * 2\ny.requires_grad_(False)"),
    "backward seed shape": ("x = torch.ones(3, requires_grad=True)\n(x * 2).backward(torch.ones(2))"),
    "view of leaf in place": ("w = torch.ones(3, requires_grad=True)\nw[0] = 5.0"),
    "unbind views in place": ("x = torch.ones(3, requires_grad=True) * 1\na, b, c = x\na.add_(1)"),
    "inference tensor in autograd": (
        "w = torch.ones(2, requires_grad=True)\n"
        "with torch.inference_mode():\n"
        "    x = torch.ones(2)\n"
        "(w * x).sum().backward()"
    ),
    "inference tensor inplace": """
with torch.inference_mode():
    x = torch.ones(2)
x.add_(1)
x.requires_grad_()
""",
    "deepcopy nonleaf": ("import copy\nx = torch.ones(2, requires_grad=True)\ncopy.deepcopy(x * 2)"),
    "rnn backward through time twice": (
        "h = torch.zeros(3)\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "for _ in range(2):\n"
        "    h = (h + w).tanh()\n"
        "    h.sum().backward()"
    ),
    "optimizer step before backward": (
        "m = nn.Linear(2, 2)\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "loss = m(torch.ones(2)).sum()\n"
        "m2 = m(torch.ones(2)).tanh()\n"
        "l2 = (m2 @ m.weight).sum()\n"
        "loss.backward()\n"
        "o.step()\n"
        "l2.backward()"
    ),
    "grad of grad without create": (
        "x = torch.ones(2, requires_grad=True)\ng, = torch.autograd.grad((x**3).sum(), x)\ng.sum().backward()"
    ),
    "retain_grad leafless": "torch.ones(2).retain_grad()",
    "register_hook no grad": "torch.ones(2).register_hook(print)",
    "custom function forward self": (
        "class Sq(torch.autograd.Function):\n"
        "    def forward(ctx, x):\n"
        "        return x * x\n"
        "    def backward(ctx, g):\n"
        "        return g\n"
        "Sq()(torch.ones(2, requires_grad=True))"
    ),
    "custom function not static called": (
        "class Sq(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x * x\n"
        "Sq.apply(torch.ones(2, requires_grad=True)).sum().backward()"
    ),
    "custom backward wrong shape": (
        "class Sq(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x.sum()\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return torch.ones(3)\n"
        "Sq.apply(torch.ones(2, requires_grad=True)).backward()"
    ),
    "gradcheck float32": "torch.autograd.gradcheck(lambda x: x.sin() * 2, torch.ones(3, requires_grad=True))",
    "gradcheck no grad": "torch.autograd.gradcheck(torch.sin, torch.ones(3, dtype=torch.float64))",
    "vmap in_dims": "torch.vmap(torch.add, in_dims=(0, 1))(torch.ones(3), torch.ones(3))",
    "vmap sizes": "torch.vmap(torch.add)(torch.ones(3), torch.ones(4))",
    "vmap item": "torch.vmap(lambda x: torch.tensor(x.item()))(torch.ones(3))",
    "vmap random": "torch.vmap(lambda x: x + torch.rand(()))(torch.ones(3))",
    "vmap nonzero": "torch.vmap(lambda x: x.nonzero())(torch.ones(3, 2))",
    "vmap returns number": "torch.vmap(lambda x: 1.0)(torch.ones(3))",
    "func.grad vector": "torch.func.grad(lambda x: x * 2)(torch.ones(3))",
    "func.grad ints": "torch.func.grad(lambda x: (x * 2).sum())(torch.ones(3, dtype=torch.int64))",
    "func.grad argnums": "torch.func.grad(lambda x: x.sum(), argnums=1)(torch.ones(3))",
    "jvp tangents": "torch.func.jvp(torch.sin, torch.ones(3), torch.ones(3))",
    "jvp tangent shape": "torch.func.jvp(torch.sin, (torch.ones(3),), (torch.ones(2),))",
    "checkpoint no use_reentrant": (
        "from torch.utils.checkpoint import checkpoint\n"
        "x = torch.ones(2)\n"
        "m = nn.Linear(2, 2)\n"
        "checkpoint(m, x, use_reentrant=True).sum().backward()"
    ),
    "autocast device": ("with torch.autocast('gpu'):\n    pass"),
    "scaler step before": (
        "s = torch.amp.GradScaler('cpu')\no = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\ns.step(o)"
    ),
    "scaler unscale twice": (
        "s = torch.amp.GradScaler('cpu')\n"
        "m = nn.Linear(2, 2)\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "s.scale(m(torch.ones(2)).sum()).backward()\n"
        "s.unscale_(o)\n"
        "s.unscale_(o)"
    ),
    "scaler update before": ("s = torch.amp.GradScaler('cpu')\ns.update()"),
    "dataset without getitem": (
        "class D(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n"
        "        return 3\n"
        "next(iter(torch.utils.data.DataLoader(D())))"
    ),
    "dataset without len": (
        "class D(torch.utils.data.Dataset):\n"
        "    def __getitem__(self, i):\n"
        "        return i\n"
        "torch.utils.data.DataLoader(D(), shuffle=True)"
    ),
    "dataloader of strings object": (
        "class T: pass\nnext(iter(torch.utils.data.DataLoader([T(), T()], batch_size=2)))"
    ),
    "dataloader none": "next(iter(torch.utils.data.DataLoader([None, None], batch_size=2)))",
    "dataloader dict keys": "next(iter(torch.utils.data.DataLoader([{'a': 1}, {'b': 2}], batch_size=2)))",
    "dataloader ragged lists": "next(iter(torch.utils.data.DataLoader([[1, 2], [3]], batch_size=2)))",
    "dataloader index": "torch.utils.data.DataLoader([1, 2])[0]",
    "dataloader batch and sampler": "torch.utils.data.DataLoader([1], shuffle=True, sampler=[0])",
    "dataloader batch size 0": "torch.utils.data.DataLoader([1], batch_size=0)",
    "random_split": "torch.utils.data.random_split([1, 2, 3], [2, 2])",
    "TensorDataset sizes": "torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3))",
    "from_numpy list": "torch.from_numpy([1, 2])",
    "from_numpy of strings": ("import numpy as np\ntorch.from_numpy(np.array(['a']))"),
    "from_numpy object": ("import numpy as np\ntorch.tensor(np.array([1, None]))"),
    "tensor of None": "torch.tensor([1, None])",
    "tensor of tensors": "torch.tensor([torch.ones(2), torch.ones(2)])",
    "Tensor class with dtype": "torch.Tensor([1.0], dtype=torch.float64)",
    "zeros float": "torch.zeros(2.5)",
    "zeros negative": "torch.zeros(-1)",
    "randint order": "torch.randint(5, 2, (3,))",
    "arange": "torch.arange(0, 1, -0.1)",
    "dtype string": "torch.ones(3, dtype='float32')",
    "to unknown": "torch.ones(3).to('float32')",
    "device string": "torch.ones(3).to('gpu')",
    "device index": "torch.ones(3, device='cuda:9')",
    "max dims tuple": "torch.ones(2, 3).max(dim=(0, 1))",
    "max without unpack": "torch.ones(2, 3).max(dim=1) + 1",
    "argmax keepdims": "torch.ones(2, 3).argmax(dim=2)",
    "stack not list": "torch.stack(torch.ones(2), torch.ones(2))",
    "cat numbers": "torch.cat([1, 2])",
    "cat not list": "torch.cat(torch.ones(2), torch.ones(2))",
    "where": "torch.where(torch.ones(2), 1.0, 0.0)",
    "float of vector": "float(torch.ones(2))",
    "int index of tensor": "[1, 2, 3][torch.ones(2)]",
    "len of scalar": "len(torch.tensor(1.0))",
    "iterate scalar": "for x in torch.tensor(1.0): pass",
    "numpy of cuda-like bf16": "torch.ones(2, dtype=torch.bfloat16).numpy()",
    "bitwise float": "torch.ones(2) & torch.ones(2)",
    "not on float": "~torch.ones(2)",
    "shift": "torch.ones(2) << 1",
    "int division in place": ("x = torch.ones(2, dtype=torch.int64)\nx /= 2"),
    "in place dtype": ("x = torch.ones(2, dtype=torch.int64)\nx += 0.5"),
    "pow negative int": "torch.tensor([2]) ** -1",
    "linalg inverse singular": "torch.linalg.inv(torch.zeros(2, 2))",
    "linalg cholesky": "torch.linalg.cholesky(-torch.eye(2))",
    "solve shape": "torch.linalg.solve(torch.ones(2, 3), torch.ones(2))",
    "complex cross": "torch.ones(2, dtype=torch.complex64) < 1",
    "sdpa shapes": (
        "F.scaled_dot_product_attention(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 5), torch.ones(1, 2, 3, 4))"
    ),
    "interpolate": "F.interpolate(torch.ones(1, 3, 4), scale_factor=2, mode='bilinear')",
    "pad": "F.pad(torch.ones(2), (1,))",
    "clip_grad": "nn.utils.clip_grad_norm_(nn.Linear(2, 2), 1.0)",
    "pack_padded": "nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [1, 3])",
    "pad_sequence": "nn.utils.rnn.pad_sequence([torch.ones(2, 3), torch.ones(2, 4)])",
    "multinomial": "torch.multinomial(torch.tensor([0.0, 0.0]), 1)",
    "multinomial too many": "torch.multinomial(torch.ones(2), 3)",
    "kl_div": "F.kl_div(torch.ones(2), torch.ones(3))",
    "cosine": "F.cosine_similarity(torch.ones(2, 3), torch.ones(2, 4))",
    "activation unknown": "nn.TransformerEncoderLayer(8, 2, activation='swish')",
    "register_buffer twice": ("m = nn.Linear(2, 2)\nm.register_buffer('weight', torch.ones(2))"),
    "parameter shared data": ("m = nn.Linear(2, 2)\nm.weight.data = 3"),
    "grad assign shape": ("w = torch.ones(2, requires_grad=True)\nw.grad = torch.ones(3)"),
    "tensor attribute": "torch.ones(2).shap",
    "tensor call": "torch.ones(2)(1)",
    "no torch.nn name": "nn.Liner(2, 2)",
    "functional name": "F.cross_entrpy(torch.ones(1))",
    "optim name": "torch.optim.Adamw",
    "forget unsqueeze batch": ("m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))\nm(torch.ones(1, 28, 28))"),
    "one-hot ints as target": ("F.cross_entropy(torch.ones(2, 3), F.one_hot(torch.tensor([0, 2]), 3))"),
    "argmax loss": ("m = nn.Linear(3, 2)\nloss = m(torch.ones(4, 3)).argmax(1).float().mean()\nloss.backward()"),
    "torch.tensor of loss": (
        "w = torch.ones(2, requires_grad=True)\nloss = torch.tensor((w * 2).sum())\nloss.backward()"
    ),
    "tensor(list of tensors with grad)": (
        "w = torch.ones(2, requires_grad=True)\nlosses = [w.sum(), (w * w).sum()]\ntorch.tensor(losses).mean().backward()"
    ),
    "from numpy roundtrip": (
        "import numpy as np\nw = torch.ones(2, requires_grad=True)\ny = torch.from_numpy(np.exp(w.detach().numpy()))\ny.sum().backward()"
    ),
    "numpy function on grad tensor": ("import numpy as np\nw = torch.ones(2, requires_grad=True)\nnp.exp(w)"),
    "math function on vector": ("import math\nmath.sqrt(torch.ones(3))"),
    "loss of a no_grad function": (
        "m = nn.Linear(2, 1)\n@torch.no_grad()\ndef evaluate(x):\n    return m(x).mean()\nevaluate(torch.ones(3, 2)).backward()"
    ),
    "grad is None update": ("w = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n    w -= 0.1 * w.grad"),
    "grad of nonleaf None": (
        "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.sum().backward()\nprint(h.grad.norm())"
    ),
    "attention mask shape": (
        "q = torch.ones(2, 4, 8, 16)\nF.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5, dtype=torch.bool))"
    ),
    "attention batch sizes": (
        "m = nn.MultiheadAttention(8, 2, batch_first=True)\nx = torch.ones(2, 5, 8)\nm(x, torch.ones(3, 5, 8), torch.ones(3, 5, 8))"
    ),
    "transformer d_model": ("m = nn.TransformerEncoderLayer(d_model=8, nhead=2)\nm(torch.ones(5, 2, 16))"),
    "gru of one dimension": ("nn.GRU(4, 8)(torch.ones(4))"),
    "convtranspose channels": ("nn.ConvTranspose2d(8, 3, 2)(torch.ones(1, 3, 8, 8))"),
    "unflatten sizes": ("torch.ones(2, 12).unflatten(1, (3, 5))"),
    "misspelled layer": (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear1 = nn.Linear(2, 2)\n"
        "    def forward(self, x):\n"
        "        return self.lin1(x)\n"
        "Net()(torch.ones(1, 2))"
    ),
    "forward without self": ("class Net(nn.Module):\n    def forward(x):\n        return x\nNet()(torch.ones(1))"),
    "optimizer of list of modules": ("torch.optim.Adam([nn.Linear(2, 2), nn.Linear(2, 2)], lr=1e-3)"),
    "optimizer of named parameters": ("torch.optim.Adam(dict(nn.Linear(2, 2).named_parameters()), lr=1e-3)"),
    "optimizer lr as string": ("torch.optim.Adam(nn.Linear(2, 2).parameters(), lr='1e-3')"),
    "model to unknown dtype string": ("nn.Linear(2, 2).to('float16')"),
    "numpy inside of jacobian": (
        "import numpy as np\ntorch.autograd.functional.jacobian(lambda x: torch.from_numpy(np.exp(x.numpy())), torch.ones(2))"
    ),
    "jacobian of a float": ("torch.autograd.functional.jacobian(lambda x: x * x, 3.0)"),
    "custom function returns numpy": (
        "class Exp(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        y = x.exp()\n"
        "        ctx.save_for_backward(y)\n"
        "        return y\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        y, = ctx.saved_tensors\n"
        "        return (g * y).numpy()\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "Exp.apply(x).sum().backward()"
    ),
    "number saved for backward": (
        "class Exp(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, scale):\n"
        "        ctx.save_for_backward(x, scale)\n"
        "        return x * scale\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g, None\n"
        "Exp.apply(torch.ones(2, requires_grad=True), 2.0)"
    ),
    "dataset shorter than its length": (
        "class D(torch.utils.data.Dataset):\n"
        "    def __init__(self): self.x = torch.ones(3)\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return self.x[i]\n"
        "for b in torch.utils.data.DataLoader(D(), batch_size=2): pass"
    ),
    "dataset of images": (
        "class Image: pass\nnext(iter(torch.utils.data.DataLoader([Image(), Image()], batch_size=2)))"
    ),
    "normal with a negative scale": ("torch.distributions.Normal(0.0, -1.0)"),
    "multivariate normal not pd": (
        "torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]]))"
    ),
    "rsample of a discrete distribution": ("torch.distributions.Bernoulli(torch.tensor(0.3)).rsample()"),
    "masked assign count": ("x = torch.zeros(4)\nx[x == 0] = torch.ones(3)"),
    "scatter dims": ("torch.zeros(3, 5).scatter_(1, torch.tensor([0, 1, 2]), 1.0)"),
    "softmax of int": ("torch.arange(3).softmax(0)"),
    "state dict of a wrapped model": (
        "m = nn.Linear(2, 2)\nm.load_state_dict({'module.' + k: v for k, v in m.state_dict().items()})"
    ),
    "list given to a layer": ("nn.Linear(2, 2)([1.0, 2.0])"),
    "array given to a layer": ("import numpy as np\nnn.Linear(2, 2)(np.ones((1, 2), dtype=np.float32))"),
    "ModuleList called in forward": (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(2, 2)])\n"
        "    def forward(self, x):\n"
        "        return self.layers(x)\n"
        "Net()(torch.ones(1, 2))"
    ),
    "hook returns wrong shape": (
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: g[:2])\ny.sum().backward()"
    ),
    "forward hook signature": ("m = nn.Linear(2, 2)\nm.register_forward_hook(lambda m, x: x)\nm(torch.ones(1, 2))"),
    "checkpoint of a wrong size": (
        "from torch.utils.checkpoint import checkpoint\n"
        "checkpoint(nn.Linear(2, 2), torch.ones(1, 3, requires_grad=True), use_reentrant=False)"
    ),
    "nested vmap dims": ("torch.vmap(torch.vmap(lambda x: x.sum()))(torch.ones(3))"),
    "jvp without tuples": ("torch.func.jvp(torch.sin, torch.ones(2), torch.ones(2))"),
    "cotangent of another shape": ("out, pull = torch.func.vjp(torch.sin, torch.ones(2))\npull(torch.ones(3))"),
    "misspelled forward": ("class Net(nn.Module):\n    def foward(self, x):\n        return x\nNet()(torch.ones(1))"),
    "state dict of a compiled model": (
        "m = nn.Linear(2, 2)\nm.load_state_dict({'_orig_mod.' + k: v for k, v in m.state_dict().items()})"
    ),
    "mean of a list of losses": ("torch.mean([torch.ones(()), torch.ones(())])"),
    "forward returns nothing": (
        "class Net(nn.Module):\n    def forward(self, x):\n        x * 2\nF.relu(Net()(torch.ones(2)))"
    ),
}
