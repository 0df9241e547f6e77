// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/class_numbers.h"

#include "absl/strings/str_cat.h"

namespace ssl {

absl::Status CheckClassNumbers(const at::Tensor& targets, int64_t num_classes, std::optional<int64_t> ignore_index) {
  if (!targets.is_cpu()) return absl::OkStatus();
  const at::Tensor contiguous = targets.contiguous();
  const int64_t* numbers = contiguous.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < contiguous.numel(); ++i) {
    if (numbers[i] == ignore_index || (numbers[i] >= 0 && numbers[i] < num_classes)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("sample ", i, " of the batch has the label ", numbers[i], ", expected one of 0 to ",
                     num_classes - 1, " (the model has ", num_classes, " classes)",
                     ignore_index.has_value() ? absl::StrCat(" or ignore_index ", *ignore_index) : ""));
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const at::Tensor& targets, int64_t num_classes, std::optional<int64_t> ignore_index) {
  const bool are_numbers = targets.defined() && targets.dim() == 1 && targets.scalar_type() == at::kLong;
  return num_classes > 0 && are_numbers ? CheckClassNumbers(targets, num_classes, ignore_index) : absl::OkStatus();
}

}  // namespace ssl
