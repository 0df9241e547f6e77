# SPDX-License-Identifier: Apache-2.0
"""glog 0.6 from Debian, with the unwinder that its archive needs."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def glog():
    maybe(
        debian_packages,
        name = "com_github_google_glog",
        packages = ["libgoogle-glog-dev", "libunwind8", "liblzma5"],
        build_file = Label("//third_party/glog:glog.BUILD.bazel"),
    )
