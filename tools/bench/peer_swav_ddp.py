# SPDX-License-Identifier: Apache-2.0
"""peer_swav.py's training over several processes, as a Python user does it: DistributedDataParallel over Gloo.

  VENV/bin/python tools/bench/peer_swav_ddp.py DIR --width 32 --steps 24 [--ranks 2] [--bf16] [--channels-last]

The same network, crops, loss and optimizer; `--batch` is of all ranks together, and Sinkhorn's sums go over all ranks.
Each rank computes with `--threads` threads. The defaults of the other options are the best that were found on two cores
(docs/performance.md). The result line is rank 0's. Needs what peer_swav.py needs.
"""
import argparse
import os
import pathlib
import resource
import tempfile
import time

import peer_swav
import torch
from peer_swav import EPSILON, FROZEN_PROTOTYPE_STEPS, GLOBAL_CROPS, SINKHORN_STEPS, TEMPERATURE, WARM_UP_STEPS
from torch import distributed
from torch.nn import functional


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


def swav_loss(scores):
    """peer_swav.swav_loss with these codes."""
    total = 0.0
    for assigned in range(GLOBAL_CROPS):
        codes = sinkhorn(scores[assigned].detach())
        for other, prediction in enumerate(scores):
            if other != assigned:
                total = total - (codes * functional.log_softmax(prediction / TEMPERATURE, 1)).sum(1).mean()
    return total / (GLOBAL_CROPS * (len(scores) - 1))


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
    net = peer_swav.Swav(args.width, args.prototypes)
    if args.channels_last:
        net = net.to(memory_format=torch.channels_last)
    model = wrap(net, args)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.learning_rate, momentum=0.9, weight_decay=1e-6)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    batch = args.batch // args.ranks
    batches = batches_of_rank(args, batch)
    start, waited = 0.0, 0.0
    for step in range(1, args.steps + 1):
        asked = time.perf_counter()
        views = next(batches)
        waited += time.perf_counter() - asked
        if args.channels_last:
            views = [images.contiguous(memory_format=torch.channels_last) for images in views]
        net.normalize_prototypes()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            scores = model(views)
        loss = swav_loss(scores.float().split(batch))
        optimizer.zero_grad()
        loss.backward()
        if step <= FROZEN_PROTOTYPE_STEPS:
            net.prototypes.weight.grad = None
        optimizer.step()
        schedule.step()
        if step == WARM_UP_STEPS:
            start, waited = time.perf_counter(), 0.0
        if rank == 0 and step % 20 == 0:
            print(f"step {step}/{args.steps} loss {loss.item():.4f}", flush=True)
    distributed.barrier()
    if rank == 0:
        report(args, (time.perf_counter() - start) / (args.steps - WARM_UP_STEPS), waited)
    distributed.destroy_process_group()


def report(args, seconds, waited):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peer: {1e3 * seconds:.1f} ms/step  {args.batch / seconds:.0f} samples/s  "
          f"data-wait {1e3 * waited / (args.steps - WARM_UP_STEPS):.1f} ms  maxrss {memory:.0f} MB", flush=True)


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
