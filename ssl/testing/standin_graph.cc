// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_graph.h"

#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/registries.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_recording.h"

namespace ssl {
namespace {

// Of the process.
std::atomic<int64_t> recordings{0};
std::atomic<bool> has_room{true};

class StandinGraph final : public DeviceGraph {
 public:
  absl::Status Record(const std::function<absl::Status()>& work) override {
    recording_.reset();
    if (CurrentStandinRecording() != nullptr) {
      return absl::FailedPreconditionError("stand-in graph: Record inside the work of another recording");
    }
    const auto recording = std::make_shared<StandinRecording>();
    absl::Status status;
    WithStandinRecording(recording, [&] { status = GuardTorch("recorded work", work); });
    const std::string refused = recording->refused();
    if (!refused.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("stand-in graph: '", refused, "' makes the host wait for the device, which is recorded"));
    }
    SSL_RETURN_IF_ERROR(status);
    ++recordings;
    recording_ = {recording.get(), [recording](const StandinRecording*) { --recordings; }};
    return absl::OkStatus();
  }

  void Replay() override {
    RefuseInRecording("replay of a recording");
    TORCH_CHECK(recording_ != nullptr, "stand-in graph: nothing is recorded");
    recording_->Replay();
  }

  bool HasRoomBeside() const override { return has_room; }

 private:
  std::shared_ptr<const StandinRecording> recording_;
};

}  // namespace

absl::Status RegisterStandinGraph(Registries* registries) {
  StandinDevice::Install();
  return registries->device_graphs.Register(
      c10::DeviceTypeName(StandinDevice::device().type(), /*lower_case=*/true),
      [](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<DeviceGraph>> {
        return std::make_unique<StandinGraph>();
      });
}

int64_t StandinRecordings() { return recordings; }

void SetStandinRoom(bool room) { has_room = room; }

}  // namespace ssl
