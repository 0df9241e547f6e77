// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation after a training would find wrong is found by the check.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EvaluationCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterBuiltins(&registries_)); }

  std::vector<std::string> Mistakes(const std::string& engines, const std::string& token) {
    ComposeRequest request = MakeRunRequest(registries_);
    request.tokens = {"config=test/swav_tiny", "engine_name=" + engines, token};
    request.search_dirs = {"configs", "."};
    return CheckConfig(request, registries_).mistakes;
  }

  Registries registries_;
};

TEST_F(EvaluationCheckTest, MistakesOfData_Layers_AndMethod_AreFound) {
  EXPECT_THAT(Mistakes("[train,knn]", "config.NEAREST_NEIGHBOR.TOPK=100000"),
              ElementsAre(HasSubstr("command line:3: config.NEAREST_NEIGHBOR.TOPK is 100000, expected at most")));
  EXPECT_THAT(Mistakes("[train,knn]", "config.NEAREST_NEIGHBOR.LAYERS=[res9]"), ElementsAre(HasSubstr("res9")));
  for (const std::string engine : {"knn", "linear_eval", "full_tune"}) {
    for (const std::string split : {"TRAIN", "TEST"}) {
      EXPECT_THAT(Mistakes("[train," + engine + "]", "config.DATA." + split + ".RANDOM_SYNTHETIC_LABELS=0"),
                  ElementsAre(HasSubstr("config.DATA." + split + ".DATA_SOURCES [synthetic] has none")))
          << engine;
    }
  }
  EXPECT_THAT(Mistakes("[train,extract_label_predictions]", "config.SEED_VALUE=1"),
              ElementsAre(HasSubstr("config.LOSS.name is swav_loss, whose heads give embeddings")));
}

}  // namespace
}  // namespace ssl
