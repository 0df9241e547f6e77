// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/one_hot_collator.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/data/collators/view_rules.h"

namespace ssl {
namespace {

constexpr char kName[] = "targets_one_hot_default_collator";
constexpr int64_t kUnknown = -1;

struct OneHotOptions : public Options {
  int64_t num_classes = 0;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_classes", &num_classes, Doc("Columns of the targets.").Between(1, 1 << 20));
  }
};

class OneHotCollator : public Collator {
 public:
  explicit OneHotCollator(int64_t num_classes) : num_classes_(num_classes) {}

  absl::Status Check(const Sample& first) const override {
    SSL_RETURN_IF_ERROR(CheckViews({kName, 1, 1, false, "1 view"}, first));
    const auto columns = static_cast<int64_t>(first.label_row.size());
    if (columns == 0 || columns == num_classes_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("num_classes of ", kName, " is ", num_classes_,
                                                   ", but a sample has labels for ", columns, " classes"));
  }

  TargetLayout Targets(const Sample& first) const override {
    if (!first.label_row.empty()) return {};
    return {TargetLayout::Kind::kRows, num_classes_};
  }

  absl::Status Collate(const CollateContext& context, BatchRows* batch) const override {
    if (batch->target_rows == nullptr) return absl::OkStatus();
    std::fill_n(batch->target_rows, batch->rows * num_classes_, kUnknown);
    for (int64_t row = 0; row < batch->rows; ++row) {
      const int64_t label = batch->labels[row];
      if (label < 0 || label >= num_classes_) {
        return absl::InvalidArgumentError(absl::StrCat("sample ", batch->indices[row], " has label ", label,
                                                       ", expected 0 to ", num_classes_ - 1, ", as num_classes of ",
                                                       kName, " is ", num_classes_));
      }
      batch->target_rows[row * num_classes_ + label] = 1;
    }
    return absl::OkStatus();
  }

 private:
  const int64_t num_classes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Collator>> MakeOneHotCollator(const ConfigNode& params, absl::string_view path) {
  OneHotOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, path, UnknownKeys::kError, &options));
  if (options.num_classes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(params.location().ToString(), ": ", path,
                                                   ".num_classes is not set; ", kName, " needs the number of classes"));
  }
  return std::make_unique<OneHotCollator>(options.num_classes);
}

std::unique_ptr<Options> MakeOneHotCollatorOptions() { return std::make_unique<OneHotOptions>(); }

}  // namespace ssl
