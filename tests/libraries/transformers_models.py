"""transformers: GPT-2, BERT, Llama and ViT made from tiny configurations: training steps, generation, saving and loading."""

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

transformers.logging.set_verbosity_error()
WIDTH = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def train(name, model, **inputs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(round(loss.item(), 3))
    model.eval()
    print(name, sum(one.numel() for one in model.parameters()), "losses", losses)


torch.manual_seed(0)
text = torch.randint(0, 99, (2, 12))

gpt2 = GPT2LMHeadModel(
    GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )
)  # fmt: skip
train("gpt2", gpt2, input_ids=text, labels=text)
print("greedy", gpt2.generate(text[:, :4], max_new_tokens=5, do_sample=False).tolist()[0][4:])
print("beams", tuple(gpt2.generate(text[:, :4], max_new_tokens=5, num_beams=3, do_sample=False).shape))
torch.manual_seed(5)
print("sampled", tuple(gpt2.generate(text[:, :4], max_new_tokens=5, do_sample=True, top_k=10, top_p=0.9).shape))

bert = BertForSequenceClassification(
    BertConfig(**WIDTH, vocab_size=99, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
)
mask = torch.ones_like(text)
mask[1, 8:] = 0
train("bert", bert, input_ids=text, attention_mask=mask, labels=torch.tensor([0, 2]))

llama = LlamaForCausalLM(
    LlamaConfig(
        **WIDTH, vocab_size=99, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=None,
        pad_token_id=0,
    )
)  # fmt: skip
train("llama", llama, input_ids=text, labels=text)
print("greedy", llama.generate(text[:1, :4], max_new_tokens=5, do_sample=False).tolist()[0][4:])

vit = ViTForImageClassification(
    ViTConfig(
        **WIDTH, image_size=16, patch_size=4, num_labels=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
)
train("vit", vit, pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([1, 3]))

for name, model in (("gpt2", gpt2), ("llama", llama)):
    model.save_pretrained(name)
    loaded = AutoModelForCausalLM.from_pretrained(name)
    with torch.no_grad():
        same = torch.equal(loaded(text).logits, model(text).logits)
    print(name, type(loaded).__name__, "loaded, equal", same, loaded.dtype)
narrow = AutoModelForCausalLM.from_pretrained("llama", dtype=torch.bfloat16)
print(narrow.dtype, narrow(text).logits.dtype)
