"""accelerate: training with its Accelerator, gradient accumulation, saved and loaded states, and an empty model filled from a file."""

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed
from safetensors.torch import load_file

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(32, 3)
y = x.sum(1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
print(accelerator.device, accelerator.num_processes, accelerator.is_main_process, accelerator.mixed_precision)
for epoch in range(3):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    accelerator.print(f"epoch {epoch} loss {accelerator.gather(loss).mean().item():.4f}")

accelerator.save_state("state")
before = [parameter.clone() for parameter in model.parameters()]
with torch.no_grad():
    for parameter in model.parameters():
        parameter.zero_()
accelerator.load_state("state")
print("restored", all(map(torch.equal, before, model.parameters())))
accelerator.save_model(model, "weights")

with init_empty_weights():
    empty = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
print("empty", {str(parameter.device) for parameter in empty.parameters()})
empty.load_state_dict(load_file("weights/model.safetensors"), assign=True)
print("filled", torch.equal(empty(x), accelerator.unwrap_model(model)(x)))
