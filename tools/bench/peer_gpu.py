# SPDX-License-Identifier: Apache-2.0
"""SwAV, MoCo v2 or SimCLR on one GPU as fast as PyTorch makes them: the peer that compare_gpu.py measures against.

  VENV/bin/python tools/bench/peer_gpu.py DATA --workload swav|moco|simclr --steps 200
  VENV/bin/python tools/bench/peer_gpu.py DATA --workload swav --device cpu --tiny --steps 12

Images, network, head, loss, batch and optimizer are those of configs/config/bench/*_gpu_peer.yaml, which say what is
the same. Model and loss are one torch.compile with CUDA graphs (--mode), channels-last, under bfloat16 autocast; SGD is
fused. A DataLoader's processes make 8-bit views, by Albumentations on OpenCV or by torchvision on Pillow (--loader);
they come through pinned memory and a stream of their own while a step computes, and are normalised in the compiled
code. `--loader resident`: the same random batch in each step, which lies on the device: no loader can be faster.

DATA is a folder with a folder of JPEGs for each class (make_photos.py makes one), for simclr that of the Fashion-MNIST
files. --tiny shrinks everything, to try the program without a GPU; its figures say nothing. The first 20 steps, which
compile and record, do not count. The time of waiting for data is that in which this program asked the loader, at most
one step ahead of the device: what a step hid of it counts as well. Needs torch for CUDA, torchvision, numpy, pillow,
albumentations and opencv-python-headless.
"""
import argparse
import os
import resource
import time

import peer_loader
import peer_swav
import torch
from torch import nn
from torch.nn import functional
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50

WARM_UP_STEPS = 20
MILD = (0.4, 0.4, 0.4, 0.1)
# Views as (count, size, scale, jitter, is_blurred).
VIEWS = {
    "swav": [(2, 224, (0.14, 1.0), peer_loader.STRONG, True), (6, 96, (0.05, 0.14), peer_loader.STRONG, True)],
    "moco": [(2, 224, (0.2, 1.0), MILD, True)],
    "simclr": [(2, 32, (0.2, 1.0), MILD, False)],
}
BATCH = {"swav": 128, "moco": 256, "simclr": 512}
TINY_BATCH = 8
RATES = {"swav": (0.1, 1e-6), "moco": (0.03, 1e-4), "simclr": (0.1, 1e-4)}  # learning rate, weight decay
PHOTOS = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
FASHION_MNIST = ([0.286] * 3, [0.353] * 3)


class Pixels(nn.Module):
    """8-bit views [B, 3, H, W] to normalised ones, and one after the other through an encoder."""

    def __init__(self, encoder, normalization):
        super().__init__()
        self.encoder = encoder
        for name, values in zip(("mean", "std"), normalization):
            self.register_buffer(name, torch.tensor(values).view(1, 3, 1, 1))

    def forward(self, views):
        return self.encoder([(view / 255 - self.mean) / self.std for view in views])


class Embedding(nn.Module):
    """All views in one pass through a trunk and two layers, to unit length: [views * B, width]."""

    def __init__(self, trunk, features, width):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, width))

    def forward(self, views):
        return functional.normalize(self.head(self.trunk(torch.cat(views))).float(), dim=1)


class Method(nn.Module):
    """What is compiled: views to the loss and what Advance takes. `net` is what trains."""

    def __init__(self, args, net):
        super().__init__()
        self.net = Pixels(net, args.normalization)
        self.device_type = args.device
        self.batch = args.batch

    def autocast(self):
        return torch.autocast(self.device_type, dtype=torch.bfloat16)

    def prepare(self):
        """Before each step; not compiled."""

    def advance(self, result):
        """After each step; not compiled."""


class Swav(Method):

    def __init__(self, args):
        trunk, features = make_trunk(args)
        super().__init__(args, peer_swav.Swav(trunk, features, 16 if args.tiny else 3000))

    def prepare(self):
        self.net.encoder.normalize_prototypes()

    def forward(self, views):
        with self.autocast():
            scores = self.net(views)
        return peer_swav.swav_loss(scores.float().split(self.batch)), scores[:0]


