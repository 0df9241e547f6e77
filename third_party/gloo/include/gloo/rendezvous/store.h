// SPDX-License-Identifier: Apache-2.0
// Declarations for c10d's header: see BUILD.bazel. c10d's GlooStore overrides these four; who made a GlooStore outside
// libtorch_cpu.so would get a table of virtual functions in this order, which is not that of the true class.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace gloo {
namespace rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous
}  // namespace gloo
