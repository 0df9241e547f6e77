# SPDX-License-Identifier: Apache-2.0
"""Processor time of torchvision's transforms on Pillow images: the peer of //ssl/data/transforms:bench_transforms.

  VENV/bin/python tools/bench/peer_transforms.py

One colour image of 224 x 224 pixels and one thread, each operation always applied; a line for each, named as our program names
it. Needs torch, torchvision, pillow (or pillow-simd), numpy.
"""
import random
import time

import numpy
import torch
from PIL import Image
from PIL import ImageFilter
from torchvision import transforms
from torchvision.transforms import InterpolationMode

SIDE = 224
IMAGES = 300


def blur(low, high):
    return lambda image: image.filter(ImageFilter.GaussianBlur(random.uniform(low, high)))


def multi_crop(image):
    return [crop(image) for crop in LARGE_CROPS + SMALL_CROPS]


LARGE_CROPS = [transforms.RandomResizedCrop(224, scale=(0.14, 1.0))] * 2
SMALL_CROPS = [transforms.RandomResizedCrop(96, scale=(0.05, 0.14))] * 6

OPERATIONS = {
    "RandomResizedCrop size=224": transforms.RandomResizedCrop(224),
    "RandomResizedCrop size=224 interpolation=bicubic":
        transforms.RandomResizedCrop(224, interpolation=InterpolationMode.BICUBIC),
    "Resize size=256": transforms.Resize(256),
    "CenterCrop size=192": transforms.CenterCrop(192),
    "RandomCrop size=224 padding=4": transforms.RandomCrop(224, padding=4),
    "RandomVerticalFlip p=1": transforms.RandomVerticalFlip(p=1),
    "ColorJitter brightness=0.8": transforms.ColorJitter(brightness=0.8),
    "ColorJitter contrast=0.8": transforms.ColorJitter(contrast=0.8),
    "ColorJitter saturation=0.8": transforms.ColorJitter(saturation=0.8),
    "ColorJitter hue=0.2": transforms.ColorJitter(hue=0.2),
    "ImgPilRandomColorJitter p=1": transforms.ColorJitter(0.8, 0.8, 0.8, 0.2),
    "RandomGrayscale p=1": transforms.RandomGrayscale(p=1),
    "ImgPilGaussianBlur p=1 radius_min=0.1 radius_max=2.0": blur(0.1, 2.0),
    "ImgPilGaussianBlur p=1 radius_min=8 radius_max=8": blur(8, 8),
    "ImgPilRandomSolarize p=1": transforms.RandomSolarize(128, p=1),
    "ImgPilToMultiCrop total_num_crops=8": multi_crop,
}


def microseconds_per_image(operation, pixels):
    spent = 0.0
    for index in range(IMAGES):
        image = Image.fromarray(pixels)
        start = time.process_time()
        operation(image)
        if index >= IMAGES // 10:
            spent += time.process_time() - start
    return 1e6 * spent / (IMAGES - IMAGES // 10)


def main():
    torch.set_num_threads(1)
    count = SIDE * SIDE * 3
    noise = numpy.random.default_rng(0).integers(0, 64, count)
    pixels = (numpy.arange(count) // 300 + noise).astype(numpy.uint8).reshape(SIDE, SIDE, 3)
    for name, operation in OPERATIONS.items():
        print(f"{microseconds_per_image(operation, pixels):9.1f} us  {name}")


if __name__ == "__main__":
    main()
