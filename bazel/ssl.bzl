# SPDX-License-Identifier: Apache-2.0
"""The rules that this workspace's C++ is built with."""

COPTS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]

# Tiers say what a .cc may include: 0 no LibTorch, 1 ATen/core/Tensor.h and per-operator
# headers, 2 torch/nn and c10d. Headers are tier 0 or 1 always. The define turns the
# umbrella headers into a compile error.
_NO_UMBRELLA = ["TORCH_ASSERT_ONLY_METHOD_OPERATORS"]

def _local_defines(tier):
    if tier not in (0, 1, 2):
        fail("tier is %s, expected 0, 1 or 2" % tier)
    return _NO_UMBRELLA if tier < 2 else []

def _torch(tier):
    return ["@libtorch//:libtorch"] if tier > 0 else []

# Headers that most files of a tier include are parsed once, not for each file: a compilation takes about 0.6 times as
# long. A file must include what it names all the same.
def _precompiled_header(kind, tier):
    return kind + ("with_torch" if tier > 0 else "without_torch")

def _include(header):
    path = "bazel/precompiled/" + header
    return ["-include", path + ".h", "-include", path + "_version.h"]

def _label(header):
    return [str(Label("//bazel/precompiled:" + header))]

def ssl_cc_library(name, tier = 0, copts = [], local_defines = [], deps = [], **kwargs):
    """A library: one header, its .cc, its deps listed per include."""
    header = _precompiled_header("", tier)
    has_own_options = len(copts) > 0  # which no precompiled header fits
    native.cc_library(
        name = name,
        copts = COPTS + copts + ([] if has_own_options else _include(header)),
        local_defines = _local_defines(tier) + local_defines,
        deps = deps + _torch(tier) + ([] if has_own_options else _label(header)),
        **kwargs
    )

def ssl_cc_test(name, tier = 0, deps = [], size = "small", **kwargs):
    """A GoogleTest with its main."""
    header = _precompiled_header("tests_", tier)
    native.cc_test(
        name = name,
        size = size,
        copts = COPTS + _include(header),
        local_defines = _local_defines(tier),
        deps = deps + _torch(tier) + ["@com_google_googletest//:gtest_main"] + _label(header),
        **kwargs
    )

def ssl_cc_binary(name, tier = 0, deps = [], **kwargs):
    header = _precompiled_header("", tier)
    native.cc_binary(
        name = name,
        copts = COPTS + _include(header),
        local_defines = _local_defines(tier),
        deps = deps + _torch(tier) + _label(header),
        **kwargs
    )
