# SPDX-License-Identifier: Apache-2.0
"""libjpeg-turbo from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def libjpeg_turbo():
    maybe(
        debian_packages,
        name = "libjpeg_turbo",
        packages = ["libjpeg62-turbo-dev"],
        build_file = Label("//third_party/libjpeg_turbo:libjpeg_turbo.BUILD.bazel"),
    )
