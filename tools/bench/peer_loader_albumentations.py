# SPDX-License-Identifier: Apache-2.0
"""How many images a second Albumentations' transforms in a DataLoader prepare: a peer of compare_loader.py.

  VENV/bin/python tools/bench/peer_loader_albumentations.py FOLDER --recipe swav|moco --workers 2 --images 1000

The recipes of peer_loader.py, decoded and computed by OpenCV: faster than Pillow, with pixels of its own. Needs
albumentations, opencv-python-headless and what peer_loader.py needs.
"""
import albumentations
import cv2
from albumentations.pytorch import ToTensorV2

import peer_loader


def view(size, scale, jitter):
    transform = albumentations.Compose([
        albumentations.RandomResizedCrop(size=(size, size), scale=scale, interpolation=cv2.INTER_AREA),
        albumentations.HorizontalFlip(p=0.5),
        albumentations.ColorJitter(*jitter, p=0.8),
        albumentations.ToGray(p=0.2),
        albumentations.GaussianBlur(blur_limit=(0, 0), sigma_limit=(0.1, 2.0), p=0.5),
        albumentations.Normalize(),
        ToTensorV2(),
    ])
    return lambda image: transform(image=image)["image"]


def read(path):
    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


def main():
    cv2.setNumThreads(0)
    peer_loader.measure(view, read)


if __name__ == "__main__":
    main()
