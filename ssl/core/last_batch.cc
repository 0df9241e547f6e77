// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/last_batch.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"
#include "ssl/core/batch.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kDropLast[] = "DATA.TRAIN.DROP_LAST";
constexpr char kWhat[] = "trying the last batch";

// Samplers give all ranks equally many.
int64_t SamplesPerRank(const SelfSupervisionTask& task, const Communicator& communicator) {
  return (task.num_train_samples() + communicator.size() - 1) / communicator.size();
}

bool LeavesOneOver(const ConfigNode& config, const SelfSupervisionTask& task, const Communicator& communicator) {
  const ConfigNode* size = config.FindPath(kBatchSize);
  const ConfigNode* drops = config.FindPath(kDropLast);
  const int64_t batch = size == nullptr ? 0 : size->AsInt().value_or(0);
  const bool drops_last = drops != nullptr && drops->AsBool().value_or(false);
  return task.updates_per_epoch() > 0 && batch > 1 && !drops_last && SamplesPerRank(task, communicator) % batch == 1;
}

void Forward(const Batch& batch, SelfSupervisionTask& task) {
  const GeneratorScope generator;
  const c10::AutoGradMode no_gradients(false);
  const AutocastScope autocast(task.options().precision.autocast);
  if (batch.named_inputs.empty()) {
    task.model().Forward(batch.views);
  } else {
    task.model().ForwardNamed(batch.named_inputs);
  }
}

// Running statistics move in a pass.
absl::Status ForwardAndRestore(const Batch& batch, SelfSupervisionTask& task, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, CollectState(task.model()));
  for (NamedTensor& entry : state) entry.tensor = entry.tensor.clone();
  task.model().SetTraining(true);
  const absl::Status status = GuardTorch(kWhat, [&] {
    Forward(batch, task);
    return absl::OkStatus();
  });
  SSL_RETURN_IF_ERROR(AgreeOnStatus(RestoreState(task.model(), state, kWhat), kWhat, communicator));
  return status;
}

// batch: as of NextBatch.
absl::Status ReadLastBatch(SelfSupervisionTask& task, const Batch** batch) {
  const TrainState begin = task.state();
  task.state().phase_index = 0;
  task.state().training = true;
  const absl::Status read = GuardTorch(kWhat, [&]() -> absl::Status {
    SSL_RETURN_IF_ERROR(task.StartEpoch(task.source(/*train=*/true).batches_per_epoch() - 1));
    SSL_ASSIGN_OR_RETURN(*batch, task.NextBatch());
    return absl::OkStatus();
  });
  task.state() = begin;
  return read;
}

absl::Status WithNumbers(const absl::Status& status, const ConfigNode& config, const SelfSupervisionTask& task,
                         const Communicator& communicator) {
  if (!absl::IsInvalidArgument(status)) return status;
  const ConfigNode& batch = *config.FindPath(kBatchSize);
  const std::string ranks = communicator.size() == 1 ? "" : absl::StrCat(" for ", communicator.size(), " ranks");
  const std::string advice = SamplesPerRank(task, communicator) == 1
                                 ? "more images are needed"
                                 : absl::StrCat("set config.", kDropLast, "=True, or another batch size");
  return absl::InvalidArgumentError(
      absl::StrCat(batch.location().ToString(), ": config.", kBatchSize, " is ", batch.text(),
                   ", which leaves 1 image for the last batch of an epoch (", task.num_train_samples(), " images",
                   ranks, "); ", advice, ". ", status.message()));
}

}  // namespace

absl::Status TryLastBatch(const ConfigNode& config, SelfSupervisionTask& task, Communicator& communicator) {
  if (!LeavesOneOver(config, task, communicator) || task.model().parameter_shards() != nullptr) return absl::OkStatus();
  const Batch* batch = nullptr;
  SSL_RETURN_IF_ERROR(AgreeOnStatus(ReadLastBatch(task, &batch), kWhat, communicator));
  // A sampler of another kind leaves another number over, on all ranks alike.
  if (batch == nullptr || batch->size() != 1) return absl::OkStatus();
  const absl::Status status = ForwardAndRestore(*batch, task, communicator);
  return AgreeOnStatus(WithNumbers(status, config, task, communicator), kWhat, communicator);
}

}  // namespace ssl
