# SPDX-License-Identifier: Apache-2.0
"""SwAV on Fashion-MNIST as a Python user writes it today: the peer that compare_swav.py measures against.

  VENV/bin/python tools/bench/peer_swav.py DIR --width 32 --steps 100 [--bf16] [--channels-last]

torchvision's ResNet-18 with a 3x3 stem, Pillow transforms in a DataLoader with two workers, 2 crops of 28 and 4 of 16
pixels, batches of 256, 100 prototypes; Sinkhorn and the loss as in the paper (arXiv 2006.09882), in plain PyTorch. DIR
holds the four Fashion-MNIST IDX .gz files. Prints a line every 20 steps and a result line at the end; the first three
steps do not count. Needs torch, torchvision, pillow, numpy.
"""
import argparse
import gzip
import pathlib
import resource
import time

import numpy
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torchvision import transforms
from torchvision.models.resnet import BasicBlock, ResNet

GLOBAL_CROPS, LOCAL_CROPS = 2, 4
TEMPERATURE, EPSILON, SINKHORN_STEPS = 0.1, 0.05, 3
FROZEN_PROTOTYPE_STEPS = 100
WARM_UP_STEPS = 3


def read_images(folder):
    path = pathlib.Path(folder, "train-images-idx3-ubyte.gz")
    return numpy.frombuffer(gzip.decompress(path.read_bytes()), numpy.uint8, offset=16).reshape(-1, 28, 28)


def view(size, scale):
    return transforms.Compose([
        transforms.RandomResizedCrop(size, scale=scale, antialias=True),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(0.4, 0.4)], p=0.8),
        transforms.ToTensor(),
        transforms.Normalize([0.286] * 3, [0.353] * 3),
    ])


class Crops(torch.utils.data.Dataset):

    def __init__(self, images):
        self.images = images
        self.views = [view(28, (0.3, 1.0))] * GLOBAL_CROPS + [view(16, (0.1, 0.3))] * LOCAL_CROPS

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index]).convert("RGB")
        return [make(image) for make in self.views]


def backbone(width):
    """torchvision's ResNet-18 with other channel counts and the stem that small images take."""
    net = ResNet(BasicBlock, [2, 2, 2, 2])
    net.inplanes = width
    net.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
    net.bn1 = nn.BatchNorm2d(width)
    for index in range(4):
        layer = net._make_layer(BasicBlock, width << index, 2, stride=1 if index == 0 else 2)
        setattr(net, f"layer{index + 1}", layer)
    net.fc = nn.Identity()
    return net


class Swav(nn.Module):

    def __init__(self, trunk, features, prototypes):
        super().__init__()
        self.backbone = trunk
        self.head = nn.Sequential(nn.Linear(features, features), nn.BatchNorm1d(features), nn.ReLU(),
                                  nn.Linear(features, 128))
        self.prototypes = nn.Linear(128, prototypes, bias=False)

    def forward(self, views):
        # One pass for each resolution.
        features = [self.backbone(torch.cat(views[:GLOBAL_CROPS])), self.backbone(torch.cat(views[GLOBAL_CROPS:]))]
        return self.prototypes(functional.normalize(self.head(torch.cat(features)), dim=1))

    @torch.no_grad()
    def normalize_prototypes(self):
        self.prototypes.weight.copy_(functional.normalize(self.prototypes.weight, dim=1))


@torch.no_grad()
def sinkhorn(scores):
    """[batch, prototypes] -> codes of the same shape; rows sum to 1, columns are used equally."""
    codes = torch.exp((scores - scores.max()) / EPSILON).t()
    codes /= codes.sum()
    for _ in range(SINKHORN_STEPS):
        codes /= codes.sum(1, keepdim=True) * codes.shape[0]
        codes /= codes.sum(0, keepdim=True) * codes.shape[1]
    return (codes * codes.shape[1]).t()


def swav_loss(scores, codes_of=sinkhorn):
    """scores: of each view, [batch, prototypes]. Each global view's codes are predicted from all other views."""
    total = 0.0
    for assigned in range(GLOBAL_CROPS):
        codes = codes_of(scores[assigned].detach())
        for other, prediction in enumerate(scores):
            if other != assigned:
                total = total - (codes * functional.log_softmax(prediction / TEMPERATURE, 1)).sum(1).mean()
    return total / (GLOBAL_CROPS * (len(scores) - 1))


def endless(loader):
    while True:
        yield from loader


def make_net(args):
    return in_format(args, Swav(backbone(args.width), 8 * args.width, args.prototypes))


def in_format(args, net):
    return net.to(memory_format=torch.channels_last) if args.channels_last else net


def run_steps(args, net, model, batches, loss_of, prints=True):
    """Trains `net`, called as `model`; loss_of takes each view's scores. Returns the warm-up's end, seconds waited."""
    optimizer = torch.optim.SGD(net.parameters(), lr=args.learning_rate, momentum=0.9, weight_decay=1e-6)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    start, waited = 0.0, 0.0
    for step in range(1, args.steps + 1):
        asked = time.perf_counter()
        views = next(batches)
        waited += time.perf_counter() - asked
        batch = len(views[0])
        if args.channels_last:
            views = [images.contiguous(memory_format=torch.channels_last) for images in views]
        net.normalize_prototypes()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            scores = model(views)
        loss = loss_of(scores.float().split(batch))
        optimizer.zero_grad()
        loss.backward()
        if step <= FROZEN_PROTOTYPE_STEPS:
            net.prototypes.weight.grad = None
        optimizer.step()
        schedule.step()
        if step == WARM_UP_STEPS:
            start, waited = time.perf_counter(), 0.0
        if prints and step % 20 == 0:
            print(f"step {step}/{args.steps} loss {loss.item():.4f}", flush=True)
    return start, waited


def report(args, start, waited):
    counted = args.steps - WARM_UP_STEPS
    seconds = (time.perf_counter() - start) / counted
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peer: {1e3 * seconds:.1f} ms/step  {args.batch / seconds:.0f} samples/s  "
          f"data-wait {1e3 * waited / counted:.1f} ms  maxrss {memory:.0f} MB", flush=True)


def train(args):
    torch.manual_seed(args.seed)
    net = make_net(args)
    loader = torch.utils.data.DataLoader(Crops(read_images(args.data)), args.batch, shuffle=True, drop_last=True,
                                         num_workers=args.workers)
    report(args, *run_steps(args, net, net, endless(loader), swav_loss))


def parse(description, data, batch, add_arguments):
    """The arguments that all programs of this kind take, and those that `add_arguments` adds to the parser."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help=data)
    add_arguments(parser)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--prototypes", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast")
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    if args.steps <= WARM_UP_STEPS:
        parser.error(f"--steps is {args.steps}, expected more than {WARM_UP_STEPS}")
    return args


def main():
    train(parse(__doc__, "folder of the Fashion-MNIST files", 256, lambda parser: parser.add_argument(
        "--width", type=int, default=64, help="channels of the first stage")))


if __name__ == "__main__":
    main()
