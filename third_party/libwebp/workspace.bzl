# SPDX-License-Identifier: Apache-2.0
"""libwebp from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def libwebp():
    maybe(
        debian_packages,
        name = "libwebp",
        packages = ["libwebp-dev"],
        build_file = Label("//third_party/libwebp:libwebp.BUILD.bazel"),
    )
