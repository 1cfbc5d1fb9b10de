"""Teach a small GPT to write like Lewis Carroll, one character at a time.

retrograd run examples/gpt.py
python examples/gpt.py              (where PyTorch is installed)
"""

import math

import torch
from matplotlib.figure import Figure
from shared import DATA, read_options, report, training_steps
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

CONTEXT = 64  # how many characters the network sees
WIDTH = 96
HEADS = 4
LAYERS = 2
BATCH_SIZE = 16
LEARNING_RATE = 4e-3
WARM_UP = 50


class Block(nn.Module):
    """Attention brings together what the characters before have to say; the feed-forward part thinks it over."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.to_query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.to_output = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, x):
        batch, length, _ = x.shape
        parts = self.to_query_key_value(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind()  # each (batch, heads, length, width of a head)
        # Causal: a character may look at those before it only, else it would see the one it has to guess.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.to_output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.characters = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        for embedding in (self.characters, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, codes):
        x = self.characters(codes) + self.positions(torch.arange(codes.shape[1]))
        x = self.norm(self.blocks(x))
        # The table that reads characters also scores them: fewer parameters, and they learn faster.
        return functional.linear(x, self.characters.weight)


def pick_batch(codes):
    """Give random pieces of the text, and the same pieces one character later."""
    starts = torch.randint(len(codes) - CONTEXT, (BATCH_SIZE, 1))
    places = starts + torch.arange(CONTEXT)
    return codes[places], codes[places + 1]


def loss_of(model, inputs, targets):
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def learning_rate_at(step, steps):
    """Rise for a while, since the first gradients point anywhere; then fall along half a cosine."""
    return min((step + 1) / WARM_UP, 0.5 + 0.5 * math.cos(math.pi * step / steps))


def train(model, codes, steps):
    """Fit the model; give the loss of every step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = LambdaLR(optimizer, lambda step: learning_rate_at(step, steps))
    losses = []
    for step in training_steps(steps):
        loss = loss_of(model, *pick_batch(codes))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        report(step, steps, f"loss {losses[-1]:.4f}")
    return losses


@torch.no_grad()
def write(model, codes, length):
    """Continue a text by drawing one character after the other."""
    for _ in range(length):
        scores = model(codes[None, -CONTEXT:])[0, -1]
        chances = (scores / 0.8).softmax(dim=0)  # below 1: rather the likely characters
        codes = torch.cat([codes, torch.multinomial(chances, 1)])
    return codes


def draw(losses, vocabulary, path):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color="C0", linewidth=0.8)
    axes.axhline(math.log(vocabulary), color="0.6", linestyle="--", label="every character equally likely")
    axes.set(xlabel="step", ylabel="loss (nats per character)", title="A small GPT reads Alice in Wonderland")
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=1500)
    text = (DATA / "alice.txt").read_text()
    alphabet = sorted(set(text))
    code_of = {character: code for code, character in enumerate(alphabet)}
    codes = torch.tensor([code_of[character] for character in text])
    learn, check = codes[: -len(codes) // 10], codes[-len(codes) // 10 :]
    model = GPT(len(alphabet))
    number_count = sum(p.numel() for p in model.parameters())
    print(f"{len(text)} characters, {len(alphabet)} different ones, {number_count} parameters")

    losses = train(model, learn, options.steps)

    with torch.no_grad():
        unseen = sum(loss_of(model, *pick_batch(check)).item() for _ in range(10)) / 10
    print(f"loss on a tenth of the text that it has not seen: {unseen:.4f}")
    start = "Alice "
    written = write(model, torch.tensor([code_of[character] for character in start]), min(options.steps, 400))
    print("".join(alphabet[code] for code in written.tolist()))
    picture = options.out / "gpt.png"
    draw(losses, len(alphabet), picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
