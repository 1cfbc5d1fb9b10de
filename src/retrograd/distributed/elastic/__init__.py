"""torch.distributed.elastic: what torchrun gives a program."""
