// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/num_crops.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// A host's own, which makes two views and has no key that says so.
class TwoViews : public Transform {
 public:
  absl::string_view name() const override { return "two_views"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override { return absl::OkStatus(); }
};

// Of a loss that compares `expected` views.
absl::Status Check(const std::string& transforms, int64_t expected) {
  Registries registries;
  EXPECT_OK(RegisterTransforms(&registries));
  EXPECT_OK(registries.transforms.Register("two_views", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Transform>>(std::make_unique<TwoViews>());
  }));
  std::vector<std::string> warnings;
  const absl::StatusOr<ConfigNode> config =
      ParseYaml(absl::StrCat("{DATA: {TRAIN: {TRANSFORMS: ", transforms, "}}}"), "f.yaml", &warnings);
  EXPECT_OK(config.status());
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return CheckViews({*config, registries, *communicator}, "simclr_info_nce_loss", expected);
}

TEST(CheckViews, AnotherNumberOfViews_IsRefused) {
  constexpr char kReplicate[] = "{name: ImgReplicatePil, num_times: 2}";
  EXPECT_OK(Check(absl::StrCat("[", kReplicate, ", {name: RandomHorizontalFlip}, {name: ToTensor}]"), 2));
  EXPECT_OK(Check(absl::StrCat("[", kReplicate, ", ", kReplicate, "]"), 4));
  for (const auto& [transforms, made] :
       {std::pair<std::string, std::string>("[{name: RandomHorizontalFlip}, {name: ToTensor}]", "make 1 view "),
        {absl::StrCat("[", kReplicate, ", ", kReplicate, "]"), "make 4 views"}}) {
    EXPECT_THAT(Check(transforms, 2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(made)));
  }
}

TEST(CheckViews, TransformsThatDoNotSayHowMany_AreLeftAlone) {
  EXPECT_OK(Check("[{name: two_views}, {name: ToTensor}]", 2));
  EXPECT_OK(Check("[]", 2)) << "a source of the host's";
  EXPECT_OK(Check("[{name: no_such}]", 2)) << "whoever makes the transforms says it";
}

}  // namespace
}  // namespace ssl
