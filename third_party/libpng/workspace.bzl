# SPDX-License-Identifier: Apache-2.0
"""libpng from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def libpng():
    maybe(
        debian_packages,
        name = "libpng",
        packages = ["libpng-dev"],
        build_file = Label("//third_party/libpng:libpng.BUILD.bazel"),
    )
