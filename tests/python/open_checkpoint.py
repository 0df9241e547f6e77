# SPDX-License-Identifier: Apache-2.0
"""Opens a checkpoint of ours in plain Python and checks that torchvision computes the same features.

Run by hand, with torch, torchvision and safetensors:
  ./bazelw run //tests/python:dump_features -- RUN_DIR FEATURES.safetensors
  python3 tests/python/open_checkpoint.py RUN_DIR --features FEATURES.safetensors

Takes RUN_DIR's newest checkpoint (`checkpoints/step_<N>/model.safetensors`), loads the tensors
named `trunk.*` into torchvision's ResNet, whose depth, widths, stem and stages are read off
their shapes, and lets it compute the features of `images` [N, 3, H, W] of FEATURES, in
evaluation mode. They must equal `features` [N, D] of FEATURES, which the trainer wrote, to
1e-5 of their largest value. Strides are not visible in tensors: see the options.
"""
import argparse
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

PREFIX = "trunk."
MAY_BE_MISSING = re.compile(r"fc[.]")


def newest_checkpoint(run_dir):
    """The model file of the finished checkpoint with the highest step."""
    steps = {int(match.group(1)): path for path in (run_dir / "checkpoints").glob("step_*/model.safetensors")
             if (match := re.fullmatch(r"step_(\d+)", path.parent.name))}
    if not steps:
        sys.exit(f"{run_dir}/checkpoints: no step_<N>/model.safetensors")
    return steps[max(steps)]


def block_counts(state):
    """Blocks of each stage that has any."""
    indices = {}
    for key in state:
        match = re.match(r"layer(\d)[.](\d+)[.]", key)
        if match:
            stage, block = int(match.group(1)), int(match.group(2))
            indices[stage] = max(indices.get(stage, 0), block + 1)
    if sorted(indices) != list(range(1, len(indices) + 1)) or not indices:
        sys.exit(f"stages are {sorted(indices)}, expected 1, 2, ...: is this a ResNet?")
    return [indices[stage] for stage in sorted(indices)]


def make_resnet(state, stem_stride, max_pool):
    """torchvision's ResNet with the shapes that `state` shows."""
    bottleneck = "layer1.0.conv3.weight" in state
    block = Bottleneck if bottleneck else BasicBlock
    last = "conv3" if bottleneck else "conv2"
    planes = state[f"layer1.0.{last}.weight"].shape[0] // block.expansion
    stem = state["conv1.weight"].shape
    kernel = stem[2]
    net = ResNet(block, [1, 1, 1, 1])
    if bottleneck:
        inner = state["layer1.0.conv2.weight"].shape  # [width * groups, width, 3, 3]
        net.groups = inner[0] // inner[1]
        net.base_width = 64 * inner[1] / planes
    net.inplanes = stem[0]
    net.conv1 = nn.Conv2d(stem[1], stem[0], kernel, stem_stride or (1 if kernel == 3 else 2), kernel // 2, bias=False)
    net.bn1 = nn.BatchNorm2d(stem[0])
    if not max_pool:
        net.maxpool = nn.Identity()
    counts = block_counts(state)
    for stage in range(1, 5):
        if stage > len(counts):
            setattr(net, f"layer{stage}", nn.Identity())
            continue
        width = planes * 2 ** (stage - 1)
        layer = net._make_layer(block, width, counts[stage - 1], stride=1 if stage == 1 else 2)
        setattr(net, f"layer{stage}", layer)
    net.fc = nn.Identity()
    return net


def load_trunk(path, stem_stride, max_pool):
    state = {key[len(PREFIX):]: value for key, value in load_file(path).items() if key.startswith(PREFIX)}
    if "conv1.weight" not in state:
        sys.exit(f"{path}: no {PREFIX}conv1.weight: not a ResNet trunk")
    net = make_resnet(state, stem_stride, max_pool)
    result = net.load_state_dict({key: value.float() if value.is_floating_point() else value
                                  for key, value in state.items()}, strict=False)
    missing = [key for key in result.missing_keys if not MAY_BE_MISSING.match(key)]
    if missing or result.unexpected_keys:
        sys.exit(f"{path}: missing {missing}, unexpected {result.unexpected_keys}")
    return net.eval(), len(state)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run_dir", type=pathlib.Path)
    parser.add_argument("--features", type=pathlib.Path, required=True)
    parser.add_argument("--stem_stride", type=int, default=0, help="0: 2 for a 7x7 stem, 1 for a 3x3 one")
    parser.add_argument("--no_max_pool", action="store_true", help="the trunk has MAX_POOL: False")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="of the largest feature")
    args = parser.parse_args()
    path = newest_checkpoint(args.run_dir)
    net, count = load_trunk(path, args.stem_stride, not args.no_max_pool)
    reference = load_file(args.features)
    with torch.no_grad():
        features = net(reference["images"].float())
    expected = reference["features"].float()
    if features.shape != expected.shape:
        sys.exit(f"{args.features}: features are {list(expected.shape)}, torchvision's are {list(features.shape)}")
    scale = expected.abs().max().item()
    difference = (features - expected).abs().max().item()
    print(f"{path}: {count} tensors; {len(expected)} images; largest feature {scale:.4g}, largest difference {difference:.3g}")
    if not difference <= args.tolerance * scale:
        sys.exit(f"difference is over {args.tolerance:g} of the largest feature")


if __name__ == "__main__":
    main()
