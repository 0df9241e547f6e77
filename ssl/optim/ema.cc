// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>

namespace ssl {
namespace {

bool IsAveraged(const at::Tensor& average) { return average.scalar_type() == at::kFloat; }

}  // namespace

void EmaUpdate(const std::vector<at::Tensor>& averages, const std::vector<at::Tensor>& values, double decay) {
  TORCH_CHECK_VALUE(averages.size() == values.size(), "EmaUpdate: ", averages.size(), " averages of ", values.size(),
                    " values");
  const at::NoGradGuard no_grad;
  if (std::all_of(averages.begin(), averages.end(), &IsAveraged)) {
    // One pass over memory; a multiplication and an addition would be two.
    if (!averages.empty()) at::_foreach_lerp_(averages, values, 1.0 - decay);
    return;
  }
  std::vector<at::Tensor> copied;
  std::vector<at::Tensor> copied_from;
  std::vector<at::Tensor> averaged;
  std::vector<at::Tensor> averaged_from;
  for (size_t i = 0; i < averages.size(); ++i) {
    const bool is_averaged = IsAveraged(averages[i]);
    (is_averaged ? averaged : copied).push_back(averages[i]);
    (is_averaged ? averaged_from : copied_from).push_back(values[i]);
  }
  at::_foreach_copy_(copied, copied_from);
  if (!averaged.empty()) at::_foreach_lerp_(averaged, averaged_from, 1.0 - decay);
}

}  // namespace ssl
