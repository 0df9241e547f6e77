# SPDX-License-Identifier: Apache-2.0
"""yaml-cpp 0.7 from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def yaml_cpp():
    maybe(
        debian_packages,
        name = "com_github_jbeder_yaml_cpp",
        packages = ["libyaml-cpp-dev"],
        build_file = Label("//third_party/yaml_cpp:yaml_cpp.BUILD.bazel"),
    )
