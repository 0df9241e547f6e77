// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/registry.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/core/schedule.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

class Constant : public Schedule {
 public:
  double ValueAt(double where) const override { return 0.5; }
  UpdateInterval update_interval() const override { return UpdateInterval::kEpoch; }
};

absl::StatusOr<std::unique_ptr<Schedule>> MakeConstant(const ConfigNode& params, const BuildContext& context) {
  return std::make_unique<Constant>();
}

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(registry_.Register("constant", MakeConstant));
    ASSERT_OK(registry_.Register("another", MakeConstant));
  }

  Registry<Schedule> registry_{"schedule"};
  const ConfigNode config_ = ConfigNode::Map({"run.yaml", 12});
  const Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  const BuildContext context_{config_, registries_, *communicator_, 0, "", 0};
};

TEST_F(RegistryTest, Make_CallsTheFactory) {
  ASSERT_OK_AND_ASSIGN(const auto schedule, registry_.Make("constant", config_, context_));
  EXPECT_EQ(schedule->ValueAt(0.0), 0.5);
}

TEST_F(RegistryTest, UnknownName_IsNotFoundWithPlaceNearestNameAndList) {
  EXPECT_THAT(registry_.Make("constnat", config_, context_),
              StatusIs(absl::StatusCode::kNotFound,
                       "run.yaml:12: no schedule is named 'constnat'; did you mean 'constant'?; known: another, "
                       "constant"));
}

TEST_F(RegistryTest, NameTwice_IsAlreadyExists) {
  EXPECT_THAT(registry_.Register("constant", MakeConstant),
              StatusIs(absl::StatusCode::kAlreadyExists, "schedule 'constant' is registered twice"));
}

TEST_F(RegistryTest, Names_AreSorted) { EXPECT_THAT(registry_.Names(), ElementsAre("another", "constant")); }

TEST(RegistriesTest, AddPackage_IsTrueOnce) {
  Registries registries;
  EXPECT_TRUE(registries.AddPackage("models"));
  EXPECT_FALSE(registries.AddPackage("models"));
}

}  // namespace
}  // namespace ssl
