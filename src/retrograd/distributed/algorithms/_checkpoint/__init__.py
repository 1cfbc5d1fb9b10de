"""torch.distributed.algorithms._checkpoint: modules whose values backward computes again."""
