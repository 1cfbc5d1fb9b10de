"""diffusers: a U-Net that learns to denoise, schedulers, an autoencoder, files."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)

torch.manual_seed(0)
unet = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = DDPMScheduler(num_train_timesteps=50)
optimizer = torch.optim.AdamW(unet.parameters(), 0.001)
for _ in range(3):
    x = torch.randn(4, 1, 8, 8)
    noise = torch.randn_like(x)
    t = torch.randint(0, 50, (4,))
    loss = torch.nn.functional.mse_loss(unet(scheduler.add_noise(x, noise, t), t).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4))
for Sampler in (DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    sampler = Sampler(num_train_timesteps=50)
    sampler.set_timesteps(4)
    torch.manual_seed(1)
    sample = torch.randn(1, 1, 8, 8) * sampler.init_noise_sigma
    with torch.no_grad():
        for t in sampler.timesteps:
            sample = sampler.step(unet(sampler.scale_model_input(sample, t), t).sample, t, sample).prev_sample
    print(Sampler.__name__, round(sample.abs().mean().item(), 3))
autoencoder = AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, latent_channels=2)
image = torch.randn(1, 3, 16, 16)
print(round(autoencoder(image).sample.abs().mean().item(), 4))
conditional = UNet2DConditionModel(
    sample_size=8,
    in_channels=2,
    out_channels=2,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    cross_attention_dim=8,
    attention_head_dim=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
)
print(
    round(conditional(torch.randn(1, 2, 8, 8), torch.tensor([3]), torch.randn(1, 4, 8)).sample.abs().mean().item(), 4)
)
unet.save_pretrained("unet")
print(
    torch.allclose(
        UNet2DModel.from_pretrained("unet")(image[:, :1, :8, :8], 1).sample, unet(image[:, :1, :8, :8], 1).sample
    )
)
