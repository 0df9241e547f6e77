// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/one_hot_encode.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct OneHotEncodeOptions : public Options {
  int64_t num_classes = 1000;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_classes", &num_classes, Doc("Length of a row.").Between(1, 1 << 20));
  }
};

// What the sample borrows, until the next one.
struct OneHotRow {
  std::vector<int64_t> values;
};

}  // namespace

absl::Status OneHotEncode::Apply(const TransformContext& context, Sample* sample) const {
  std::vector<int64_t>& row = context.scratch.Get<OneHotRow>().values;
  if (sample->label_row.empty()) {
    row.assign(num_classes_, 0);
    const bool is_list = !sample->label_list.empty();
    for (const int64_t label : is_list ? sample->label_list : absl::MakeConstSpan(&sample->label, 1)) {
      if (label < 0 || label >= num_classes_) {
        return absl::InvalidArgumentError(absl::StrCat("label is ", label, ", expected one from 0 to ",
                                                       num_classes_ - 1, ", as num_classes is ", num_classes_));
      }
      row[label] = 1;
    }
  } else if (static_cast<int64_t>(sample->label_row.size()) == num_classes_) {
    row.resize(num_classes_);  // the labels may be this row already
    for (size_t i = 0; i < row.size(); ++i) row[i] = sample->label_row[i] == 1 ? 1 : 0;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("labels are given for ", sample->label_row.size(),
                                                   " classes, expected num_classes, ", num_classes_));
  }
  sample->label_row = row;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeOneHotEncode(const ConfigNode& entry, const BuildContext& context) {
  OneHotEncodeOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<OneHotEncode>(options.num_classes);
}

std::unique_ptr<Options> MakeOneHotEncodeOptions() { return std::make_unique<OneHotEncodeOptions>(); }

}  // namespace ssl
