// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/precision.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Precision> Read(const std::string& yaml, const std::string& device) {
  const ConfigNode node = *ParseYaml(yaml, "amp.yaml", nullptr);
  AmpOptions options;
  const absl::Status status = ReadOptions(node, "config.MODEL.AMP_PARAMS", UnknownKeys::kError, &options);
  if (!status.ok()) return status;
  return PrecisionOf(options, device, node);
}

struct Case {
  const char* yaml;
  const char* device;
  Autocast autocast;
  bool scales_loss;
  double loss_scale;
};

TEST(PrecisionTest, MeaningsOfApexAndPyTorch) {
  const Case cases[] = {
      {"{USE_AMP: False, AMP_ARGS: {opt_level: O2}}", "gpu", Autocast::kOff, false, 0.0},
      {"{USE_AMP: True, AMP_ARGS: {opt_level: O0}}", "gpu", Autocast::kOff, false, 0.0},
      {"{USE_AMP: True, AMP_ARGS: {opt_level: O1}}", "cpu", Autocast::kBFloat16, false, 0.0},
      {"{USE_AMP: True, AMP_ARGS: {opt_level: O1}}", "gpu", Autocast::kFloat16, true, 0.0},
      {"{USE_AMP: True, AMP_ARGS: {opt_level: O2, loss_scale: 128}}", "gpu", Autocast::kFloat16, true, 128.0},
      {"{USE_AMP: True, AMP_ARGS: {opt_level: O3, keep_batchnorm_fp32: True, master_weights: False}}", "gpu",
       Autocast::kFloat16, true, 1.0},
      {"{USE_AMP: True, AMP_TYPE: pytorch}", "cpu", Autocast::kBFloat16, false, 0.0},
      {"{USE_AMP: True, AMP_TYPE: pytorch, AMP_DTYPE: float16}", "cpu", Autocast::kFloat16, true, 0.0},
      {"{USE_AMP: True, AMP_TYPE: pytorch, AMP_DTYPE: bfloat16}", "gpu", Autocast::kBFloat16, false, 0.0},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.yaml);
    ASSERT_OK_AND_ASSIGN(const Precision precision, Read(expected.yaml, expected.device));
    EXPECT_EQ(precision.autocast, expected.autocast);
    EXPECT_EQ(precision.scales_loss, expected.scales_loss);
    EXPECT_EQ(precision.loss_scale, expected.loss_scale);
  }
}

TEST(PrecisionTest, LimitOfSkippedUpdates_IsThatOfFloat16) {
  ASSERT_OK_AND_ASSIGN(Precision precision, Read("{USE_AMP: True, AMP_DTYPE: float16}", "cpu"));
  EXPECT_EQ(precision.max_skipped_updates, 50);
  ASSERT_OK_AND_ASSIGN(precision, Read("{USE_AMP: True, AMP_DTYPE: float16, MAX_SKIPPED_UPDATES: 7}", "cpu"));
  EXPECT_EQ(precision.max_skipped_updates, 7);
  EXPECT_THAT(Read("{USE_AMP: True, MAX_SKIPPED_UPDATES: 0}", "cpu"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("MAX_SKIPPED_UPDATES is '0'")));
}

TEST(PrecisionTest, WrongValues_NameKeyAndPlace) {
  EXPECT_THAT(Read("{USE_AMP: True, AMP_ARGS: {opt_level: O5}}", "cpu"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AMP_ARGS.opt_level is 'O5'")));
  EXPECT_THAT(Read("{USE_AMP: True, AMP_DTYPE: float16, AMP_ARGS: {loss_scale: -1}}", "cpu"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("amp.yaml:1: config.MODEL.AMP_PARAMS.AMP_ARGS.loss_scale is '-1', expected")));
}

}  // namespace
}  // namespace ssl
