# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST (60,000 + 10,000 grey 28x28 images, IDX, gzip) from Debian, as data."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def fashion_mnist():
    maybe(
        debian_packages,
        name = "fashion_mnist",
        packages = ["dataset-fashion-mnist"],
        build_file = Label("//third_party/fashion_mnist:fashion_mnist.BUILD.bazel"),
    )
