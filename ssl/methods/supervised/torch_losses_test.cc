// SPDX-License-Identifier: Apache-2.0
//
// Every loss against its definition in torch's documentation, entry by entry.
#include "ssl/methods/supervised/torch_losses.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Rows = std::vector<std::vector<double>>;

const Rows kOutputs = {{1.0, -0.5, 2.0}, {0.3, 0.1, -1.2}};
const Rows kNumbers = {{0.5, -0.5, 0.0}, {0.3, 1.6, -3.0}};
const Rows kLabels = {{1.0, 0.0, 1.0}, {0.0, 0.0, 1.0}};
const Rows kSigns = {{1.0, -1.0, 1.0}, {-1.0, -1.0, 1.0}};
const Rows kShares = {{0.2, 0.3, 0.5}, {0.0, 0.9, 0.1}};
const std::vector<int64_t> kClasses = {2, 0};

at::Tensor Matrix(const Rows& rows) {
  std::vector<double> values;
  for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
  return at::tensor(values, at::kDouble).view({static_cast<int64_t>(rows.size()), -1});
}

at::Tensor Classes(const std::vector<int64_t>& classes) { return at::tensor(classes, at::kLong); }

std::unique_ptr<SupervisedLoss> Make(const std::string& name, const std::string& yaml = "{}") {
  for (const SupervisedLossEntry& entry : TorchLosses()) {
    if (entry.name != name) continue;
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> params = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(params);
    std::unique_ptr<SupervisedLoss> loss = entry.make();
    EXPECT_OK(ReadOptions(*params, "config.LOSS." + name, UnknownKeys::kError, loss.get()));
    return loss;
  }
  ADD_FAILURE() << name << " is not in the table";
  return nullptr;
}

double Value(const std::string& name, const std::string& yaml, const at::Tensor& targets) {
  const std::unique_ptr<SupervisedLoss> loss = Make(name, yaml);
  const absl::StatusOr<std::vector<at::Tensor>> terms = loss->Terms({Matrix(kOutputs)}, targets);
  EXPECT_OK(terms);
  return terms.ok() ? terms->at(0).item<double>() : std::nan("");
}

// Losses of single entries: their mean and sum.
void ExpectElementwise(const std::string& name, const std::string& key, const Rows& targets,
                       const std::function<double(double output, double target)>& entry) {
  double sum = 0.0;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t c = 0; c < 3; ++c) sum += entry(kOutputs[b][c], targets[b][c]);
  }
  EXPECT_NEAR(Value(name, "{" + key + "}", Matrix(targets)), sum / 6.0, 1e-12) << name;
  const std::string separator = key.empty() ? "" : ", ";
  EXPECT_NEAR(Value(name, "{" + key + separator + "reduction: sum}", Matrix(targets)), sum, 1e-12) << name;
}

double LogSigmoid(double value) { return -std::log(1.0 + std::exp(-value)); }

double Bce(double output, double label) { return -label * LogSigmoid(output) - (1.0 - label) * LogSigmoid(-output); }

double Huber(double difference, double delta) {
  const double size = std::abs(difference);
  return size < delta ? 0.5 * size * size : delta * (size - 0.5 * delta);
}

TEST(TorchLosses, LossesOfEntries) {
  ExpectElementwise("MSELoss", "", kNumbers, [](double x, double y) { return (x - y) * (x - y); });
  ExpectElementwise("L1Loss", "", kNumbers, [](double x, double y) { return std::abs(x - y); });
  ExpectElementwise("HuberLoss", "delta: 0.7", kNumbers, [](double x, double y) { return Huber(x - y, 0.7); });
  ExpectElementwise("HuberLoss", "", kNumbers, [](double x, double y) { return Huber(x - y, 1.0); });
  ExpectElementwise("SmoothL1Loss", "beta: 0.7", kNumbers, [](double x, double y) { return Huber(x - y, 0.7) / 0.7; });
  ExpectElementwise("BCEWithLogitsLoss", "", kLabels, &Bce);
  ExpectElementwise("SoftMarginLoss", "", kSigns, [](double x, double y) { return std::log(1.0 + std::exp(-y * x)); });
  ExpectElementwise("KLDivLoss", "", kShares, [](double x, double y) { return y > 0.0 ? y * (std::log(y) - x) : 0.0; });
}

TEST(TorchLosses, KlDivOverTheBatch) {
  EXPECT_NEAR(Value("KLDivLoss", "reduction: batchmean", Matrix(kShares)),
              Value("KLDivLoss", "reduction: sum", Matrix(kShares)) / 2.0, 1e-12);
}

TEST(TorchLosses, MultiLabelSoftMarginIsTheMeanOverClasses) {
  double sum = 0.0;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t c = 0; c < 3; ++c) sum += Bce(kOutputs[b][c], kLabels[b][c]) / 3.0;
  }
  const at::Tensor labels = Matrix(kLabels).to(at::kLong);
  EXPECT_NEAR(Value("MultiLabelSoftMarginLoss", "{}", labels), sum / 2.0, 1e-12);
  EXPECT_NEAR(Value("MultiLabelSoftMarginLoss", "reduction: sum", labels), sum, 1e-12);
}