class Moco(Method):
    """The first view asks, the second view's keys are made by a network that follows; one process shuffles nothing."""

    MOMENTUM, TEMPERATURE = 0.999, 0.2

    def __init__(self, args):
        super().__init__(args, Embedding(*make_trunk(args), 128))
        self.keys = Pixels(Embedding(*make_trunk(args), 128), args.normalization)
        self.keys.load_state_dict(self.net.state_dict())
        self.keys.requires_grad_(False)
        size = 4 * args.batch if args.tiny else 65536
        self.register_buffer("queue", functional.normalize(torch.randn(size, 128), dim=1))
        self.next_key = 0

    @torch.no_grad()
    def prepare(self):
        torch._foreach_lerp_(list(self.keys.parameters()), list(self.net.parameters()), 1 - self.MOMENTUM)

    def forward(self, views):
        with self.autocast():
            queries = self.net(views[:1])
            with torch.no_grad():
                keys = self.keys(views[1:])
        logits = torch.cat([(queries * keys).sum(1, keepdim=True), queries @ self.queue.t()], 1) / self.TEMPERATURE
        return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device)), keys

    @torch.no_grad()
    def advance(self, result):
        self.queue[self.next_key:self.next_key + self.batch].copy_(result)
        self.next_key = (self.next_key + self.batch) % len(self.queue)


class Simclr(Method):

    TEMPERATURE = 0.5

    def __init__(self, args):
        super().__init__(args, Embedding(*make_trunk(args), 128))

    def forward(self, views):
        with self.autocast():
            embeddings = self.net(views)
        count = len(embeddings)
        own = torch.eye(count, dtype=torch.bool, device=embeddings.device)
        scores = (embeddings @ embeddings.t() / self.TEMPERATURE).masked_fill(own, float("-inf"))
        partners = torch.arange(count, device=embeddings.device).roll(self.batch)
        return functional.cross_entropy(scores, partners), embeddings[:0]


METHODS = {"swav": Swav, "moco": Moco, "simclr": Simclr}


def make_trunk(args):
    """The trunk and the number of its features."""
    if not args.tiny and args.workload != "simclr":
        trunk = resnet50()
        trunk.fc = nn.Identity()
        return trunk, 2048
    width = 8 if args.tiny else 64
    trunk = peer_swav.backbone(width)
    if args.workload == "simclr":
        trunk.maxpool = nn.Identity()
    return trunk, 8 * width


