"""lightning: its Trainer with callbacks, a schedule, validation, checkpoints, early stopping, testing and a run resumed from a file."""

import logging
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self, width=8, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def step(self, batch, name):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log(name, loss)
        return loss

    def training_step(self, batch, number):
        return self.step(batch, "train_loss")

    def validation_step(self, batch, number):
        self.step(batch, "val_loss")

    def test_step(self, batch, number):
        self.step(batch, "test_loss")

    def predict_step(self, batch, number):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2)}


class Counting(Callback):
    def __init__(self):
        self.batches, self.epochs = 0, 0

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        self.batches += 1

    def on_train_epoch_end(self, trainer, module):
        self.epochs += 1
        print(f"epoch {trainer.current_epoch} loss {trainer.callback_metrics['train_loss'].item():.4f}")


lightning.seed_everything(3, verbose=False)
x = torch.randn(48, 2)
y = (x[:, :1] * 2 - x[:, 1:]).sin()
train, held = DataLoader(TensorDataset(x[:32], y[:32]), 8), DataLoader(TensorDataset(x[32:], y[32:]), 8)
counting = Counting()
saving = ModelCheckpoint(dirpath="kept", filename="best", monitor="val_loss", save_last=True)
quiet = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0,
}  # fmt: skip
trainer = lightning.Trainer(
    max_epochs=3,
    callbacks=[counting, saving, EarlyStopping("val_loss", patience=3)],
    gradient_clip_val=1.0,
    accumulate_grad_batches=2,
    **quiet,
)
model = Regression()
trainer.fit(model, train, held)
print("batches", counting.batches, "epochs", counting.epochs, "steps", trainer.global_step)
print("rate", [round(group["lr"], 5) for group in trainer.optimizers[0].param_groups])
print(f"tested {trainer.test(model, held, verbose=False)[0]['test_loss']:.4f}")
print("predicted", [tuple(part.shape) for part in trainer.predict(model, held)])

loaded = Regression.load_from_checkpoint(saving.last_model_path)
print(
    "equal",
    all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True)),
    dict(loaded.hparams),
)
again = lightning.Trainer(max_epochs=4, callbacks=[counting], enable_checkpointing=False, **quiet)
again.fit(Regression(), train, held, ckpt_path=saving.last_model_path)
print("resumed to", again.current_epoch, "steps", again.global_step)
