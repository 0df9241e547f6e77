// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

#include <atomic>
#include <utility>

#include "ssl/testing/standin_device.h"

namespace ssl {
namespace {

std::atomic<int> states_until_failure = -1;  // none

// Everything is the host generator's.
class StandinGenerator final : public c10::GeneratorImpl {
 public:
  explicit StandinGenerator(at::Generator host)
      : GeneratorImpl(StandinDevice::device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }

  void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
  uint64_t current_seed() const override { return host_.current_seed(); }
  uint64_t seed() override { return host_.seed(); }
  void set_offset(uint64_t offset) override { host_.set_offset(offset); }
  uint64_t get_offset() const override { return host_.get_offset(); }
  void set_state(const c10::TensorImpl& state) override {
    if (states_until_failure >= 0) TORCH_CHECK(states_until_failure-- > 0, "a broken generator");
    host_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host_.unsafeGetGeneratorImpl()->get_state(); }

 private:
  StandinGenerator* clone_impl() const override { return new StandinGenerator(host_.clone()); }

  at::Generator host_;
};

}  // namespace

const at::Generator& DefaultStandinGenerator() {
  static const auto& generator = *new at::Generator(MakeStandinGenerator());
  return generator;
}

at::Generator MakeStandinGenerator() { return at::make_generator<StandinGenerator>(at::detail::createCPUGenerator()); }

void StandinDevice::FailGeneratorState(int after) { states_until_failure = after; }

const at::Generator& HostGenerator(const at::Generator& generator) {
  const auto* const ours = dynamic_cast<const StandinGenerator*>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(ours != nullptr, "the generator is of ", generator.device(), ", expected one of ",
              StandinDevice::device());
  return ours->host();
}

}  // namespace ssl
