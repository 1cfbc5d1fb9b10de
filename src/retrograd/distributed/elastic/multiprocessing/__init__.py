"""torch.distributed.elastic.multiprocessing: the processes that torchrun starts."""
