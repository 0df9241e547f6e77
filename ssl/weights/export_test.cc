// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/export.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/weights/testing/model_builder.h"
#include "ssl/weights/weights_file.h"
#include "ssl/weights/weights_init.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Model> MakeModel(const std::string& heads, int64_t seed = 1) {
  auto model = BuildTestModel(Yaml("{DEPTH: 18, WIDTH_MULTIPLIER: 0.125}"), Yaml(heads), seed);
  EXPECT_OK(model);
  return *std::move(model);
}

// Every format and kind of file fills another model with the same weights.
TEST(Export, ItsFilesLoadAgain) {
  const auto from = MakeModel("[[mlp, {dims: [64, 3]}]]");
  for (const std::string format : {"torchvision", "timm", "native"}) {
    const std::string dir = MakeTempDir("export") + "/new";
    ASSERT_OK_AND_ASSIGN(const ExportResult result,
                         ExportWeights(PosixFileSystem(), *from, {format, {dir + "/a.safetensors", dir + "/a.pth"}}));
    ASSERT_EQ(result.files.size(), 2u);
    EXPECT_THAT(result.left_out, IsEmpty());
    for (const ExportedFile& file : result.files) {
      EXPECT_EQ(file.tensors, 122);
      EXPECT_EQ(file.bytes, *PosixFileSystem().Size(file.path));
      const auto to = MakeModel("[[mlp, {dims: [64, 3]}]]", /*seed=*/2);
      ASSERT_OK_AND_ASSIGN(const WeightsFile weights, ReadWeightsFile(file.path, {}));
      ASSERT_OK(LoadWeights(weights, WeightsInitOptions(), HeadWeightRules(), to.get()));
      const auto expected = *CollectState(*from);
      const auto loaded = *CollectState(*to);
      for (size_t i = 0; i < expected.size(); ++i) {
        if (format != "native" && expected[i].name[0] == 'h') continue;  // fc.weight is no head of ours
        EXPECT_TRUE(at::equal(expected[i].tensor, loaded[i].tensor)) << expected[i].name;
      }
    }
    EXPECT_EQ(PosixFileSystem().List(dir)->size(), 2u);
  }
}

TEST(Export, ALinearHeadIsTheClassifier) {
  const auto model = MakeModel("[[mlp, {dims: [64, 3]}]]");
  std::vector<std::string> left_out;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> tensors, ExportedTensors(*model, "torchvision", &left_out));
  EXPECT_EQ(tensors.front().name, "conv1.weight");
  EXPECT_EQ(tensors[tensors.size() - 2].name, "fc.weight");
  EXPECT_EQ(tensors.back().name, "fc.bias");
}

TEST(Export, OtherHeadsAreLeftOutAndNamed) {
  const auto model = MakeModel("[[mlp, {dims: [64, 8]}], [mlp, {dims: [8, 3]}]]");
  std::vector<std::string> left_out;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> tensors, ExportedTensors(*model, "torchvision", &left_out));
  EXPECT_EQ(tensors.size(), 120u);
  EXPECT_THAT(left_out,
              ElementsAre("heads.0.clf.0.weight", "heads.0.clf.0.bias", "heads.1.clf.0.weight", "heads.1.clf.0.bias"));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> native, ExportedTensors(*model, "native", &left_out));
  EXPECT_EQ(native.size(), 124u);
}

TEST(Export, RefusesUnknownFormatsAndNames) {
  const auto model = MakeModel("[]");
  const std::string dir = MakeTempDir("export");
  EXPECT_THAT(ExportWeights(PosixFileSystem(), *model, {"torchvison", {dir + "/a.pth"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no weights format is named 'torchvison'; did you mean 'torchvision'?; known: native, "
                                 "torchvision, timm")));
  EXPECT_THAT(
      ExportWeights(PosixFileSystem(), *model, {"native", {dir + "/a.pth", dir + "/a.onnx"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.onnx: expected a name that ends with .safetensors")));
  EXPECT_THAT(*PosixFileSystem().List(dir), IsEmpty());
}

class OtherModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}
};

TEST(Export, RefusesTrunksWithoutNamesInTheFormat) {
  OtherModel model;
  std::vector<std::string> left_out;
  EXPECT_THAT(ExportedTensors(model, "timm", &left_out),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("format timm has no names for this trunk")));
}

}  // namespace
}  // namespace ssl
