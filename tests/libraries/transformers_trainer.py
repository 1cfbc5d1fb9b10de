"""transformers: its Trainer with evaluation, a schedule, a callback and checkpoints, resumed from one."""

import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

transformers.logging.set_verbosity_error()
torch.manual_seed(0)


class Parity(torch.utils.data.Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(1, 20, (count, 6))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, place):
        row = self.tokens[place]
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": (row[0] > 10).long()}


class Counting(TrainerCallback):
    steps = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.steps += 1


def metrics(prediction):
    return {"right": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


model = BertForSequenceClassification(
    BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, vocab_size=20,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
)  # fmt: skip
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=2, per_device_train_batch_size=8, learning_rate=5e-3, logging_steps=4, save_steps=4,
    eval_strategy="epoch", report_to=[], disable_tqdm=True, use_cpu=True, seed=1, warmup_steps=2, max_grad_norm=1.0,
)  # fmt: skip
counting = Counting()
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=Parity(32),
    eval_dataset=Parity(16),
    compute_metrics=metrics,
    callbacks=[counting],
)
trainer.remove_callback(PrinterCallback)  # it prints how long things take
result = trainer.train()
print("steps", result.global_step, counting.steps, f"loss {result.training_loss:.2f}")
print("logged", [sorted(entry)[:3] for entry in trainer.state.log_history][:2])
found = trainer.evaluate()
print(f"evaluated {found['eval_loss']:.2f} {found['eval_right']:.2f}")
print("predicted", trainer.predict(Parity(4)).predictions.shape)

resumed = Trainer(model=model, args=arguments, train_dataset=Parity(32), eval_dataset=Parity(16))
resumed.remove_callback(PrinterCallback)
print("resumed", resumed.train(resume_from_checkpoint="out/checkpoint-4").global_step)
