// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/view_collators.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

// What a collator expects of the views.
struct Expectation {
  std::string name;
  int min_views = 1;
  int max_views = std::numeric_limits<int>::max();
  bool one_size = false;
  std::string text;  // for messages: "1 view"
  int first = 0;     // one_size: of the views from here on
};

class ViewCollator : public Collator {
 public:
  explicit ViewCollator(Expectation expectation) : expectation_(std::move(expectation)) {}

  absl::Status Check(const Sample& first) const override {
    const int views = first.num_views();
    if (views < expectation_.min_views || views > expectation_.max_views) {
      return absl::InvalidArgumentError(absl::StrCat("COLLATE_FUNCTION is ", expectation_.name,
                                                     ", but the transforms make ", views, " views; expected ",
                                                     expectation_.text));
    }
    for (int v = expectation_.first + 1; expectation_.one_size && v < views; ++v)
      SSL_RETURN_IF_ERROR(CheckSize(first, v));
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSize(const Sample& first, int v) const {
    const Image& one = first.view(expectation_.first).image;
    const Image& other = first.view(v).image;
    if (other.height() == one.height() && other.width() == one.width()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("COLLATE_FUNCTION is ", expectation_.name, ", but view ",
                                                   expectation_.first, " is ", one.height(), " x ", one.width(),
                                                   " and view ", v, " is ", other.height(), " x ", other.width(),
                                                   "; expected ", expectation_.text, ", or multicrop_collator"));
  }

  Expectation expectation_;
};

struct NoParameters : public Options {
  void VisitFields(FieldVisitor& visitor) override {}
};

struct MulticropParameters : public Options {
  bool create_multidimensional_tensor = false;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("create_multidimensional_tensor", &create_multidimensional_tensor,
                  Doc("One tensor for all views; not supported."));
  }
};

absl::StatusOr<std::unique_ptr<const Collator>> MakePlain(const ConfigNode& params, absl::string_view path,
                                                          Expectation expectation) {
  NoParameters none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, path, UnknownKeys::kError, &none));
  return std::make_unique<ViewCollator>(std::move(expectation));
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
  Expectation any;
  any.name = "multicrop_collator";
  return std::make_unique<ViewCollator>(std::move(any));
}

absl::StatusOr<std::unique_ptr<const Collator>> MakePatchAndImageCollator(const ConfigNode& params,
                                                                          absl::string_view path) {
  return MakePlain(params, path,
                   {"patch_and_image_collator", 3, std::numeric_limits<int>::max(), true,
                    "an image and 2 or more patches of one size", /*first=*/1});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeSiameseCollator(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path,
                   {"siamese_collator", 2, std::numeric_limits<int>::max(), true, "2 or more views of one size"});
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeSimclrCollator(const ConfigNode& params, absl::string_view path) {
  return MakePlain(params, path,
                   {"simclr_collator", 2, std::numeric_limits<int>::max(), true, "2 or more views of one size"});
}

}  // namespace ssl
