"""zuko: normalizing flows of five kinds that learn a density."""

import torch
import zuko

torch.manual_seed(0)
for Flow in (zuko.flows.NSF, zuko.flows.MAF, zuko.flows.NICE, zuko.flows.CNF, zuko.flows.BPF):
    flow = Flow(features=3, context=2, transforms=2) if Flow is not zuko.flows.CNF else Flow(features=3, context=2)
    optimizer = torch.optim.Adam(flow.parameters(), 0.01)
    x = torch.randn(32, 3)
    context = torch.randn(32, 2)
    for _ in range(3):
        loss = -flow(context).log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(Flow.__name__, round(loss.item(), 3), flow(context[0]).sample((4,)).shape)
