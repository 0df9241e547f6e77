// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/mean_ap_meter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/communicator.h"
#include "ssl/meters/average_precision.h"
#include "ssl/meters/meter_outputs.h"

namespace ssl {
namespace {

constexpr absl::string_view kName = "mean_ap_list_meter";
constexpr int64_t kClassesAtOnce = 256;

// [rows, classes] of the chosen columns of all batches; missing rows hold `filler`.
at::Tensor Columns(const std::vector<at::Tensor>& batches, int64_t first, int64_t count, int64_t rows, double filler) {
  std::vector<at::Tensor> columns;
  for (const at::Tensor& batch : batches) columns.push_back(batch.narrow(1, first, count));
  const at::Tensor all = at::cat(columns);
  return at::constant_pad_nd(all, {0, 0, 0, rows - all.size(0)}, filler);
}

std::string ToBytes(const std::vector<at::Tensor>& batches) {
  std::string bytes;
  for (const at::Tensor& batch : batches) {
    const at::Tensor host = batch.cpu().contiguous();
    bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  return bytes;
}

std::vector<at::Tensor> FromBytes(const std::string& bytes, int64_t columns, at::ScalarType type) {
  const int64_t row_bytes = columns * static_cast<int64_t>(c10::elementSize(type));
  const int64_t rows = static_cast<int64_t>(bytes.size()) / row_bytes;
  if (rows == 0) return {};
  const at::Tensor batch = at::empty({rows, columns}, type);
  std::memcpy(batch.mutable_data_ptr(), bytes.data(), batch.nbytes());
  return {batch};
}

// What a checkpoint brought lies on the CPU.
void MoveTo(at::Device device, std::vector<at::Tensor>* batches) {
  for (at::Tensor& batch : *batches) batch = batch.to(device);
}

double MeanOfClassesWithPositives(const at::Tensor& precision) {
  const at::Tensor valid = precision.ge(0);
  return precision.masked_select(valid).mean().item<double>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Meter>> MeanApMeter::Make(const MeanApMeterOptions& options) {
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> names, OutputNames(kName, options.num_meters, options.meter_names));
  return std::unique_ptr<Meter>(new MeanApMeter(options, std::move(names)));
}

MeanApMeter::MeanApMeter(const MeanApMeterOptions& options, std::vector<std::string> output_names)
    : options_(options), output_names_(std::move(output_names)), scores_(output_names_.size()) {}

absl::Status MeanApMeter::Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  SSL_RETURN_IF_ERROR(CheckOutputs(kName, options_.num_meters, outputs, targets));
  for (const at::Tensor& output : outputs) {
    if (targets.sizes() == output.sizes() && output.size(1) == options_.num_classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        kName, ": an output has shape [", absl::StrJoin(output.sizes(), ", "), "] and the targets [",
        absl::StrJoin(targets.sizes(), ", "), "], expected [B, ", options_.num_classes, "] (num_classes) for both"));
  }
  const int64_t samples = samples_ + targets.size(0);
  if (options_.max_cpu_capacity >= 0 && samples > options_.max_cpu_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat("config.METERS.", kName, ".max_cpu_capacity is ",
                                                     options_.max_cpu_capacity, ", but the phase has at least ",
                                                     samples, " samples on this rank"));
  }
  const at::Device device = outputs[0].device();
  if (!targets_.empty() && targets_[0].device() != device) {
    for (std::vector<at::Tensor>& scores : scores_) MoveTo(device, &scores);
    MoveTo(device, &targets_);
  }
  samples_ = samples;
  for (size_t i = 0; i < outputs.size(); ++i) scores_[i].push_back(outputs[i].detach().to(at::kFloat));
  targets_.push_back(targets.to(device, at::kChar, /*non_blocking=*/false, /*copy=*/true));
  ReleasePacked();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MeterValue>> MeanApMeter::Values(Communicator& communicator) {
  at::Tensor most = at::full({1}, samples_, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(most, ReduceOp::kMax));
  const int64_t rows = most.item<int64_t>();
  std::vector<MeterValue> values;
  if (rows == 0) return values;
  for (size_t i = 0; i < output_names_.size(); ++i) {
    SSL_ASSIGN_OR_RETURN(const at::Tensor precision, GatheredPrecision(i, rows, communicator));
    values.push_back({"mAP", output_names_[i], RoundedPercent(MeanOfClassesWithPositives(precision))});
    const double* of_class = precision.const_data_ptr<double>();
    for (int64_t c = 0; c < precision.numel(); ++c) values.push_back({"AP", output_names_[i], of_class[c]});
  }
  return values;
}

absl::StatusOr<at::Tensor> MeanApMeter::GatheredPrecision(size_t output, int64_t rows,
                                                          Communicator& communicator) const {
  const at::NoGradGuard no_grad;
  // A rank without any sample takes part with unknown labels.
  const std::vector<at::Tensor> no_scores = {at::empty({0, options_.num_classes}, at::kFloat)};
  const std::vector<at::Tensor> no_targets = {at::empty({0, options_.num_classes}, at::kChar)};
  const std::vector<at::Tensor>& scores = samples_ > 0 ? scores_[output] : no_scores;
  const std::vector<at::Tensor>& targets = samples_ > 0 ? targets_ : no_targets;
  std::vector<at::Tensor> precisions;
  for (int64_t first = 0; first < options_.num_classes; first += kClassesAtOnce) {
    const int64_t count = std::min(kClassesAtOnce, options_.num_classes - first);
    SSL_ASSIGN_OR_RETURN(const at::Tensor all_scores,
                         communicator.AllGather(Columns(scores, first, count, rows, /*filler=*/0.0)));
    SSL_ASSIGN_OR_RETURN(const at::Tensor all_targets,
                         communicator.AllGather(Columns(targets, first, count, rows, /*filler=*/-1.0)));
    precisions.push_back(AveragePrecision(all_scores.flatten(0, 1), all_targets.flatten(0, 1)));
  }
  return at::cat(precisions).cpu();
}

std::vector<ValueName> MeanApMeter::ValueNames() const {
  std::vector<ValueName> names;
  for (const std::string& output : output_names_) {
    names.push_back({"mAP", output});
    names.insert(names.end(), options_.num_classes, ValueName{"AP", output});
  }
  return names;
}

void MeanApMeter::Reset() {
  for (std::vector<at::Tensor>& scores : scores_) scores.clear();
  targets_.clear();
  samples_ = 0;
  ReleasePacked();
}

void MeanApMeter::ReleasePacked() {
  packed_scores_ = {};
  packed_targets_ = {};
}

void MeanApMeter::Pack() {
  packed_scores_.clear();
  for (const std::vector<at::Tensor>& scores : scores_) packed_scores_.push_back(ToBytes(scores));
  packed_targets_ = ToBytes(targets_);
}

void MeanApMeter::Unpack() {
  for (size_t i = 0; i < scores_.size(); ++i) {
    scores_[i] = FromBytes(packed_scores_[i], options_.num_classes, at::kFloat);
  }
  targets_ = FromBytes(packed_targets_, options_.num_classes, at::kChar);
  samples_ = targets_.empty() ? 0 : targets_[0].size(0);
  ReleasePacked();
}

void MeanApMeter::VisitState(StateVisitor& visitor) {
  Pack();
  for (size_t i = 0; i < packed_scores_.size(); ++i) {
    const std::string name = absl::StrCat("scores", i);
    visitor.Text(name, packed_scores_[i]);
    visitor.RanksDiffer(name, RankValues::kJoin);
  }
  visitor.Text("targets", packed_targets_);
  visitor.RanksDiffer("targets", RankValues::kJoin);
  visitor.OnRestored([this] { Unpack(); });
}

}  // namespace ssl
