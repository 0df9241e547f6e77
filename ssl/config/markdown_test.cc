// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/markdown.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "ssl/config/fields.h"

namespace ssl {
namespace {

struct BlurOptions : public Options {
  int64_t radius = 3;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("radius", &radius, Doc("Of the blur.").AtLeast(1).Unit("pixels"));
  }
};

TEST(MarkdownTest, ARowIsALine_AndBarsDoNotEndACell) {
  EXPECT_EQ(MarkdownTable("key", {{"SPLIT", "text", "a|b", "train | test", "one | other"}}),
            "\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n"
            "| `SPLIT` | text | `a\\|b` | train | test | one \\| other |\n");
  EXPECT_EQ(MarkdownCode("x"), "`x`");
  EXPECT_EQ(MarkdownCode(""), "");
}

TEST(MarkdownSection, HasATableWhereThereAreParameters) {
  EXPECT_EQ(MarkdownSection({"Blur", "Blurs.", std::make_unique<BlurOptions>()}),
            "\n### Blur\nBlurs.\n\n| parameter | type | default | range | meaning |\n|---|---|---|---|---|\n"
            "| `radius` | int | `3` | at least 1 (pixels) | Of the blur. |\n");
  EXPECT_EQ(MarkdownSection({"Flip", "Mirrors.", nullptr}), "\n### Flip\nMirrors.\n");
}

}  // namespace
}  // namespace ssl
