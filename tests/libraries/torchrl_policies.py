"""tensordict and torchrl: dictionaries of tensors, mapped by vmap; a policy and its critic learn by PPO."""

import logging

import torch
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

logging.disable(logging.INFO)
torch.manual_seed(0)
data = TensorDict({"a": torch.randn(4, 3), "b": {"c": torch.arange(4)}}, batch_size=[4])
print(data.shape, sorted(data.keys(True), key=str), data[:2]["a"].shape, data.reshape(2, 2).batch_size)
print(torch.stack([data, data]).batch_size, torch.cat([data, data]).batch_size, data.split(2)[1]["b", "c"].tolist())
print([round(one, 4) for one in torch.vmap(lambda one: one["a"].sum())(data).tolist()])
mapped = torch.vmap(lambda one: one.apply(lambda value: value * 2))(data)
print(type(mapped).__name__, mapped.batch_size, mapped["b", "c"].tolist())
first = TensorDictModule(torch.nn.Linear(3, 5), ["a"], ["hidden"])
model = TensorDictSequential(first, TensorDictModule(torch.nn.Tanh(), ["hidden"], ["out"]))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(3):
    loss = model(data.clone())["out"].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
weights = TensorDict.from_module(model)
print(sorted(map(str, weights.keys(True, True))))
with weights.data.clone().zero_().to_module(model):
    print(model(data.clone())["out"].abs().sum().item())


@tensorclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor


pair = Pair(torch.randn(3, 2), torch.arange(3), batch_size=[3])
print(pair[1].y.item(), torch.stack([pair, pair]).x.shape)

torch.manual_seed(0)
network = torch.nn.Sequential(MLP(4, 4, depth=1, num_cells=8), NormalParamExtractor())
actor = ProbabilisticActor(
    TensorDictModule(network, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = ValueOperator(MLP(4, 1, depth=1, num_cells=8), ["observation"])
never = torch.zeros(2, 10, 1, dtype=torch.bool)
after = {"observation": torch.randn(2, 10, 4), "reward": torch.randn(2, 10, 1), "done": never, "terminated": never}
steps = TensorDict({"observation": torch.randn(2, 10, 4), "next": after}, [2, 10])
with torch.no_grad():
    actor(steps)
GAE(gamma=0.99, lmbda=0.95, value_network=critic)(steps)
print(
    f"{steps['action'].sum().item():.4f} {steps['advantage'].sum().item():.4f} {steps['value_target'].sum().item():.4f}"
)
buffer = ReplayBuffer(storage=LazyTensorStorage(20), batch_size=20)
buffer.extend(steps.reshape(-1))
objective = ClipPPOLoss(actor, critic)
optimizer = torch.optim.Adam(objective.parameters(), 1e-2)
for _ in range(3):
    parts = objective(steps)
    loss = parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(len(buffer), f"{loss.item():.4f}")
