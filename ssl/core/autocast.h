// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision for a block of code: inside the scope, LibTorch computes convolutions and matrix products in a
// short format and keeps what needs the range in float32 (its autocast lists). Parameters and gradients stay float32.
#ifndef SSL_CORE_AUTOCAST_H_
#define SSL_CORE_AUTOCAST_H_

#include <c10/core/DeviceType.h>

namespace ssl {

enum class Autocast { kOff, kBFloat16, kFloat16 };

// What autocast does now on the calling thread, for CPU tensors.
Autocast CurrentAutocast();

// Autocast on the calling thread while it lives, for tensors of the CPU and of the process's accelerator
// (accelerator.h), or none with kOff, whatever surrounds it: for state that is computed inside of a step but kept in
// float32. At the end, the thread has the settings that it had before: those of an outer scope, or of a host program.
// Scopes nest.
class AutocastScope {
 public:
  explicit AutocastScope(Autocast autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  struct Setting {
    bool enabled = false;
    int type = 0;  // an at::ScalarType
  };

  static Setting Get(c10::DeviceType device);
  static void Set(c10::DeviceType device, const Setting& setting);

  const c10::DeviceType accelerator_;  // the CPU where there is none, whose settings are then made twice
  const Setting cpu_was_;
  const Setting accelerator_was_;
  const bool cache_was_enabled_;
};

}  // namespace ssl

#endif  // SSL_CORE_AUTOCAST_H_
