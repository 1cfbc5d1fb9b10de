"""ignite: engines, events, metrics and checkpoints."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import CosineAnnealingScheduler, ModelCheckpoint
from ignite.metrics import Accuracy, ConfusionMatrix, Loss

torch.manual_seed(0)
X = torch.randn(100, 4)
y = (X.sum(1) > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), 16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
trainer = create_supervised_trainer(model, optimizer, torch.nn.functional.cross_entropy)
evaluator = create_supervised_evaluator(
    model, {"acc": Accuracy(), "nll": Loss(torch.nn.functional.cross_entropy), "cm": ConfusionMatrix(2)}
)
trainer.add_event_handler(Events.ITERATION_STARTED, CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.01, len(loader)))


@trainer.on(Events.EPOCH_COMPLETED)
def log(engine):
    evaluator.run(loader)
    print(
        engine.state.epoch,
        {k: round(v, 4) if isinstance(v, float) else v.tolist() for k, v in evaluator.state.metrics.items()},
    )


trainer.add_event_handler(
    Events.EPOCH_COMPLETED, ModelCheckpoint("ck", "m", n_saved=1, require_empty=False), {"net": model}
)
trainer.run(loader, max_epochs=3)
