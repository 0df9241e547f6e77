// SPDX-License-Identifier: Apache-2.0
//
// Time of one optimizer update of a ResNet-18 of width 32 (2.8 million parameters in 60 tensors): the optimizers of
// this package, which use the fused operations, against the same updates from _foreach_ operations.
//
//   bazel run //ssl/optim:bench_update
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/optim/adamw.h"
#include "ssl/optim/sgd.h"

namespace ssl {
namespace {

constexpr int kUpdatesPerRound = 50;
constexpr int kRounds = 7;
constexpr double kRate = 1e-3;
constexpr double kDecay = 1e-4;

using Tensors = std::vector<at::Tensor>;

// Convolutions [out, in, k, k], each with the weight and bias of its batch normalisation; no classifier.
std::vector<std::vector<int64_t>> ResNet18Shapes(int64_t width) {
  std::vector<std::vector<int64_t>> shapes;
  const auto add = [&](int64_t out, int64_t in, int64_t kernel) {
    shapes.insert(shapes.end(), {{out, in, kernel, kernel}, {out}, {out}});
  };
  add(width, 3, 7);
  int64_t in = width;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t out = width << stage;
    for (int block = 0; block < 2; ++block) {
      add(out, in, 3);
      add(out, out, 3);
      if (in != out) add(out, in, 1);
      in = out;
    }
  }
  return shapes;
}

ParameterGroup MakeGroup() {
  ParameterGroup group;
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  for (const std::vector<int64_t>& shape : ResNet18Shapes(32)) {
    at::Tensor parameter = at::randn(shape);
    parameter.set_requires_grad(true);
    parameter.mutable_grad() = at::randn(shape);
    group.names.push_back(absl::StrCat("p", group.names.size()));
    group.parameters.push_back(std::move(parameter));
  }
  return group;
}

Tensors ZerosLike(const Tensors& tensors) {
  Tensors zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros_like(tensor.detach()));
  return zeros;
}

Tensors GradientsOf(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

std::function<void()> ForeachSgd(const ParameterGroup& group) {
  return [parameters = group.parameters, momentum = ZerosLike(group.parameters)] {
    const at::NoGradGuard no_grad;
    const Tensors gradients = at::_foreach_add(GradientsOf(parameters), parameters, kDecay);
    at::_foreach_mul_(momentum, 0.9);
    at::_foreach_add_(momentum, gradients);
    at::_foreach_add_(parameters, momentum, -kRate);
  };
}

std::function<void()> ForeachAdamW(const ParameterGroup& group) {
  return [parameters = group.parameters, average = ZerosLike(group.parameters), square = ZerosLike(group.parameters),
          step = 0]() mutable {
    const at::NoGradGuard no_grad;
    const Tensors gradients = GradientsOf(parameters);
    ++step;
    at::_foreach_mul_(parameters, 1.0 - kRate * kDecay);
    at::_foreach_lerp_(average, gradients, 0.1);
    at::_foreach_mul_(square, 0.999);
    at::_foreach_addcmul_(square, gradients, gradients, 0.001);
    const Tensors denominators = at::_foreach_sqrt(square);
    at::_foreach_div_(denominators, std::sqrt(1.0 - std::pow(0.999, step)));
    at::_foreach_add_(denominators, 1e-8);
    at::_foreach_addcdiv_(parameters, average, denominators, -kRate / (1.0 - std::pow(0.9, step)));
  };
}

absl::StatusOr<std::function<void()>> StepOf(absl::StatusOr<std::unique_ptr<Optimizer>> made, ParameterGroup group) {
  if (!made.ok()) return made.status();
  const std::shared_ptr<Optimizer> optimizer = *std::move(made);
  const absl::Status status = optimizer->Initialize({std::move(group)});
  if (!status.ok()) return status;
  return std::function<void()>([optimizer] { optimizer->Step(); });
}

void Measure(const char* name, const std::function<void()>& update) {
  for (int i = 0; i < kUpdatesPerRound; ++i) update();
  std::vector<double> milliseconds;
  for (int round = 0; round < kRounds; ++round) {
    const absl::Time start = absl::Now();
    for (int i = 0; i < kUpdatesPerRound; ++i) update();
    milliseconds.push_back(absl::ToDoubleMilliseconds(absl::Now() - start) / kUpdatesPerRound);
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("%-14s median %.3f ms, fastest %.3f ms an update\n", name, milliseconds[kRounds / 2], milliseconds[0]);
}

int Main() {
  const auto sgd = StepOf(MakeSgd(SgdOptions()), MakeGroup());
  const auto adamw = StepOf(MakeAdamW(AdamWOptions()), MakeGroup());
  if (!sgd.ok() || !adamw.ok()) return 1;
  Measure("sgd fused", *sgd);
  Measure("sgd foreach", ForeachSgd(MakeGroup()));
  Measure("adamw fused", *adamw);
  Measure("adamw foreach", ForeachAdamW(MakeGroup()));
  return 0;
}

}  // namespace
}  // namespace ssl

int main() { return ssl::Main(); }
