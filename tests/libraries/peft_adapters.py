"""peft: low-rank and other adapters of a GPT-2, saved, loaded and merged."""

import torch
from peft import (
    IA3Config,
    LoHaConfig,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2))


x = torch.randint(0, 50, (2, 12))
for config in (
    LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], task_type="CAUSAL_LM"),
    LoraConfig(r=4, use_dora=True, target_modules=["c_attn"], task_type="CAUSAL_LM"),
    IA3Config(target_modules=["c_attn"], feedforward_modules=[], task_type="CAUSAL_LM"),
    PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    LoHaConfig(r=2, target_modules=["lm_head"], task_type="CAUSAL_LM"),
    PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
):
    adapted = get_peft_model(base(), config)
    adapted.train(False)
    optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], 0.01)
    for _ in range(3):
        loss = adapted(input_ids=x, labels=x).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(type(config).__name__, round(loss.item(), 4), sum(p.numel() for p in adapted.parameters() if p.requires_grad))
adapted = get_peft_model(base(), LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM"))
adapted.save_pretrained("lora")
loaded = PeftModel.from_pretrained(base(), "lora")
print(torch.allclose(adapted(input_ids=x).logits, loaded(input_ids=x).logits))
merged = loaded.merge_and_unload()
print(type(merged).__name__)
