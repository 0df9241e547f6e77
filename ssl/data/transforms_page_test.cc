// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms_page.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/register_data.h"
#include "ssl/data/samplers/sampler_keys.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(TransformsPage, HasWhateverAConfigurationMayName) {
  const std::string page = TransformsPage();
  Registries registries;
  ASSERT_OK(RegisterData(&registries));
  for (const std::string& name : registries.transforms.Names()) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n### ", name, "\n")));
  }
  for (const std::string& name : CollatorNames()) EXPECT_THAT(page, HasSubstr(absl::StrCat("\n### ", name, "\n")));
  for (const std::string& key : SamplerKeys()) EXPECT_THAT(page, HasSubstr(absl::StrCat("\n| `", key, "` |")));
}

TEST(TransformsPage, HasParameters) {
  const std::string page = TransformsPage();
  EXPECT_THAT(page, HasSubstr("### RandomHorizontalFlip\nMirrors each view with a probability. torchvision's.\n\n"
                              "| parameter | type | default | range | meaning |\n"));
  EXPECT_THAT(page, HasSubstr("| `p` | float | `0.5` | between 0 and 1 | "));
  EXPECT_THAT(page, HasSubstr("| `num_layers` | int | `2` | between 1 and 1000 | Operations for each view. |"));
  EXPECT_THAT(page, HasSubstr("| `cutmix_alpha` | float |"));
  EXPECT_THAT(page, HasSubstr("| `STRATIFIED_SAMPLER.CLASSES_PER_BATCH` | int |"));
  EXPECT_THAT(page, HasSubstr("| `MINI_EPOCH_GROUPS` | int | `1` | at least 1 |"));
}

TEST(TransformsPage, IsUpToDate) {
  const std::filesystem::path root = std::filesystem::canonical("WORKSPACE").parent_path();
  std::ifstream file(root / "docs/transforms.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == TransformsPage())
      << "make it anew:\n  ./bazelw run //ssl/tools:print_transforms_page > docs/transforms.md";
}

}  // namespace
}  // namespace ssl
