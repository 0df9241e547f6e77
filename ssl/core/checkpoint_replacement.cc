// SPDX-License-Identifier: Apache-2.0
//
// The part of the store that puts a checkpoint in the place of an intact one.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

bool SameBytes(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() != right.scalar_type() || left.sizes() != right.sizes()) return false;
  const at::Tensor ours = left.detach().cpu().contiguous();
  const at::Tensor theirs = right.detach().cpu().contiguous();
  // Not at::equal, for which NaN is never the same.
  return ours.nbytes() == 0 || std::memcmp(ours.const_data_ptr(), theirs.const_data_ptr(), ours.nbytes()) == 0;
}

// In whatever order.
bool SameTensors(const std::vector<NamedTensor>& left, const std::vector<NamedTensor>& right) {
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& entry : right) by_name[entry.name] = entry.tensor;
  const auto same = [&by_name](const NamedTensor& entry) {
    const auto found = by_name.find(entry.name);
    return found != by_name.end() && SameBytes(entry.tensor, found->second);
  };
  return left.size() == by_name.size() && std::all_of(left.begin(), left.end(), same);
}

}  // namespace

absl::StatusOr<bool> CheckpointStore::HoldsTheSame(int64_t iteration, const std::vector<CheckpointPart>& parts) {
  bool same = true;
  const auto compare = [&]() -> absl::Status {
    for (const CheckpointPart& part : parts) {
      const auto saved = Load(iteration, part.file);
      if (!saved.ok() && !absl::IsNotFound(saved.status())) return saved.status();
      same = same && saved.ok() && SameTensors(part.tensors, *saved);
    }
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(AgreeOnWork(compare, "comparing a checkpoint", communicator_));
  SSL_ASSIGN_OR_RETURN(const bool differs, AnyRank(!same, communicator_));
  return !differs;
}

// At every moment, and after every failure, step_<iteration> is one of the two. The old one goes as `temporary`, once
// the names are durable.
absl::Status CheckpointStore::Replace(int64_t iteration, const std::string& temporary, const Manifest& manifest) {
  SSL_RETURN_IF_ERROR(WriteManifest(temporary, manifest));
  SSL_RETURN_IF_ERROR(VerifyManifest(file_system_, temporary, manifest));
  const absl::Status exchanged = file_system_.Exchange(temporary, StepDirectory(iteration));
  if (!absl::IsUnimplemented(exchanged)) {
    SSL_RETURN_IF_ERROR(exchanged);
    is_exchanged_ = true;
    return file_system_.SyncDirectory(options_.directory);
  }
  // A start from it hears once more what hooks have heard since: an end of a phase, an evaluation.
  SSL_LOG(INFO) << StepDirectory(iteration) << " stays as it was saved: " << exchanged.message();
  return absl::OkStatus();
}

}  // namespace ssl
