# SPDX-License-Identifier: Apache-2.0
"""LibTorch 2.11.0 (headers and CPU libraries) out of the Python wheel, CXX11 ABI."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:wheel.bzl", "wheel_archive")

def libtorch():
    maybe(
        wheel_archive,
        name = "libtorch",
        package = "torch",
        version = "2.11.0",
        sha256 = "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a",
        members = [
            "torch/include/*",
            "torch/lib/libc10.so",
            "torch/lib/libgomp.so.1",
            "torch/lib/libtorch_cpu.so",
        ],
        build_file = Label("//third_party/libtorch:libtorch.BUILD.bazel"),
    )
