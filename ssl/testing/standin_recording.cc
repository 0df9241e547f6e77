// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_recording.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <utility>

#include "ssl/testing/standin_streams.h"

namespace ssl {
namespace {

// LibTorch hands this on to the threads of a backward, as a GPU's stream is.
constexpr auto kInfo = c10::DebugInfoKind::TEST_INFO;

struct Info final : c10::DebugInfoBase {
  explicit Info(std::shared_ptr<StandinRecording> current) : recording(std::move(current)) {}
  const std::shared_ptr<StandinRecording> recording;
};

}  // namespace

void StandinRecording::Note(std::function<void()> operation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  operations_.push_back(std::move(operation));
}

void StandinRecording::Refuse(const std::string& operation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (refused_.empty()) refused_ = operation;
}

std::string StandinRecording::refused() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refused_;
}

void StandinRecording::Replay() const {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const std::lock_guard<std::mutex> lock(mutex_);
  KeepStandinBusy(static_cast<int64_t>(operations_.size()));
  for (const std::function<void()>& operation : operations_) operation();
}

StandinRecording* CurrentStandinRecording() {
  const auto* const info = dynamic_cast<const Info*>(c10::ThreadLocalDebugInfo::get(kInfo));
  return info != nullptr ? info->recording.get() : nullptr;
}

void WithStandinRecording(std::shared_ptr<StandinRecording> recording, absl::FunctionRef<void()> work) {
  const c10::DebugInfoGuard guard(kInfo, std::make_shared<Info>(std::move(recording)));
  work();
}

void RunAndNote(std::function<void()> operation) {
  operation();
  StandinRecording* const recording = CurrentStandinRecording();
  if (recording != nullptr) recording->Note(std::move(operation));
}

void RefuseInRecording(const std::string& operation) {
  StandinRecording* const recording = CurrentStandinRecording();
  if (recording == nullptr) return;
  recording->Refuse(operation);
  TORCH_CHECK(false, operation, ": the host waits for the device, which is recorded");
}

}  // namespace ssl
