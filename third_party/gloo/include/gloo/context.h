// SPDX-License-Identifier: Apache-2.0
// Declarations for c10d's header: see BUILD.bazel. The class is complete only inside libtorch_cpu.so; its size is not
// this one's, so no code outside may make or copy one.
#pragma once
#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
