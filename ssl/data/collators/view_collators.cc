// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/view_collators.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/data/collators/view_rules.h"

namespace ssl {
namespace {

class ViewCollator : public Collator {
 public:
  ViewCollator(ViewRule rule, std::vector<CollatedInput> inputs) : rule_(std::move(rule)), inputs_(std::move(inputs)) {}

  absl::Status Check(const Sample& first) const override { return CheckViews(rule_, first); }
  std::vector<CollatedInput> inputs() const override { return inputs_; }

 private:
  const ViewRule rule_;
  const std::vector<CollatedInput> inputs_;
};

struct MulticropParameters : public Options {
  bool create_multidimensional_tensor = false;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("create_multidimensional_tensor", &create_multidimensional_tensor,
                  Doc("One tensor for all views; not supported."));
  }
};

absl::StatusOr<std::unique_ptr<const Collator>> MakePlain(const ConfigNode& params, absl::string_view path,
                                                          ViewRule rule,
                                                          std::vector<CollatedInput> inputs = {CollatedInput()}) {
  SSL_RETURN_IF_ERROR(CheckNoParameters(params, path));
  return std::make_unique<ViewCollator>(std::move(rule), std::move(inputs));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Collator>> MakeDefaultCollate(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path, {"default_collate", 1, 1, false, "1 view, or multicrop_collator"});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeMocoCollator(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path, {"moco_collator", 2, 2, true, "2 views of one size"});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeMulticropCollator(const ConfigNode& params,
                                                                      absl::string_view path) {
  MulticropParameters parameters;
  SSL_RETURN_IF_ERROR(ReadOptions(params, path, UnknownKeys::kError, &parameters));
  if (parameters.create_multidimensional_tensor) {
    return absl::UnimplementedError(
        absl::StrCat(params.Find("create_multidimensional_tensor")->location().ToString(), ": ", path,
                     ".create_multidimensional_tensor is True, expected False: a batch has one tensor for each view"));
  }
  ViewRule any;
  any.name = "multicrop_collator";
  return std::make_unique<ViewCollator>(std::move(any), std::vector<CollatedInput>{CollatedInput()});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakePatchAndImageCollator(const ConfigNode& params,
                                                                          absl::string_view path) {
  return MakePlain(params, path,
                   {"patch_and_image_collator", 3, std::numeric_limits<int>::max(), true,
                    "an image and 2 or more patches of one size", /*first=*/1},
                   {{"images", 0, 1}, {"patches", 1, -1, /*joins_views=*/true}});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeSiameseCollator(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path,
                   {"siamese_collator", 2, std::numeric_limits<int>::max(), true, "2 or more views of one size"},
                   {{CollatedInput().name, 0, -1, /*joins_views=*/true}});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeSimclrCollator(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path,
                   {"simclr_collator", 2, std::numeric_limits<int>::max(), true, "2 or more views of one size"});
}

std::unique_ptr<Options> MakeMulticropCollatorOptions() { return std::make_unique<MulticropParameters>(); }

}  // namespace ssl
