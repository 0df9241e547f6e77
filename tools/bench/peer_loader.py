# SPDX-License-Identifier: Apache-2.0
"""How many images a second torchvision's transforms in a DataLoader prepare: the peer of //ssl/data/loader:bench_loader.

  VENV/bin/python tools/bench/peer_loader.py FOLDER --recipe swav|moco --workers 2 --images 1000

FOLDER has a folder of JPEGs for each class (make_photos.py makes one). swav: 2 crops of 224 and 6 of 96 pixels; moco: 2
crops of 224. The first batches do not count. Needs torch, torchvision, pillow.
"""
import argparse
import random
import time

import torch
from PIL import Image
from PIL import ImageFilter
from torchvision import transforms
from torchvision.datasets import ImageFolder

BATCH = 32
WARM_UP_BATCHES = 3


class Blur:

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0))) if random.random() < 0.5 else image


def view(size, scale, jitter):
    return transforms.Compose([
        transforms.RandomResizedCrop(size, scale=scale),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(*jitter)], p=0.8),
        transforms.RandomGrayscale(p=0.2),
        Blur(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])


STRONG, MILD = (0.8, 0.8, 0.8, 0.2), (0.4, 0.4, 0.4, 0.1)
VIEWS = {
    "swav": [(224, (0.14, 1.0), STRONG)] * 2 + [(96, (0.05, 0.14), STRONG)] * 6,
    "moco": [(224, (0.2, 1.0), MILD)] * 2,
}


class Views:

    def __init__(self, views):
        self.views = views

    def __call__(self, image):
        return [make(image) for make in self.views]


def repeated(samples, count):
    return (samples * (count // len(samples) + 1))[:count]


def read(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def measure(make_view, loader):
    """Prints the rate of the views that `make_view` makes of what `loader` reads from a path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--recipe", choices=sorted(VIEWS), default="swav")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    # One object for equal views.
    made = {key: make_view(*key) for key in set(VIEWS[args.recipe])}
    data = ImageFolder(args.folder, Views([made[key] for key in VIEWS[args.recipe]]), loader=loader)
    data.samples = repeated(data.samples, args.images + WARM_UP_BATCHES * BATCH)
    batches = torch.utils.data.DataLoader(data, BATCH, num_workers=args.workers)
    begin, images = 0.0, 0
    for index, (views, _) in enumerate(batches, 1):
        if index == WARM_UP_BATCHES:
            begin = time.perf_counter()
        elif index > WARM_UP_BATCHES:
            images += len(views[0])
    rate = images / (time.perf_counter() - begin)
    print(f"{args.recipe}, {args.workers} workers: {rate:.1f} images/s, {rate * len(views):.0f} views/s")


if __name__ == "__main__":
    measure(view, read)
