// SPDX-License-Identifier: Apache-2.0
// Declarations for c10d's header: see BUILD.bazel. Both are only pointed to.
#pragma once

namespace gloo {
namespace transport {

class Device;

// c10d's header holds it in a std::unique_ptr, which asks for a destructor.
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo
