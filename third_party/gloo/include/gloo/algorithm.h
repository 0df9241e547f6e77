// SPDX-License-Identifier: Apache-2.0
// Included by c10d, which uses nothing of it: see BUILD.bazel.
#pragma once
