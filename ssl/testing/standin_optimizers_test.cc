// SPDX-License-Identifier: Apache-2.0
//
// Every registered optimizer on the stand-in device (docs/devices.md).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/optim/register_optim.h"
#include "ssl/testing/standin_comparison.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::IsEmpty;

// OPTIMIZER of each optimizer, once for each of its formulas; a new one needs a line here.
const std::multimap<std::string, std::string>& Sections() {
  static const auto* const sections = new std::multimap<std::string, std::string>{
      {"adam", "{}"},
      {"adam", "{amsgrad: True}"},
      {"adamw", "{}"},
      {"adamw", "{amsgrad: True}"},
      {"lars", "{momentum: 0.9}"},
      {"lars", "{momentum: 0.9, exclude_bias_and_norm: True}"},
      {"rmsprop", "{momentum: 0.0}"},
      {"rmsprop", "{momentum: 0.9, centered: True}"},
      {"sgd", "{momentum: 0.0}"},
      {"sgd", "{momentum: 0.9}"},
      {"sgd", "{momentum: 0.9, nesterov: True}"},
      {"sgd", "{momentum: 0.0, param_schedulers: {momentum: {name: constant, value: 0.5}}}"},
      {"sgd", "{momentum: 0.9, use_larc: True}"},
      {"sgd", "{momentum: 0.9, use_larc: True, larc_config: {clip: True, trust_coefficient: 0.02}}"},
      {"sgd_fsdp", "{momentum: 0.9}"},
  };
  return *sections;
}

at::Tensor Wave(at::IntArrayRef shape, double seed) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7 + seed).reshape(shape);
}

ParameterGroup Group(const std::string& name, double weight_decay, const std::map<std::string, at::Tensor>& values,
                     const at::Device& device) {
  ParameterGroup group;
  group.name = name;
  group.weight_decay = weight_decay;
  for (const auto& [parameter, value] : values) {
    group.names.push_back(parameter);
    group.parameters.push_back(value.to(device).requires_grad_());
  }
  return group;
}

std::vector<ParameterGroup> Groups(const at::Device& device) {
  const at::Tensor convolution = Wave({4, 3, 3, 3}, 1.0).contiguous(at::MemoryFormat::ChannelsLast);
  return {Group("regularized", 0.01,
                {{"conv.weight", convolution},
                 {"linear.weight", Wave({5, 4}, 2.0)},
                 {"norm.weight", Wave({5}, 3.0)},
                 {"zero", Wave({3}, 0.0) * 0.0},
                 {"without_gradient", Wave({2}, 4.0)},
                 {"without_slope", Wave({2}, 5.0)}},
                device),
          Group("unregularized", 0.0, {{"norm.bias", Wave({5}, 6.0)}}, device)};
}

// [update][parameter], of all groups in turn; row-major, as some operations leave them.
std::vector<std::vector<at::Tensor>> Gradients(const std::vector<ParameterGroup>& groups, const at::Device& device) {
  constexpr int kUpdates = 3;
  std::vector<std::vector<at::Tensor>> gradients(kUpdates);
  for (int update = 0; update < kUpdates; ++update) {
    for (const ParameterGroup& group : groups) {
      for (size_t i = 0; i < group.names.size(); ++i) {
        const double seed = 10.0 * update + static_cast<double>(i);
        at::Tensor gradient = Wave(group.parameters[i].sizes(), seed);
        if (group.names[i] == "without_slope") gradient = gradient * 0.0;
        gradients[update].push_back(group.names[i] == "without_gradient" ? at::Tensor() : gradient.to(device));
      }
    }
  }
  return gradients;
}

void Step(Optimizer& optimizer) { optimizer.Step({}); }

// As schedules and backward passes leave it before update `update`.
void PrepareUpdate(int update, const std::vector<at::Tensor>& gradients, Optimizer& optimizer) {
  size_t next = 0;
  for (ParameterGroup& group : optimizer.groups()) {
    group.learning_rate = 0.1 / (update + 1);
    if (!group.momentum_schedule.empty()) group.momentum = 0.4 * update;
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad() = gradients[next++];
  }
}

absl::StatusOr<std::unique_ptr<Optimizer>> Make(const std::string& name, const std::string& section) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterOptim(&registries));
  std::vector<std::string> warnings;
  SSL_ASSIGN_OR_RETURN(const ConfigNode params, ParseYaml(section, "optimizer.yaml", &warnings));
  const ConfigNode config = ConfigNode::Map();
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return registries.optimizers.Make(name, params, {config, registries, *communicator});
}

// Parameters and state after the updates.
absl::StatusOr<std::vector<NamedTensor>> Train(Optimizer& optimizer, const at::Device& device) {
  const std::vector<ParameterGroup> groups = Groups(device);
  const std::vector<std::vector<at::Tensor>> gradients = Gradients(groups, device);
  const TransferLog log;
  SSL_RETURN_IF_ERROR(optimizer.Initialize(groups));
  for (size_t update = 0; update < gradients.size(); ++update) {
    PrepareUpdate(static_cast<int>(update), gradients[update], optimizer);
    Step(optimizer);
  }
  EXPECT_THAT(log.reads(), IsEmpty());
  EXPECT_THAT(log.uploads(), IsEmpty());
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> results, CollectState(optimizer));
  for (const ParameterGroup& group : optimizer.groups()) {
    for (size_t i = 0; i < group.names.size(); ++i) results.push_back({group.names[i], group.parameters[i].detach()});
  }
  return results;
}

TEST(StandinOptimizers, Every_UpdatesAsOnTheCpu) {
  StandinDevice::Install();
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));
  for (const std::string& name : registries.optimizers.Names()) {
    EXPECT_GT(Sections().count(name), 0u) << "optimizer '" << name << "' is registered, but has no section above";
  }
  for (const auto& [name, section] : Sections()) {
    SCOPED_TRACE(absl::StrCat(name, ": ", section));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Optimizer> on_cpu, Make(name, section));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Optimizer> on_standin, Make(name, section));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> expected, Train(*on_cpu, at::kCPU));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> found, Train(*on_standin, StandinDevice::device()));
    ExpectSameOnStandin(found, expected, kBitwise);
  }
}

}  // namespace
}  // namespace ssl
