// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/view_rules.h"

#include "absl/strings/str_cat.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

struct NoParameters : public Options {
  void VisitFields(FieldVisitor& visitor) override {}
};

absl::Status CheckSize(const ViewRule& rule, const Sample& sample, int v) {
  const Image& one = sample.view(rule.first).image;
  const Image& other = sample.view(v).image;
  if (other.height() == one.height() && other.width() == one.width()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("COLLATE_FUNCTION is ", rule.name, ", but view ", rule.first, " is ",
                                                 one.width(), " x ", one.height(), " and view ", v, " is ",
                                                 other.width(), " x ", other.height(), "; expected ", rule.text,
                                                 ", or multicrop_collator"));
}

}  // namespace

absl::Status CheckViews(const ViewRule& rule, const Sample& sample) {
  const int views = sample.num_views();
  if (views < rule.min_views || views > rule.max_views) {
    return absl::InvalidArgumentError(absl::StrCat("COLLATE_FUNCTION is ", rule.name, ", but the transforms make ",
                                                   views, " views; expected ", rule.text));
  }
  for (int v = rule.first + 1; rule.one_size && v < views; ++v) {
    const absl::Status status = CheckSize(rule, sample, v);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckEvenRows(absl::string_view collator, int64_t rows) {
  if (rows % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("COLLATE_FUNCTION is ", collator, ", which mixes pairs of samples, but ", "a batch has ", rows,
                   ", expected an even number; make ",
                   "BATCHSIZE_PER_REPLICA even, or set DROP_LAST to True when it is the ", "last batch of an epoch"));
}

absl::Status CheckNoParameters(const ConfigNode& params, absl::string_view path) {
  NoParameters none;
  return ReadOptions(params, path, UnknownKeys::kError, &none);
}

}  // namespace ssl
