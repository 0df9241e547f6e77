// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/waiting.h"

#include <linux/futex.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace ssl {
namespace {

bool IsPassive() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  return policy != nullptr && strcasecmp(policy, "passive") == 0;
}

}  // namespace

void SleepWhile(std::atomic<uint32_t>* word, uint32_t value) {
  static_assert(sizeof(*word) == sizeof(uint32_t), "the kernel reads the word itself");
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void WakeSleepers(std::atomic<uint32_t>* word, uint32_t count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

Patience::Patience() : spins_(!IsPassive()) {}

}  // namespace ssl
