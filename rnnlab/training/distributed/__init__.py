"""Data-parallel training: the processes of an MPI job (its ranks) and their communication.

Every rank has the whole model and computes the gradient of its rows of each batch. The gradients are summed,
and every rank makes the same update, so parameters are bitwise identical on all ranks.
Where a split is scored or decoded, each rank does some of its batches, and all ranks get all results.
"""

from rnnlab.training.distributed.communicators import (
    ALONE,
    TIMEOUT,
    Communicator,
    MPICommunicator,
    OneProcess,
    communicator_of,
    world,
)
from rnnlab.training.distributed.ranks import (
    DriftError,
    by_rank_0,
    check_same,
    device_of_rank,
    gather_results,
    in_shares,
    of_rank_0,
    on_host,
    rank_0_prints,
    sum_on_gpus,
)

__all__ = [
    "ALONE",
    "TIMEOUT",
    "Communicator",
    "DriftError",
    "MPICommunicator",
    "OneProcess",
    "by_rank_0",
    "check_same",
    "communicator_of",
    "device_of_rank",
    "gather_results",
    "in_shares",
    "of_rank_0",
    "on_host",
    "rank_0_prints",
    "sum_on_gpus",
    "world",
]
