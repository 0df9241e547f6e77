// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "ssl/base/error_detail.h"

namespace ssl {
namespace {

constexpr double kGibibyte = double{1 << 30};
constexpr char kTrainingAdvice[] =
    ". Lower config.DATA.TRAIN.BATCHSIZE_PER_REPLICA (and raise config.OPTIMIZER.grad_acc_steps by as much), compute "
    "with config.MODEL.AMP_PARAMS.USE_AMP=True, or recompute: "
    "config.MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING=True";
constexpr char kEvaluationAdvice[] =
    ". Lower config.DATA.TRAIN.BATCHSIZE_PER_REPLICA and config.DATA.TEST.BATCHSIZE_PER_REPLICA";

bool IsAdvised(absl::string_view message) {
  return absl::StrContains(message, kTrainingAdvice) || absl::StrContains(message, kEvaluationAdvice);
}

std::string Peak(const c10::Device& device) {
  if (device.is_cpu()) return "";
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr || !allocator->initialized()) return "";
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const int64_t bytes = allocator->getDeviceStats(device.index()).allocated_bytes[kAll].peak;
  return absl::StrFormat("; tensors took at most %.2f GiB of it", static_cast<double>(bytes) / kGibibyte);
}

}  // namespace

absl::Status WithMemoryAdvice(const absl::Status& status, const c10::Device& device, MemoryUse use) {
  if (DetailOf(status, kDetailMemory) != kMemoryOfDevice || IsAdvised(status.message())) return status;
  const char* advice = use == MemoryUse::kTraining ? kTrainingAdvice : kEvaluationAdvice;
  absl::Status advised(status.code(), absl::StrCat(status.message(), Peak(device), advice));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { advised.SetPayload(type, payload); });
  return advised;
}

}  // namespace ssl
