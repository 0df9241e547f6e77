// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/augment_views.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "ssl/kernels/augment_by_kernel.h"
#include "ssl/kernels/team.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {
namespace {

constexpr char kName[] = "ssl::augment_views_";
constexpr char kSchema[] =
    "augment_views_(Tensor(a!) result, Tensor plans, Tensor images, float[] mean, float[] std) -> Tensor(a!)";

using Function = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, at::ArrayRef<double>,
                            at::ArrayRef<double>);

int64_t NumPlans(const at::Tensor& plans) { return plans.numel() / static_cast<int64_t>(sizeof(ViewPlan)); }

void AugmentOnHost(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                   const at::Tensor& result) {
  const auto* const first = static_cast<const ViewPlan*>(plans.const_data_ptr());
  const uint8_t* const pixels = images.const_data_ptr<uint8_t>();
  float* const floats = result.mutable_data_ptr<float>();
  at::parallel_for(0, NumPlans(plans), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> work;
    for (const ViewPlan* plan = first + begin; plan != first + end; ++plan) {
      work.resize(static_cast<size_t>(ViewWorkBytes(*plan)));
      RunResizePass(FirstPass(*plan, pixels, work.data()), 0, 1);
      ViewAugmenter<OneThread>(OneThread(), *plan, work.data()).Run(normalization, floats + plan->result_begin);
    }
  });
}

// The operator's kernel for the CPU. mean, std: of three channels, floats.
at::Tensor AugmentOnCpu(const at::Tensor& result, const at::Tensor& plans, const at::Tensor& images,
                        at::ArrayRef<double> mean, at::ArrayRef<double> std) {
  TORCH_CHECK(mean.size() == 3 && std.size() == 3, kName, ": ", mean.size(), " means and ", std.size(),
              " deviations, expected 3 of both");
  ViewNormalization normalization;
  for (size_t c = 0; c < 3; ++c) {
    normalization.mean[c] = static_cast<float>(mean[c]);
    normalization.std[c] = static_cast<float>(std[c]);
  }
  AugmentOnHost(plans, images, normalization, result);
  return result;
}

// LibTorch forgets the operators of a library that is destroyed. A host program may have a library of this name.
torch::Library* DefineOperator() {
  auto* const library = new torch::Library(torch::Library::FRAGMENT, "ssl", std::nullopt, __FILE__, __LINE__);
  library->def(kSchema);
  library->impl("augment_views_", torch::dispatch(c10::DispatchKey::CPU, &AugmentOnCpu));
  return library;
}

void AugmentByOperator(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                       const at::Tensor& result) {
  static const torch::Library* const library = DefineOperator();
  (void)library;
  static const auto augment = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<Function>();
  const std::vector<double> mean(std::begin(normalization.mean), std::end(normalization.mean));
  const std::vector<double> std(std::begin(normalization.std), std::end(normalization.std));
  augment.call(result, plans.to(images.device(), at::kByte, /*non_blocking=*/true), images, mean, std);
}

}  // namespace

absl::Status AugmentViews(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                          at::Tensor* result) {
  if (HasAugmentKernel(images.device())) return AugmentByKernel(plans, images, normalization, result);
  if (images.is_cpu()) {
    AugmentOnHost(plans, images, normalization, *result);
  } else {
    AugmentByOperator(plans, images, normalization, *result);
  }
  return absl::OkStatus();
}

}  // namespace ssl
