# SPDX-License-Identifier: Apache-2.0
"""zlib from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def zlib():
    maybe(
        debian_packages,
        name = "zlib",
        packages = ["zlib1g-dev"],
        build_file = Label("//third_party/zlib:zlib.BUILD.bazel"),
    )
