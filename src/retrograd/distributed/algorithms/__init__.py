"""torch.distributed.algorithms: what processes do besides the collectives."""
