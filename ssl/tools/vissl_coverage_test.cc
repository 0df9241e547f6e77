// SPDX-License-Identifier: Apache-2.0
//
// Every key and name of VISSL is known to a program with everything that is built in.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/vissl/compatibility_page.h"
#include "ssl/vissl/key_tables.h"
#include "ssl/vissl/vissl_keys.h"
#include "ssl/vissl/vissl_names.h"

namespace ssl {
namespace {

constexpr char kDefaultKeys[] = "ssl/vissl/testdata/default_keys.yaml";

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file.good()) << path;
  return text.str();
}

class VisslCoverageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterBuiltins(&registries_));
    ASSERT_OK(RegisterVisslKeys(&registries_));
    ASSERT_OK_AND_ASSIGN(vissl_defaults_, ParseVisslDefaults(ReadText(kDefaultKeys)));
    entries_ = registries_.options.Entries();
  }

  Registries registries_;
  VisslDefaults vissl_defaults_;
  std::vector<CatalogEntry> entries_;
};

// A key is known when it is an entry, when entries stand below it, or when it stands below a free-form one.
bool IsKnown(const std::string& key, const std::vector<CatalogEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [&key](const CatalogEntry& entry) {
    return entry.path == key || absl::StartsWith(entry.path, key + ".") ||
           (entry.type == "any" && absl::StartsWith(key, entry.path + "."));
  });
}

TEST_F(VisslCoverageTest, EveryDefaultKeyOfVisslIsKnown) {
  std::map<std::string, int> per_section;
  for (const auto& [key, value] : vissl_defaults_) {
    EXPECT_TRUE(IsKnown(key, entries_)) << key;
    ++per_section[std::vector<std::string>(absl::StrSplit(key, '.'))[0]];
  }
  EXPECT_EQ(vissl_defaults_.size(), 600u);
  EXPECT_EQ(per_section["DATA"], 74);
  EXPECT_EQ(per_section["HOOKS"], 23);
  EXPECT_EQ(per_section["METERS"], 17);
  EXPECT_EQ(per_section["OPTIMIZER"], 48);
}

TEST_F(VisslCoverageTest, KeysThatVisslsFilesUseBesideTheDefaultsAreKnown) {
  for (const char* key : {"DATA.TRAIN.COLLATE_FUNCTION_PARAMS.num_classes",
                          "DATA.TRANSFORMS",
                          "DISTRIBUTED.DISTR_ON",
                          "LOSS.cross_entropy_multiple_output_single_target.label_smoothing",
                          "LOSS.dino_loss.normalize_last_layer",
                          "LOSS.dino_loss.num_crops",
                          "LOSS.distillation_loss.loss_type",
                          "LOSS.distillation_loss.soft_target_alpha",
                          "LOSS.distillation_loss.temperature",
                          "LOSS.ignore_index",
                          "LOSS.nce_loss_with_memory.ignore_index",
                          "LOSS.swav_loss.shk_powerlaw",
                          "MODEL.AMP_PARAMS.AMP_ARGS.keep_batchnorm_fp32",
                          "MODEL.AMP_PARAMS.AMP_ARGS.loss_scale",
                          "MODEL.AMP_PARAMS.AMP_ARGS.master_weights",
                          "MODEL.TRUNK.EFFICIENT_NETS.model_version",
                          "MODEL.TRUNK.MOBILE_NET.PRETRAINED",
                          "MODEL.TRUNK.REGNET.block_type",
                          "MODEL.TRUNK.REGNET.bottleneck_multipliers",
                          "MODEL.TRUNK.REGNET.depth",
                          "MODEL.TRUNK.REGNET.depths",
                          "MODEL.TRUNK.REGNET.group_width",
                          "MODEL.TRUNK.REGNET.group_widths",
                          "MODEL.TRUNK.REGNET.name",
                          "MODEL.TRUNK.REGNET.stage_checkpointing",
                          "MODEL.TRUNK.REGNET.stage_checkpoints",
                          "MODEL.TRUNK.REGNET.strides",
                          "MODEL.TRUNK.REGNET.w_0",
                          "MODEL.TRUNK.REGNET.w_a",
                          "MODEL.TRUNK.REGNET.w_m",
                          "MODEL.TRUNK.REGNET.widths",
                          "MODEL.TRUNK.TRUNK_PARAMS.RESNETS.DEPTH",
                          "MODEL.TRUNK.VISION_TRANSFORMERS.USE_CLASS_TOKEN",
                          "MODEL.WEIGHTS_INIT.PARAM_FILE",
                          "MONITOR_PERF_STATS",
                          "OPTIMIZER.exclude_bias_and_norm",
                          "OPTIMIZER.linear_eval_heads",
                          "OPTIMIZER.param_schedulers.weight_decay.start_value",
                          "OPTIMIZER.param_schedulers.weight_decay_head.name"}) {
    EXPECT_TRUE(IsKnown(key, entries_)) << key;
  }
}

TEST_F(VisslCoverageTest, TablesHaveNoKeyThatAStructReads) {
  std::set<std::string> works;
  for (const CatalogEntry& entry : entries_) {
    if (entry.status == CatalogEntry::Status::kWorks) works.insert(entry.path);
  }
  for (const CompatibilityKey& key : AllVisslKeys()) {
    EXPECT_EQ(works.count(key.path), 0u) << key.path << ": take it out of its table in ssl/vissl";
  }
}

// The names that are registered and that VISSL has: no table has gone out of use.
TEST_F(VisslCoverageTest, RegisteredNamesAreAmongVissls) {
  EXPECT_TRUE(IsVisslName(registries_.trunks.kind(), "resnet") && registries_.trunks.Has("resnet"));
  EXPECT_TRUE(IsVisslName(registries_.methods.kind(), "swav_loss") && registries_.methods.Has("swav_loss"));
  const std::vector<std::string> kinds = {
      registries_.batch_sources.kind(), registries_.datasets.kind(),    registries_.engines.kind(),
      registries_.heads.kind(),         registries_.meters.kind(),      registries_.methods.kind(),
      registries_.models.kind(),        registries_.optimizers.kind(),  registries_.parameter_groupers.kind(),
      registries_.schedules.kind(),     registries_.train_steps.kind(), registries_.transforms.kind(),
      registries_.trunks.kind()};
  for (const std::string& kind : kinds) EXPECT_FALSE(VisslNames(kind).empty()) << kind;
}

TEST_F(VisslCoverageTest, PageOfKeysIsUpToDate) {
  const std::filesystem::path root = std::filesystem::canonical("WORKSPACE").parent_path();
  EXPECT_TRUE(ReadText(root / "docs/vissl_keys.md") == CompatibilityPage(entries_, vissl_defaults_))
      << "make it anew:\n  ./bazelw run //ssl/tools:print_vissl_keys > docs/vissl_keys.md";
}

}  // namespace
}  // namespace ssl
