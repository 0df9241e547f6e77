# SPDX-License-Identifier: Apache-2.0
"""SwAV on a folder of photographs as a Python user writes it: the peer that compare_swav_photos.py measures against.

  VENV/bin/python tools/bench/peer_swav_photos.py FOLDER --steps 60 --channels-last [--bf16]

torchvision's ResNet-18 and transforms (Pillow) in a DataLoader, 2 crops of 96 and 4 of 48 pixels, batches of 64, 100
prototypes; the loss and the loop are peer_swav.py's. FOLDER has a folder of JPEGs for each class (make_photos.py makes
one). Needs torch, torchvision, pillow, numpy.
"""
import peer_loader
import peer_swav
import torch
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18

FEATURES = 512


def make_net(args):
    trunk = resnet18()
    trunk.fc = nn.Identity()
    return peer_swav.in_format(args, peer_swav.Swav(trunk, FEATURES, args.prototypes))


def views_alone(samples):
    return torch.utils.data.default_collate([views for views, _ in samples])


def batches(args):
    views = ([peer_loader.view(96, (0.14, 1.0), peer_loader.STRONG)] * peer_swav.GLOBAL_CROPS +
             [peer_loader.view(48, (0.05, 0.14), peer_loader.STRONG)] * peer_swav.LOCAL_CROPS)
    data = ImageFolder(args.data, peer_loader.Views(views), loader=peer_loader.read)
    return torch.utils.data.DataLoader(data, args.batch, shuffle=True, drop_last=True, num_workers=args.workers,
                                       persistent_workers=args.workers > 0, collate_fn=views_alone)


def main():
    args = peer_swav.parse(__doc__, "folder of JPEGs, a folder for each class", 64, lambda parser: parser.add_argument(
        "--threads", type=int, help="of the computation; PyTorch's default is one for each core"))
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    net = make_net(args)
    peer_swav.report(args, *peer_swav.run_steps(args, net, net, peer_swav.endless(batches(args)), peer_swav.swav_loss))


if __name__ == "__main__":
    main()
