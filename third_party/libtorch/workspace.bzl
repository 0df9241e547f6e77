# SPDX-License-Identifier: Apache-2.0
"""LibTorch 2.11.0 out of the Python wheel, CXX11 ABI: headers and CPU libraries, and those of CUDA 13.0 apart."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:wheel.bzl", "wheel_archive")

_VERSION = "2.11.0"
_SHA256 = "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a"

def libtorch():
    maybe(
        wheel_archive,
        name = "libtorch",
        package = "torch",
        version = _VERSION,
        sha256 = _SHA256,
        members = [
            "torch/include/*",
            "torch/lib/libc10.so",
            "torch/lib/libgomp.so.1",
            "torch/lib/libtorch_cpu.so",
        ],
        build_file = Label("//third_party/libtorch:libtorch.BUILD.bazel"),
    )
    maybe(
        wheel_archive,
        name = "libtorch_cuda",
        package = "torch",
        version = _VERSION,
        sha256 = _SHA256,
        members = [
            "torch/lib/libc10_cuda.so",
            "torch/lib/libtorch_cuda.so",
            "torch/lib/libtorch_cuda_linalg.so",
            "torch/lib/libtorch_nvshmem.so",
        ],
        build_file = Label("//third_party/libtorch:libtorch_cuda.BUILD.bazel"),
    )
