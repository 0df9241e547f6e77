// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_comparison.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

using testing::IsEmpty;

double Largest(const at::Tensor& values) { return values.numel() > 0 ? values.abs().max().item<double>() : 0.0; }

void ExpectAgreement(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  ASSERT_EQ(found.scalar_type(), expected.scalar_type());
  if (tolerance == kBitwise || !expected.is_floating_point()) {
    EXPECT_TRUE(at::equal(found, expected)) << "they differ by up to " << Largest(found - expected);
  } else {
    EXPECT_LE(Largest(found - expected), tolerance * Largest(expected));
  }
}

// The CPU and the device draw the same numbers from here on.
void SeedGenerators() {
  for (const at::Device device : {at::Device(at::kCPU), StandinDevice::device()}) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(11);
  }
}

std::vector<at::Tensor> CopiesOn(const at::Device& device, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad()));
  }
  return copies;
}

// Odd powers as well: the squares of unit vectors have no gradient.
at::Tensor Loss(const std::vector<at::Tensor>& outputs) {
  at::Tensor loss;
  for (const at::Tensor& output : outputs) {
    const at::Tensor sum = (output.pow(2) + output.pow(3)).sum();
    loss = loss.defined() ? loss + sum : sum;
  }
  return loss;
}

std::vector<at::Tensor> Outputs(const ModelPart& part, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& input : inputs) {
    for (const at::Tensor& output : part.forward(input)) outputs.push_back(output);
  }
  return outputs;
}

void Append(const std::string& prefix, const std::vector<at::Tensor>& tensors, std::vector<NamedTensor>* results) {
  for (size_t i = 0; i < tensors.size(); ++i) results->push_back({absl::StrCat(prefix, i), tensors[i].detach()});
}

void AppendGradient(const std::string& name, const at::Tensor& tensor, std::vector<NamedTensor>* results) {
  if (tensor.grad().defined()) results->push_back({absl::StrCat("gradient of ", name), tensor.grad()});
}

std::vector<NamedTensor> Passes(const ModelPart& part, const std::vector<at::Tensor>& inputs) {
  std::vector<NamedTensor> results;
  SeedGenerators();
  part.set_training(true);
  const std::vector<at::Tensor> trained = Outputs(part, inputs);
  Append("output of training ", trained, &results);
  Loss(trained).backward();
  for (size_t i = 0; i < inputs.size(); ++i) AppendGradient(absl::StrCat("input ", i), inputs[i], &results);
  for (const ModelTensor& entry : part.tensors) {
    if (entry.role == TensorRole::kBuffer) results.push_back({entry.name, entry.value});
    AppendGradient(entry.name, entry.value, &results);
  }
  const at::NoGradGuard no_grad;
  part.set_training(false);
  Append("output of evaluation ", Outputs(part, inputs), &results);
  return results;
}

}  // namespace

void ExpectSameOnStandin(const std::vector<NamedTensor>& found, const std::vector<NamedTensor>& expected,
                         double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i].name);
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(found[i].tensor.device(), StandinDevice::device());
    ExpectAgreement(found[i].tensor.to(at::kCPU), expected[i].tensor, tolerance);
  }
}

void ExpectSamePasses(const ModelPart& on_cpu, const ModelPart& on_standin, const std::vector<at::Tensor>& inputs,
                      double tolerance) {
  const std::vector<NamedTensor> expected = Passes(on_cpu, CopiesOn(at::kCPU, inputs));
  for (const ModelTensor& entry : on_standin.tensors) {
    entry.value.set_data(entry.value.detach().to(StandinDevice::device()));
  }
  const std::vector<at::Tensor> device_inputs = CopiesOn(StandinDevice::device(), inputs);
  const TransferLog log;
  const std::vector<NamedTensor> found = Passes(on_standin, device_inputs);
  EXPECT_THAT(log.reads(), IsEmpty());
  EXPECT_THAT(log.uploads(), IsEmpty());
  ExpectSameOnStandin(found, expected, tolerance);
}

}  // namespace ssl
