"""torch.distributed.algorithms.ddp_comm_hooks: what becomes of gradients on their way to other processes.

DistributedDataParallel of one process sends nothing and calls no hook; the simple ones can be called on a bucket all the same.
"""