def views_of(args):
    """Those of the workload, one after the other, as (size, scale, jitter, is_blurred)."""
    views = [tuple(view) for count, *view in VIEWS[args.workload] for _ in range(count)]
    return [(max(16, size // 7), *rest) for size, *rest in views] if args.tiny else views


def albumentations_view(size, scale, jitter, is_blurred):
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for a newer version of itself
    import albumentations
    import cv2
    cv2.setNumThreads(0)
    blur = [albumentations.GaussianBlur(blur_limit=(0, 0), sigma_limit=(0.1, 2.0), p=0.5)] if is_blurred else []
    transform = albumentations.Compose([
        albumentations.RandomResizedCrop(size=(size, size), scale=scale, interpolation=cv2.INTER_AREA),
        albumentations.HorizontalFlip(p=0.5), albumentations.ColorJitter(*jitter, p=0.8), albumentations.ToGray(p=0.2)
    ] + blur)
    return lambda image: torch.from_numpy(transform(image=image)["image"])


def torchvision_view(size, scale, jitter, is_blurred):
    transform = transforms.Compose([
        transforms.ToPILImage(), transforms.RandomResizedCrop(size, scale=scale), transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(*jitter)], p=0.8), transforms.RandomGrayscale(p=0.2)
    ] + ([peer_loader.Blur()] if is_blurred else []) + [transforms.PILToTensor()])
    return lambda image: transform(image).permute(1, 2, 0)


VIEW_MAKERS = {"albumentations": albumentations_view, "torchvision": torchvision_view}


def read_photo(path):
    import cv2
    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


class Views(torch.utils.data.Dataset):
    """`count` samples of an images' source, from its beginning again where it has less; each a list of [H, W, 3]."""

    def __init__(self, args, count):
        self.count = count
        make = VIEW_MAKERS[args.loader]
        views = views_of(args)
        made = {view: make(*view) for view in set(views)}  # one object for equal views
        self.views = [made[view] for view in views]
        if args.workload == "simclr":
            self.images = peer_swav.read_images(args.data)
            self.read = lambda image: image[:, :, None].repeat(3, 2)
        else:
            self.images = [path for path, _ in ImageFolder(args.data).samples]
            self.read = read_photo
        self.order = torch.randperm(count) % len(self.images)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = self.read(self.images[self.order[index]])
        return [make(image) for make in self.views]


def resident_batch(args):
    return [torch.randint(256, (args.batch, size, size, 3), dtype=torch.uint8) for size, *_ in views_of(args)]


def repeated(batch):
    while True:
        yield batch


def host_batches(args):
    """Lists of 8-bit views [B, H, W, 3]."""
    if args.loader == "resident":
        return repeated([view.to(args.device) for view in resident_batch(args)])
    is_gpu = args.device == "cuda"
    context = {"multiprocessing_context": "fork", "prefetch_factor": 4} if args.workers else {}
    return iter(torch.utils.data.DataLoader(Views(args, (args.steps + 1) * args.batch), args.batch, drop_last=True,
                                            num_workers=args.workers, pin_memory=is_gpu, **context))


class DeviceBatches:
    """Batches on the device, [B, 3, H, W] with channels last; on a GPU they are copied on a stream of their own."""

    def __init__(self, args):
        self.batches = host_batches(args)
        self.device = args.device
        self.aside = torch.cuda.Stream() if self.device == "cuda" else None
        self.waited = 0.0
        self.start()

    def start(self):
        """Takes the next batch from the loader and starts its copy."""
        asked = time.perf_counter()
        views = next(self.batches)
        self.waited += time.perf_counter() - asked
        with torch.cuda.stream(self.aside):
            self.views = [view.to(self.device, non_blocking=True).permute(0, 3, 1, 2) for view in views]

    def take(self):
        if self.aside is not None:
            torch.cuda.current_stream().wait_stream(self.aside)
            for view in self.views:
                view.record_stream(torch.cuda.current_stream())
        return self.views


class Pace:
    """Keeps the host one step ahead of the device."""

    def __init__(self, device):
        self.ends = [torch.cuda.Event() for _ in range(2)] if device == "cuda" else []

    def step_is_queued(self):
        if self.ends:
            self.ends[1].record()
            self.ends.reverse()
            self.ends[1].synchronize()  # of the step before; nothing where there was none


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def compiled(args, method):
    if args.mode == "none":
        return method
    if args.mode == "trace":
        return torch.compile(method, backend="aot_eager", fullgraph=True)
    return torch.compile(method, mode=args.mode, fullgraph=True)


def train(args):
    """Seconds of the steps after the warm-up, and of waiting for batches in them."""
    method = METHODS[args.workload](args).to(args.device, memory_format=torch.channels_last)
    model = compiled(args, method)
    rate, weight_decay = RATES[args.workload]
    optimizer = torch.optim.SGD(method.net.parameters(), lr=rate, momentum=0.9, weight_decay=weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    batches, pace, begin = DeviceBatches(args), Pace(args.device), 0.0
    for step in range(1, args.steps + 1):
        torch.compiler.cudagraph_mark_step_begin()
        method.prepare()
        loss, result = model(batches.take())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        method.advance(result)
        if step % 10 == 0:  # as often as ours
            print(f"step {step}/{args.steps} loss {loss.item():.4f}", flush=True)
        pace.step_is_queued()
        if step == WARM_UP_STEPS:
            synchronize(args.device)
            begin, batches.waited = time.perf_counter(), 0.0
        if step < args.steps:
            batches.start()
    synchronize(args.device)
    return time.perf_counter() - begin, batches.waited


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of JPEGs, or of the Fashion-MNIST files")
    parser.add_argument("--workload", choices=sorted(METHODS), required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a small network, small views and batches")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--mode", choices=("max-autotune", "reduce-overhead", "default", "trace", "none"),
                        help="of torch.compile; trace: compiled by nothing; none: not even traced")
    parser.add_argument("--loader", choices=sorted(VIEW_MAKERS) + ["resident"], default="albumentations")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.steps <= WARM_UP_STEPS:
        parser.error(f"--steps is {args.steps}, expected more than {WARM_UP_STEPS}")
    args.mode = args.mode or ("none" if args.tiny else "max-autotune")
    args.batch = TINY_BATCH if args.tiny else BATCH[args.workload]
    args.normalization = FASHION_MNIST if args.workload == "simclr" else PHOTOS
    return args


def main():
    args = parse()
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    seconds, waited = train(args)
    counted = args.steps - WARM_UP_STEPS
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peer: {1e3 * seconds / counted:.1f} ms/step  {args.batch * counted / seconds:.0f} samples/s  "
          f"data-wait {1e3 * waited / counted:.1f} ms  maxrss {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
