"""torch.distributed.algorithms.ddp_comm_hooks: what becomes of gradients on their way to other processes."""
