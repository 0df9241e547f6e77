# SPDX-License-Identifier: Apache-2.0
"""gflags 2.2 from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def gflags():
    maybe(
        debian_packages,
        name = "com_github_gflags_gflags",
        packages = ["libgflags-dev"],
        build_file = Label("//third_party/gflags:gflags.BUILD.bazel"),
    )
