# SPDX-License-Identifier: Apache-2.0
"""The step that docs/scaling.md starts from: SwAV with a ResNet-50 on one GPU, in plain PyTorch.

  python3 tools/bench/swav_gpu_step.py [--batches 8,16,32,64,128]

torchvision's ResNet-50, 2 crops of 224 and 6 of 96 pixels, head 2048-2048-128, 3,000 prototypes, channels-last, bfloat16
autocast and TF32; random images, no loader, no Sinkhorn. Medians of the steps after the tenth, in GPU time. Needs
torch, torchvision and a GPU.
"""
import argparse
import statistics

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import resnet50

STEPS, WARM_UP_STEPS = 25, 10


class Swav(nn.Module):

    def __init__(self):
        super().__init__()
        self.trunk = resnet50()
        self.trunk.fc = nn.Identity()
        self.head = nn.Sequential(nn.Linear(2048, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Linear(2048, 128))
        self.prototypes = nn.Linear(128, 3000, bias=False)

    def forward(self, large, small):
        features = torch.cat([self.trunk(large), self.trunk(small)])
        return self.prototypes(functional.normalize(self.head(features), dim=1))


def crops(count, size):
    return torch.randn(count, 3, size, size, device="cuda").to(memory_format=torch.channels_last)


def mark():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def step(model, optimizer, large, small, bf16):
    """Milliseconds of forward, backward and update."""
    marks = [mark()]
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
        scores = model(large, small)
    loss = -functional.log_softmax(scores.float() / 0.1, 1).mean()
    marks.append(mark())
    optimizer.zero_grad()
    loss.backward()
    marks.append(mark())
    optimizer.step()
    marks.append(mark())
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(marks, marks[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="8,16,32,64,128", help="images of a step")
    batches = [int(word) for word in parser.parse_args().batches.split(",")]
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    model = Swav().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {sum(p.numel() for p in model.parameters()):,} parameters")
    for bf16 in (True, False):
        for images in batches:
            large, small = crops(2 * images, 224), crops(6 * images, 96)
            times = [step(model, optimizer, large, small, bf16) for _ in range(STEPS)][WARM_UP_STEPS:]
            forward, backward, update = (statistics.median(column) for column in zip(*times))
            total = forward + backward + update
            print(f"{'bf16' if bf16 else 'tf32'}, {images:4} images: forward {forward:.1f}, backward {backward:.1f}, "
                  f"update {update:.2f} ms; {total / images:.3f} ms an image, {1e3 * images / total:.0f} images/s", flush=True)


if __name__ == "__main__":
    main()
