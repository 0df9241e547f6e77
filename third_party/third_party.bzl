# SPDX-License-Identifier: Apache-2.0
"""Every dependency, by its canonical repository name. A workspace that embeds //ssl and
declares one of these names before calling third_party_dependencies() keeps its own."""

load("//third_party/abseil:workspace.bzl", "abseil")
load("//third_party/fashion_mnist:workspace.bzl", "fashion_mnist")
load("//third_party/gflags:workspace.bzl", "gflags")
load("//third_party/glog:workspace.bzl", "glog")
load("//third_party/googletest:workspace.bzl", "googletest")
load("//third_party/libjpeg_turbo:workspace.bzl", "libjpeg_turbo")
load("//third_party/libpng:workspace.bzl", "libpng")
load("//third_party/libtorch:workspace.bzl", "libtorch")
load("//third_party/libwebp:workspace.bzl", "libwebp")
load("//third_party/nlohmann_json:workspace.bzl", "nlohmann_json")
load("//third_party/nvidia:workspace.bzl", "nvidia")
load("//third_party/re2:workspace.bzl", "re2")
load("//third_party/yaml_cpp:workspace.bzl", "yaml_cpp")
load("//third_party/zlib:workspace.bzl", "zlib")

def third_party_dependencies():
    abseil()
    fashion_mnist()
    gflags()
    glog()
    googletest()
    libjpeg_turbo()
    libpng()
    libtorch()
    libwebp()
    nlohmann_json()
    nvidia()
    re2()
    yaml_cpp()
    zlib()
