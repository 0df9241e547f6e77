// SPDX-License-Identifier: Apache-2.0
//
// Time of one update of a ResNet-50 (25.6 million parameters in 161 tensors): this package against the same update by
// other means, in turn, so that a busy machine slows both. "fused" and "foreach" are torch's ways to write it, "apex"
// and "loop" those of apex's LARC and VISSL's ModelEmaV2: tensor by tensor, with norms that the host reads.
//
//   OMP_NUM_THREADS=1 bazel run //ssl/optim:bench_update
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/core/testing/resnet50_shapes.h"
#include "ssl/optim/adam.h"
#include "ssl/optim/ema.h"
#include "ssl/optim/larc.h"
#include "ssl/optim/sgd.h"

namespace ssl {
namespace {

constexpr int kUpdatesPerRound = 4;
constexpr int kRounds = 9;
constexpr double kRate = 1e-3;
constexpr double kDecay = 1e-4;
constexpr double kMomentum = 0.9;
constexpr double kEmaDecay = 0.99;

using Tensors = std::vector<at::Tensor>;
using Update = std::function<void()>;

ParameterGroup MakeGroup() {
  ParameterGroup group;
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  for (const std::vector<int64_t>& shape : ResNet50Shapes()) {
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

Tensors RandomTensors() {
  Tensors tensors;
  for (const std::vector<int64_t>& shape : ResNet50Shapes()) tensors.push_back(at::randn(shape));
  return tensors;
}

Update Ours(std::unique_ptr<Optimizer> made) {
  const std::shared_ptr<Optimizer> optimizer = std::move(made);
  if (!optimizer->Initialize({MakeGroup()}).ok()) return [] {};
  return [optimizer] { optimizer->Step({}); };
}

Update FusedSgd() {
  const ParameterGroup group = MakeGroup();
  return [p = group.parameters, g = GradientsOf(group.parameters), momentum = ZerosLike(group.parameters)] {
    at::_fused_sgd_(p, g, momentum, kDecay, kMomentum, kRate, /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
  };
}

void ForeachSgdUpdate(const Tensors& p, const Tensors& g, const Tensors& momentum, double decay) {
  const Tensors regularized = decay == 0.0 ? g : at::_foreach_add(g, p, decay);
  at::_foreach_mul_(momentum, kMomentum);
  at::_foreach_add_(momentum, regularized);
  at::_foreach_add_(p, momentum, -kRate);
}

Update ForeachSgd() {
  const ParameterGroup group = MakeGroup();
  return [p = group.parameters, g = GradientsOf(group.parameters), momentum = ZerosLike(group.parameters)] {
    ForeachSgdUpdate(p, g, momentum, kDecay);
  };
}

Update ApexLarc() {
  const ParameterGroup group = MakeGroup();
  return [p = group.parameters, g = GradientsOf(group.parameters), momentum = ZerosLike(group.parameters)] {
    for (size_t i = 0; i < p.size(); ++i) {
      const double parameter_norm = p[i].norm().item<double>();
      const double gradient_norm = g[i].norm().item<double>();
      if (parameter_norm == 0.0 || gradient_norm == 0.0) continue;
      g[i].add_(p[i], kDecay);
      g[i].mul_(0.001 * parameter_norm / (gradient_norm + kDecay * parameter_norm + 1e-8));
    }
    ForeachSgdUpdate(p, g, momentum, /*decay=*/0.0);
  };
}

Update FusedAdamW() {
  const ParameterGroup group = MakeGroup();
  Tensors steps;
  for (size_t i = 0; i < group.parameters.size(); ++i) steps.push_back(at::zeros({}));
  return [p = group.parameters, g = GradientsOf(group.parameters), average = ZerosLike(group.parameters),
          square = ZerosLike(group.parameters), steps] {
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(p, g, average, square, {}, steps, kRate, 0.9, 0.999, kDecay, 1e-8, /*amsgrad=*/false,
                      /*maximize=*/false);
  };
}

Update ForeachAdamW() {
  const ParameterGroup group = MakeGroup();
  return [p = group.parameters, g = GradientsOf(group.parameters), average = ZerosLike(group.parameters),
          square = ZerosLike(group.parameters), step = 0]() mutable {
    ++step;
    at::_foreach_mul_(p, 1.0 - kRate * kDecay);
    at::_foreach_lerp_(average, g, 0.1);
    at::_foreach_mul_(square, 0.999);
    at::_foreach_addcmul_(square, g, g, 0.001);
    const Tensors denominators = at::_foreach_sqrt(square);
    at::_foreach_div_(denominators, std::sqrt(1.0 - std::pow(0.999, step)));
    at::_foreach_add_(denominators, 1e-8);
    at::_foreach_addcdiv_(p, average, denominators, -kRate / (1.0 - std::pow(0.9, step)));
  };
}

Update OurEma() {
  return [averages = RandomTensors(), values = RandomTensors()] { EmaUpdate(averages, values, kEmaDecay); };
}

Update ForeachEma() {
  return [averages = RandomTensors(), values = RandomTensors()] {
    at::_foreach_mul_(averages, kEmaDecay);
    at::_foreach_add_(averages, values, 1.0 - kEmaDecay);
  };
}

Update LoopEma() {
  return [averages = RandomTensors(), values = RandomTensors()] {
    for (size_t i = 0; i < averages.size(); ++i)
      averages[i].copy_(kEmaDecay * averages[i] + (1.0 - kEmaDecay) * values[i]);
  };
}

double MillisecondsOf(const Update& update) {
  const absl::Time start = absl::Now();
  for (int i = 0; i < kUpdatesPerRound; ++i) update();
  return absl::ToDoubleMilliseconds(absl::Now() - start) / kUpdatesPerRound;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Compare(const char* what, const Update& ours, const char* reference_name, const Update& reference) {
  MillisecondsOf(ours);
  MillisecondsOf(reference);
  std::vector<double> our_times;
  std::vector<double> reference_times;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(MillisecondsOf(ours));
    reference_times.push_back(MillisecondsOf(reference));
    ratios.push_back(reference_times.back() / our_times.back());
  }
  std::printf("%-6s ours %7.2f ms, %-8s %7.2f ms, ratio %.2f\n", what, Median(our_times), reference_name,
              Median(reference_times), Median(ratios));
}

int Main() {
  const at::NoGradGuard no_grad;
  Compare("sgd", Ours(*MakeSgd({kMomentum, false})), "fused", FusedSgd());
  Compare("sgd", Ours(*MakeSgd({kMomentum, false})), "foreach", ForeachSgd());
  Compare("larc", Ours(MakeLarc({}, *MakeSgd({kMomentum, false}))), "apex", ApexLarc());
  Compare("adamw", Ours(*MakeAdamW({})), "fused", FusedAdamW());
  Compare("adamw", Ours(*MakeAdamW({})), "foreach", ForeachAdamW());
  Compare("ema", OurEma(), "foreach", ForeachEma());
  Compare("ema", OurEma(), "loop", LoopEma());
  return 0;
}

}  // namespace
}  // namespace ssl

int main() { return ssl::Main(); }
