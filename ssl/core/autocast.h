// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision for a block of code: inside the scope, LibTorch computes convolutions and matrix products in
// bfloat16 and keeps what needs the range in float32 (its autocast lists). Parameters and gradients stay float32.
#ifndef SSL_CORE_AUTOCAST_H_
#define SSL_CORE_AUTOCAST_H_

namespace ssl {

// CPU autocast to bfloat16 on the calling thread while it lives; does nothing when not enabled.
class AutocastScope {
 public:
  explicit AutocastScope(bool enabled);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const bool enabled_;
};

}  // namespace ssl

#endif  // SSL_CORE_AUTOCAST_H_