TEST(TorchLosses, CrossEntropyAndNll) {
  double cross_entropy = 0.0;
  for (size_t b = 0; b < 2; ++b) {
    double sum = 0.0;
    for (const double score : kOutputs[b]) sum += std::exp(score);
    cross_entropy -= kOutputs[b][kClasses[b]] - std::log(sum);
  }
  EXPECT_NEAR(Value("CrossEntropyLoss", "{}", Classes(kClasses)), cross_entropy / 2.0, 1e-12);
  EXPECT_NEAR(Value("CrossEntropyLoss", "reduction: sum", Classes(kClasses)), cross_entropy, 1e-12);
  EXPECT_NEAR(Value("NLLLoss", "{}", Classes(kClasses)), -(kOutputs[0][2] + kOutputs[1][0]) / 2.0, 1e-12);
}

TEST(TorchLosses, IgnoredSamples) {
  const double first = Value("CrossEntropyLoss", "ignore_index: 0", Classes({2, 0}));
  EXPECT_NEAR(Value("CrossEntropyLoss", "{}", Classes({2, -1})), first, 1e-12);
  EXPECT_NEAR(Value("NLLLoss", "{}", Classes({2, -100})), -kOutputs[0][2], 1e-12);
  EXPECT_NEAR(Value("NLLLoss", "ignore_index: 0", Classes({2, 0})), -kOutputs[0][2], 1e-12);
}

TEST(TorchLosses, LabelSmoothing) {
  const at::Tensor smooth = Matrix({{0.1, 0.1, 0.8}, {0.8, 0.1, 0.1}});

  EXPECT_NEAR(Value("CrossEntropyLoss", "label_smoothing: 0.3", Classes(kClasses)),
              Value("CrossEntropyLoss", "{}", smooth), 1e-12);
}

TEST(TorchLosses, MultiMargin) {
  for (const int64_t p : {1, 2}) {
    double sum = 0.0;
    for (size_t b = 0; b < 2; ++b) {
      for (size_t c = 0; c < 3; ++c) {
        if (static_cast<int64_t>(c) == kClasses[b]) continue;
        sum += std::pow(std::max(0.0, 0.4 - kOutputs[b][kClasses[b]] + kOutputs[b][c]), p) / 3.0;
      }
    }
    EXPECT_NEAR(Value("MultiMarginLoss", "{margin: 0.4, p: " + std::to_string(p) + "}", Classes(kClasses)), sum / 2.0,
                1e-12);
  }
}

TEST(TorchLosses, NumbersOfOneColumn) {
  const auto loss = Make("MSELoss");
  const at::Tensor output = at::tensor(std::vector<double>{1.0, 3.0}, at::kDouble).view({2, 1});

  const auto terms = loss->Terms({output}, at::tensor(std::vector<double>{0.0, 1.0}, at::kDouble));

  ASSERT_OK(terms);
  EXPECT_DOUBLE_EQ(terms->at(0).item<double>(), 2.5);
}

TEST(TorchLosses, ShortTypes_AreComputedInFloat32) {
  for (const SupervisedLossEntry& entry : TorchLosses()) {
    const bool takes_classes = entry.name == "MultiMarginLoss" || entry.name == "NLLLoss";
    const auto terms =
        Make(entry.name)
            ->Terms({Matrix(kOutputs).to(at::kBFloat16)}, takes_classes ? Classes(kClasses) : Matrix(kShares));
    ASSERT_OK(terms) << entry.name;
    EXPECT_EQ(terms->at(0).scalar_type(), at::kFloat) << entry.name;
    EXPECT_EQ(terms->at(0).dim(), 0) << entry.name;
  }
}

TEST(TorchLosses, SeveralOutputs_AreRefused) {
  for (const SupervisedLossEntry& entry : TorchLosses()) {
    EXPECT_THAT(
        entry.make()->Terms({Matrix(kOutputs), Matrix(kOutputs)}, Matrix(kLabels)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("config.LOSS.name is " + entry.name + ", which takes one output, the model has 2"),
                       HasSubstr("cross_entropy_multiple_output_single_target"))));
  }
}

TEST(TorchLosses, TargetsThatDoNotFit_AreNamed) {
  const auto refused = [](const char* text) { return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)); };
  EXPECT_THAT(Make("MSELoss")->Terms({Matrix(kOutputs)}, Classes(kClasses)),
              refused("output has shape [2, 3] and the targets [2], expected the same"));
  EXPECT_THAT(Make("NLLLoss")->Terms({Matrix(kOutputs)}, Matrix(kLabels)), refused("expected [B, C] and Long [B]"));
  EXPECT_THAT(Make("NLLLoss")->Terms({Matrix(kOutputs)}, Classes({1, 3})), refused("or ignore_index -100"));
  EXPECT_THAT(Make("MultiMarginLoss")->Terms({Matrix(kOutputs)}, Classes({-1, 0})),
              refused("sample 0 of the batch has the label -1, expected one of 0 to 2 (the model has 3 classes)"));
}

}  // namespace
}  // namespace ssl
