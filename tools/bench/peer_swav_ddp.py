# SPDX-License-Identifier: Apache-2.0
"""peer_swav.py's training over several processes, as a Python user does it: DistributedDataParallel over Gloo.

  VENV/bin/python tools/bench/peer_swav_ddp.py DIR --width 32 --steps 24 [--ranks 2] [--bf16] [--channels-last]

The same network, crops, loss and optimizer; `--batch` is of all ranks together, and Sinkhorn's sums go over all ranks.
Each rank computes with `--threads` threads. The defaults of the other options are the best that were found on two cores
(docs/performance.md). The result line is rank 0's. Needs what peer_swav.py needs.
"""
import argparse
import functools
import os
import pathlib
import tempfile

import peer_swav
import torch
from peer_swav import EPSILON, SINKHORN_STEPS, WARM_UP_STEPS
from torch import distributed


@torch.no_grad()
def sinkhorn(scores):
    """peer_swav.sinkhorn over the samples of all ranks."""
    highest = scores.max()
    distributed.all_reduce(highest, op=distributed.ReduceOp.MAX)
    codes = torch.exp((scores - highest) / EPSILON).t()
    total = codes.sum()
    distributed.all_reduce(total)
    codes /= total
    samples = codes.shape[1] * distributed.get_world_size()
    for _ in range(SINKHORN_STEPS):
        mass = codes.sum(1, keepdim=True)
        distributed.all_reduce(mass)
        codes /= mass * codes.shape[0]
        codes /= codes.sum(0, keepdim=True) * samples
    return (codes * samples).t()


def batches_of_rank(args, batch):
    data = peer_swav.Crops(peer_swav.read_images(args.data))
    sampler = torch.utils.data.distributed.DistributedSampler(data, shuffle=True, drop_last=True)
    loader = torch.utils.data.DataLoader(data, batch, sampler=sampler, drop_last=True, num_workers=args.workers,
                                         persistent_workers=args.workers > 0)
    return peer_swav.endless(loader)


def wrap(net, args):
    return torch.nn.parallel.DistributedDataParallel(
        net, bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=not args.separate_gradients,
        static_graph=not args.dynamic_graph, broadcast_buffers=args.broadcast_buffers)


def train(rank, args, meeting):
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=args.ranks)
    net = peer_swav.make_net(args)
    batches = batches_of_rank(args, args.batch // args.ranks)
    loss_of = functools.partial(peer_swav.swav_loss, codes_of=sinkhorn)
    start, waited = peer_swav.run_steps(args, net, wrap(net, args), batches, loss_of, prints=rank == 0)
    distributed.barrier()
    if rank == 0:
        peer_swav.report(args, start, waited)
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of the Fashion-MNIST files")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=256, help="of all ranks together")
    parser.add_argument("--prototypes", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.6)
    parser.add_argument("--workers", type=int, default=1, help="loader processes of each rank")
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--separate-gradients", action="store_true", help="no gradient_as_bucket_view")
    parser.add_argument("--dynamic-graph", action="store_true", help="no static_graph")
    parser.add_argument("--broadcast-buffers", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast")
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    if args.steps <= WARM_UP_STEPS:
        parser.error(f"--steps is {args.steps}, expected more than {WARM_UP_STEPS}")
    if args.batch % args.ranks:
        parser.error(f"--batch is {args.batch}, expected a multiple of --ranks, {args.ranks}")
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (args, pathlib.Path(folder, "store")), nprocs=args.ranks)


if __name__ == "__main__":
    main()
