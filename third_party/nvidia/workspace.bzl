# SPDX-License-Identifier: Apache-2.0
"""The two small NVIDIA libraries that even LibTorch's CPU library needs to load. No driver, no GPU."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:wheel.bzl", "wheel_archive")

def nvidia():
    maybe(
        wheel_archive,
        name = "nvidia_cuda_runtime",
        package = "nvidia-cuda-runtime",
        version = "13.0.96",
        sha256 = "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        members = ["nvidia/cu13/lib/libcudart.so.13"],
        build_file = Label("//third_party/nvidia:cudart.BUILD.bazel"),
    )
    maybe(
        wheel_archive,
        name = "nvidia_cuda_cupti",
        package = "nvidia-cuda-cupti",
        version = "13.0.85",
        sha256 = "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
        members = ["nvidia/cu13/lib/libcupti.so.13"],
        build_file = Label("//third_party/nvidia:cupti.BUILD.bazel"),
    )
