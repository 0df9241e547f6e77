// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/register_meters.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/meter.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RegisterMetersTest : public ::testing::Test {
 protected:
  RegisterMetersTest() { EXPECT_OK(RegisterMeters(&registries_)); }

  absl::StatusOr<std::unique_ptr<Meter>> Make(const std::string& name, const std::string& yaml) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> params = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(params);
    return registries_.meters.Make(name, *params, {config_, registries_, *communicator_});
  }

  Registries registries_;
  const ConfigNode config_ = ConfigNode::Map();
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(RegisterMetersTest, Registered_AreTheseAndNoOthers) {
  EXPECT_OK(RegisterMeters(&registries_));
  EXPECT_THAT(registries_.meters.Names(), ElementsAre("accuracy_list_meter", "mean_ap_list_meter",
                                                      "precision_at_k_list_meter", "recall_at_k_list_meter"));
  EXPECT_THAT(registries_.resolvers, SizeIs(1));
}

TEST_F(RegisterMetersTest, Defaults_AreThoseOfVissl) {
  const ConfigNode defaults = registries_.options.Defaults();
  EXPECT_TRUE(defaults.FindPath("METERS.names")->items().empty());
  EXPECT_EQ(defaults.FindPath("METERS.enable_training_meter")->text(), "true");
  EXPECT_EQ(defaults.FindPath("METERS.accuracy_list_meter.topk_values.0")->text(), "1");
  EXPECT_EQ(defaults.FindPath("METERS.recall_at_k_list_meter.num_meters")->text(), "1");
  EXPECT_EQ(defaults.FindPath("METERS.mean_ap_list_meter.num_classes")->text(), "9605");
  EXPECT_EQ(defaults.FindPath("METERS.mean_ap_list_meter.max_cpu_capacity")->text(), "-1");
}

TEST_F(RegisterMetersTest, Meters_HaveTheNameThatTheyAreMadeBy) {
  for (const std::string& name : registries_.meters.Names()) {
    const auto meter = Make(name, "{num_meters: 2, meter_names: [a, b]}");
    ASSERT_OK(meter) << name;
    EXPECT_EQ((*meter)->name(), name);
  }
}

TEST_F(RegisterMetersTest, WrongOptions_AreNamedWithTheirPlace) {
  EXPECT_THAT(Make("accuracy_list_meter", "topk_values: [0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:1"), HasSubstr("config.METERS.accuracy_list_meter.topk_values"))));
  EXPECT_THAT(Make("mean_ap_list_meter", "num_classes: many"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.METERS.mean_ap_list_meter.num_classes")));
  EXPECT_THAT(Make("mean_ap_list_meter", "meter_names: [a, b]"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("meter_names has 2 names (a, b), expected 1")));
  EXPECT_THAT(Make("acuracy_list_meter", "{}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("accuracy_list_meter")));
}

}  // namespace
}  // namespace ssl
