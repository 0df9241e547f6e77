// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/vissl_keys.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

struct PinMemoryOptions : public Options {
  bool pin_memory = true;
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("PIN_MEMORY", &pin_memory, Doc("pinned")); }
};

TEST(VisslKeysTest, KeysAreKnownAndEachSaysWhyItIsNotRead) {
  Registries registries;
  ASSERT_OK(RegisterVisslKeys(&registries));
  const ConfigNode defaults = registries.options.Defaults();
  ASSERT_NE(defaults.FindPath("DATA.PIN_MEMORY"), nullptr);
  EXPECT_EQ(defaults.FindPath("DATA.PIN_MEMORY")->text(), "true");
  EXPECT_EQ(defaults.FindPath("SLURM.NAME")->text(), "vissl");
  for (const CatalogEntry& entry : registries.options.Entries()) {
    EXPECT_NE(entry.status, CatalogEntry::Status::kWorks) << entry.path;
    EXPECT_GT(entry.doc.size(), 10u) << entry.path;
  }
}

TEST(VisslKeysTest, RegisteringTwiceChangesNothing) {
  Registries registries;
  ASSERT_OK(RegisterVisslKeys(&registries));
  const size_t count = registries.options.Entries().size();
  ASSERT_OK(RegisterVisslKeys(&registries));
  EXPECT_EQ(registries.options.Entries().size(), count);
}

TEST(VisslKeysTest, KeyThatAStructDeclaresStaysWithIt) {
  Registries registries;
  ASSERT_OK(registries.options.Add("DATA", [] { return std::make_unique<PinMemoryOptions>(); }));
  ASSERT_OK(RegisterVisslKeys(&registries));
  int works = 0;
  for (const CatalogEntry& entry : registries.options.Entries()) {
    if (entry.status != CatalogEntry::Status::kWorks) continue;
    EXPECT_EQ(entry.path, "DATA.PIN_MEMORY");
    ++works;
  }
  EXPECT_EQ(works, 1);
}

TEST(VisslKeysTest, OtherVersionsAreRefused) {
  ConfigNode root = ConfigNode::Map();
  EXPECT_OK(CheckVisslVersion(root));
  AddVisslRootKeys(&root);
  EXPECT_OK(CheckVisslVersion(root));
  EXPECT_EQ(root.Find("node_id")->text(), "0");
  for (const char* version : {"0", "2", "one"}) {
    root.Set("VERSION", ConfigNode::Scalar(version, false, {"old.yaml", 3}));
    const absl::Status status = CheckVisslVersion(root);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::string("old.yaml:3: VERSION is '") + version + "', expected 1"));
  }
}

}  // namespace
}  // namespace ssl
