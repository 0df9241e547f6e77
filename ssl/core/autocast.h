// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision for a block of code: inside the scope, LibTorch computes convolutions and matrix products in a
// short format and keeps what needs the range in float32 (its autocast lists). Parameters and gradients stay float32.
#ifndef SSL_CORE_AUTOCAST_H_
#define SSL_CORE_AUTOCAST_H_

namespace ssl {

enum class Autocast { kOff, kBFloat16, kFloat16 };

// What autocast does now on the calling thread, for CPU tensors.
Autocast CurrentAutocast();

// CPU autocast on the calling thread while it lives, or none with kOff, whatever surrounds it: for state that is
// computed inside of a step but kept in float32. At the end, the thread has the settings that it had before: those of
// an outer scope, or of a host program. Scopes nest.
class AutocastScope {
 public:
  explicit AutocastScope(Autocast autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const bool was_enabled_;
  const bool cache_was_enabled_;
  const int type_was_;  // an at::ScalarType
};

}  // namespace ssl

#endif  // SSL_CORE_AUTOCAST_H_
