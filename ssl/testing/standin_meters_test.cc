// SPDX-License-Identifier: Apache-2.0
//
// Every registered meter on the stand-in device (docs/devices.md).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/meter.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/meters/register_meters.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::IsEmpty;

constexpr int64_t kClasses = 5;
constexpr int64_t kRows = 6;

at::Tensor Wave(int64_t seed) {
  const at::Tensor places = at::arange(kRows * kClasses, at::kFloat);
  return at::sin(places * 0.7 + static_cast<double>(seed)).view({kRows, kClasses});
}

// The forms of labels in a batch (ssl/core/batch.h).
at::Tensor ClassNumbers(int64_t seed) { return (at::arange(kRows, at::kLong) + seed).remainder(kClasses); }
at::Tensor ColumnOfClassNumbers(int64_t seed) { return ClassNumbers(seed).unsqueeze(1); }
at::Tensor SoftLabels(int64_t seed) { return Wave(3 * seed + 1).softmax(1); }
at::Tensor ManyLabels(int64_t seed) {
  return (at::arange(kRows * kClasses, at::kLong) + seed).remainder(3).sub(1).view({kRows, kClasses});
}

using Labels = at::Tensor (*)(int64_t seed);

struct Case {
  std::string params;  // of two outputs, with kClasses classes
  std::vector<Labels> labels;
};

// A new meter needs a line here.
const std::map<std::string, Case>& Cases() {
  const std::vector<Labels> all = {&ClassNumbers, &ColumnOfClassNumbers, &SoftLabels, &ManyLabels};
  static const auto* const cases = new std::map<std::string, Case>{
      {"accuracy_list_meter", {"{num_meters: 2, topk_values: [1, 3]}", all}},
      {"mean_ap_list_meter", {"{num_meters: 2, num_classes: 5}", {&ManyLabels}}},
      {"precision_at_k_list_meter", {"{num_meters: 2, topk_values: [1, 3]}", all}},
      {"recall_at_k_list_meter", {"{num_meters: 2, topk_values: [1, 3]}", all}},
  };
  return *cases;
}

// Batches of a phase, on a device.
struct MeasuredBatch {
  std::vector<at::Tensor> outputs;
  at::Tensor targets;
};

std::vector<MeasuredBatch> Batches(Labels labels, const at::Device& device) {
  std::vector<MeasuredBatch> batches;
  for (int64_t seed = 0; seed < 3; ++seed) {
    batches.push_back({{Wave(seed).to(device), Wave(seed + 7).to(device)}, labels(seed).to(device)});
  }
  return batches;
}

std::vector<std::tuple<std::string, std::string, double>> Figures(const std::vector<MeterValue>& values) {
  std::vector<std::tuple<std::string, std::string, double>> figures;
  for (const MeterValue& value : values) figures.emplace_back(value.metric, value.output, value.value);
  return figures;
}

// The figures of two phases, and of one that was saved and went on in another meter.
using PhaseFigures = std::vector<std::vector<std::tuple<std::string, std::string, double>>>;

class StandinMeters : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }
  void SetUp() override { ASSERT_OK(RegisterMeters(&registries_)); }

  absl::StatusOr<std::unique_ptr<Meter>> Make(const std::string& name) const {
    std::vector<std::string> warnings;
    SSL_ASSIGN_OR_RETURN(const ConfigNode params, ParseYaml(Cases().at(name).params, "meter.yaml", &warnings));
    const ConfigNode config = ConfigNode::Map();
    return registries_.meters.Make(name, params, {config, registries_, *communicator_});
  }

  absl::StatusOr<PhaseFigures> Measure(const std::string& name, const std::vector<MeasuredBatch>& batches) {
    PhaseFigures figures;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Meter> meter, Make(name));
    for (int phase = 0; phase < 2; ++phase) {
      SSL_RETURN_IF_ERROR(Update(batches, /*first=*/0, *meter));
      SSL_ASSIGN_OR_RETURN(const std::vector<MeterValue> values, meter->Values(*communicator_));
      figures.push_back(Figures(values));
      meter->Reset();
    }
    SSL_RETURN_IF_ERROR(meter->Update(batches[0].outputs, batches[0].targets));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Meter> resumed, Make(name));
    SSL_RETURN_IF_ERROR(GoOn(*meter, *resumed));
    SSL_RETURN_IF_ERROR(Update(batches, /*first=*/1, *resumed));
    SSL_ASSIGN_OR_RETURN(const std::vector<MeterValue> values, resumed->Values(*communicator_));
    figures.push_back(Figures(values));
    return figures;
  }

  Registries registries_;

 private:
  // The first batch brings what the meter counts to the device; nothing else passes.
  static absl::Status Update(const std::vector<MeasuredBatch>& batches, size_t first, Meter& meter) {
    const TransferLog log;
    SSL_RETURN_IF_ERROR(meter.Update(batches[first].outputs, batches[first].targets));
    const TransferLog later;
    for (size_t i = first + 1; i < batches.size(); ++i) {
      SSL_RETURN_IF_ERROR(meter.Update(batches[i].outputs, batches[i].targets));
    }
    EXPECT_THAT(log.reads(), IsEmpty());
    EXPECT_THAT(later.uploads(), IsEmpty());
    return absl::OkStatus();
  }

  // As a checkpoint does, on the host.
  static absl::Status GoOn(Meter& from, Meter& to) {
    SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, CollectState(from));
    for (NamedTensor& entry : state) entry.tensor = entry.tensor.to(at::kCPU);
    return RestoreState(to, state, "memory");
  }

  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(StandinMeters, Every_MeasuresAsOnTheCpu) {
  for (const std::string& name : registries_.meters.Names()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(Cases().count(name), 1u) << "meter '" << name << "' is registered, but has no parameters above";
    for (size_t i = 0; i < Cases().at(name).labels.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("labels ", i));
      const Labels labels = Cases().at(name).labels[i];
      ASSERT_OK_AND_ASSIGN(const PhaseFigures expected, Measure(name, Batches(labels, at::kCPU)));
      ASSERT_OK_AND_ASSIGN(const PhaseFigures found, Measure(name, Batches(labels, StandinDevice::device())));
      EXPECT_EQ(found, expected);
      EXPECT_EQ(expected[0], expected[2]) << "a phase that goes on is the whole one";
    }
  }
}

}  // namespace
}  // namespace ssl
