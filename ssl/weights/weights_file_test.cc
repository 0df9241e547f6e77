// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weights_file.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <errno.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/io/testing/pickle_builder.h"
#include "ssl/io/testing/zip_builder.h"
#include "ssl/io/torch_writer.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file that Python wrote: tests/golden/data/files.
std::string PythonFile(absl::string_view name) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/tests/golden/data/files/",
                      name);
}

std::vector<std::string> Names(const absl::StatusOr<WeightsFile>& weights) {
  EXPECT_OK(weights);
  std::vector<std::string> names;
  for (const NamedTensor& entry : weights->tensors) names.push_back(entry.name);
  return names;
}

TEST(WeightsFile, ReadsTrunkAndHeadsOfAVisslCheckpoint) {
  const std::vector<std::string> names = Names(ReadWeightsFile(PythonFile("vissl_swav.torch"), {"classy_state_dict"}));
  EXPECT_EQ(names.size(), 9u);
  EXPECT_EQ(names[0], "trunk._feature_blocks.conv1.weight");
  EXPECT_THAT(names, Contains("heads.0.prototypes0.weight"));
}

TEST(WeightsFile, ReadsBelowNestedAndDottedKeys) {
  const std::string path = PythonFile("vissl_moco.torch");
  const std::vector<std::string> trunk = {"classy_state_dict", "base_model", "model", "trunk"};
  const std::vector<std::string> names = Names(ReadWeightsFile(path, trunk));
  EXPECT_EQ(names[0], "_feature_blocks.conv1.weight");
  EXPECT_EQ(Names(ReadWeightsFile(path, {"classy_state_dict.base_model.model.trunk"})), names);
  EXPECT_THAT(Names(ReadWeightsFile(path, {"loss"})), Contains("moco_encoder.heads.1.clf.0.bias"));
  // The whole file: every tensor, the optimizer's too.
  EXPECT_THAT(Names(ReadWeightsFile(path, {""})),
              Contains("classy_state_dict.optimizer.optim.state.0.momentum_buffer"));
}

TEST(WeightsFile, TakesFlatFilesAsTheyAre) {
  for (const absl::string_view file : {"torchvision_flat.pth", "torchvision_flat_legacy.pth", "ddp_flat.pth"}) {
    for (const std::string key : {"classy_state_dict", ""}) {
      const std::vector<std::string> names = Names(ReadWeightsFile(PythonFile(file), {key}));
      EXPECT_EQ(names.size(), 8u) << file;
      EXPECT_EQ(names[0], "conv1.weight") << file;
    }
  }
}

// As DINO, MAE and MoCo v3 save a training.
TEST(WeightsFile, ReadsWeightsBesideObjects) {
  const std::string path = MakeTempDir("weights") + "/full.pth";
  const std::string weight = PickleTensor(PickleStorage("FloatStorage", "0", 1), 0, {1}, {1});
  const auto write = [&](const std::string& body) {
    EXPECT_OK(
        WriteFileAtomically(PosixFileSystem(), path, BuildZip({{"a/data.pkl", PickleOf(body)}, {"a/data/0", "1234"}})));
  };
  write(absl::StrCat("}(", PickleText("model"), "}", PickleText("conv1.weight"), weight, "s", PickleText("args"),
                     "cargparse\nNamespace\n)\x81}", PickleText("lr"), "K\x01sbu"));
  ASSERT_OK_AND_ASSIGN(const WeightsFile weights, ReadWeightsFile(path, {"model"}));
  EXPECT_THAT(weights.tensors, testing::SizeIs(1));
  EXPECT_THAT(weights.passed_over, ElementsAre("argparse.Namespace"));
  // A whole model: its weights are attributes of objects.
  write(absl::StrCat("cmy.models\nNet\n)\x81}", PickleText("weight"), weight, "sb"));
  EXPECT_THAT(ReadWeightsFile(path, {""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("an object of my.models.Net"), HasSubstr("model.state_dict()"))));
  write("ctorch._utils\n_rebuild_qtensor\n");
  EXPECT_THAT(ReadWeightsFile(path, {""}), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("state_dict(), FILE")));
}

TEST(WeightsFile, AMissingKeyNamesThoseThatHaveTensors) {
  const std::string path = PythonFile("vissl_swav.torch");
  EXPECT_THAT(
      ReadWeightsFile(path, {"state_dict"}),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("vissl_swav.torch: no key 'state_dict'; the file has tensors under 'loss' (3 tensors)")));
  EXPECT_THAT(
      ReadWeightsFile(path, {"classy_state_dict", "base_model", "modle"}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("'classy_state_dict.base_model.model.trunk' (6 tensors)")));
  EXPECT_THAT(ReadWeightsFile(path, {"phase_idx"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at 'phase_idx': no tensors")));
  EXPECT_THAT(ReadWeightsFile(PythonFile("torchvision_flat.pth"), {"model"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("tensors under '' (8 tensors)")));
}

TEST(WeightsFile, ReadsSafetensors) {
  const std::string path = MakeTempDir("weights") + "/model.bin";  // the content decides
  const at::Tensor values = at::arange(6, at::kFloat).view({2, 3});
  ASSERT_OK(WriteSafetensors(PosixFileSystem(), path, {{"module.b", values}, {"module.a", values.t()}}, {}));
  ASSERT_OK_AND_ASSIGN(const WeightsFile weights, ReadWeightsFile(path, {kClassyStateDictKey}));
  EXPECT_THAT(Names(weights), ElementsAre("b", "a"));
  EXPECT_TRUE(at::equal(weights.tensors[1].tensor, values.t()));
  EXPECT_THAT(ReadWeightsFile(path, {"model"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("STATE_DICT_KEY_NAME is 'model'")));
}

TEST(WeightsFile, DamagedSafetensorsAreFound) {
  const std::string path = MakeTempDir("weights") + "/model.safetensors";
  ASSERT_OK(WriteSafetensors(PosixFileSystem(), path, {{"a", at::arange(6, at::kFloat)}}, {}));
  ASSERT_OK_AND_ASSIGN(const std::string whole, PosixFileSystem().Read(path));
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_OK_AND_ASSIGN(const auto file, PosixFileSystem().Create(path));
    ASSERT_OK(file->Append(whole.substr(0, size)));
    ASSERT_OK(file->Close());
    EXPECT_THAT(ReadWeightsFile(path, {}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("model.safetensors")))
        << size;
  }
}

TEST(WeightsFile, ReadsTheNewestCheckpointOfARun) {
  const std::string run = MakeTempDir("weights");
  const auto alone = MakeLocalCommunicator();
  CheckpointStore store({run + "/checkpoints", 0, ""}, PosixFileSystem(), *alone);
  ASSERT_OK(store.Open());
  for (const int64_t step : {9, 10}) {
    ASSERT_OK(store.Save(step, {{"model.safetensors", {{absl::StrCat("trunk.", step), at::arange(step)}}}}));
  }
  EXPECT_THAT(Names(ReadWeightsFile(run, {kClassyStateDictKey})), ElementsAre("trunk.10"));
  EXPECT_THAT(Names(ReadWeightsFile(run + "/checkpoints", {})), ElementsAre("trunk.10"));
  EXPECT_THAT(Names(ReadWeightsFile(run + "/checkpoints/step_9", {})), ElementsAre("trunk.9"));

  // A damaged one is passed over, unless it is asked for.
  const std::string model = run + "/checkpoints/step_10/model.safetensors";
  ASSERT_OK_AND_ASSIGN(const auto file, PosixFileSystem().OpenAppend(model));
  ASSERT_OK(file->Append("x"));
  ASSERT_OK(file->Close());
  EXPECT_THAT(Names(ReadWeightsFile(run, {})), ElementsAre("trunk.9"));
  EXPECT_THAT(ReadWeightsFile(run + "/checkpoints/step_10", {}), StatusIs(absl::StatusCode::kDataLoss));
}

// A file of a checkpoint by its own path: one changed byte still gives tensors.
TEST(WeightsFile, FileBesideItsManifest_IsCheckedAgainstIt) {
  const std::string run = MakeTempDir("weights");
  const auto alone = MakeLocalCommunicator();
  CheckpointStore store({run + "/checkpoints", 0, ""}, PosixFileSystem(), *alone);
  ASSERT_OK(store.Save(9, {{"model.safetensors", {{"trunk", at::full({1000}, 2.5)}}}}));
  const std::string model = store.StepDirectory(9) + "/model.safetensors";
  ASSERT_OK_AND_ASSIGN(const std::string whole, PosixFileSystem().Read(model));
  EXPECT_OK(ReadWeightsFile(model, {}).status());

  std::string damaged = whole;
  damaged[whole.size() - 7] ^= 1;
  for (const std::string& path : {model, store.StepDirectory(9) + "/copy.safetensors"}) {
    ASSERT_OK_AND_ASSIGN(const auto file, PosixFileSystem().Create(path));
    ASSERT_OK(file->Append(damaged));
    ASSERT_OK(file->Close());
  }
  EXPECT_THAT(ReadWeightsFile(model, {}).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("model.safetensors")));
  // The manifest does not list it.
  EXPECT_OK(ReadWeightsFile(store.StepDirectory(9) + "/copy.safetensors", {}).status());
}

TEST(WeightsFile, ManifestOfAnotherProgram_IsNone) {
  const std::string directory = MakeTempDir("downloads");
  const auto alone = MakeLocalCommunicator();
  CheckpointStore store({directory, 0, ""}, PosixFileSystem(), *alone);
  ASSERT_OK(store.Save(9, {{"model.safetensors", {{"trunk", at::full({1000}, 2.5)}}}}));
  ASSERT_OK(
      WriteFileAtomically(PosixFileSystem(), store.StepDirectory(9) + "/MANIFEST.json", "{\"name\": \"weights\"}"));
  EXPECT_OK(ReadWeightsFile(store.StepDirectory(9) + "/model.safetensors", {}).status());
}

// As a run's removal of the checkpoint might, from another host of a network file system.
TEST(WeightsFile, WeightsOfARun_DoNotChangeWithItsFiles) {
  const std::string run = MakeTempDir("weights");
  const auto alone = MakeLocalCommunicator();
  CheckpointStore store({run + "/checkpoints", 0, ""}, PosixFileSystem(), *alone);
  ASSERT_OK(store.Save(9, {{"model.safetensors", {{"trunk", at::full({1000}, 2.5)}}}}));
  ASSERT_OK_AND_ASSIGN(const WeightsFile of_run, ReadWeightsFile(run, {}));
  ASSERT_OK_AND_ASSIGN(const WeightsFile of_step, ReadWeightsFile(store.StepDirectory(9), {}));
  std::filesystem::resize_file(store.StepDirectory(9) + "/model.safetensors", 0);
  EXPECT_EQ(of_run.tensors[0].tensor.sum().item<double>(), 2500.0);
  EXPECT_EQ(of_step.tensors[0].tensor.sum().item<double>(), 2500.0);
}

TEST(WeightsFile, SaysWhatAPathIsNot) {
  EXPECT_THAT(ReadWeightsFile("https://host/a.pth", {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a URL, expected a file: download it first")));
  const std::string dir = MakeTempDir("weights");
  EXPECT_THAT(ReadWeightsFile(dir, {}), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no checkpoint")));
  EXPECT_THAT(ReadWeightsFile(dir + "/gone.pth", {}), StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone.pth")));
}

TEST(WeightsFile, IsReadThroughTheGivenFileSystem) {
  const std::string run = MakeTempDir("weights_elsewhere");
  const auto alone = MakeLocalCommunicator();
  CheckpointStore store({run + "/checkpoints", 0, ""}, PosixFileSystem(), *alone);
  ASSERT_OK(store.Open());
  ASSERT_OK(store.Save(9, {{"model.safetensors", {{"trunk.9", at::arange(9)}}}}));
  for (const std::string& path : {PythonFile("vissl_swav.torch"), run, run + "/checkpoints/step_9/model.safetensors"}) {
    int call = 1;
    for (;; ++call) {
      FaultFileSystem faults(PosixFileSystem(), run);
      faults.set_fault_reads(true);
      faults.FailCall(call, EIO, FaultFileSystem::Repeat::kFromThenOn);
      const absl::Status status = ReadWeightsFile(faults, path, {kClassyStateDictKey}).status();
      if (faults.failed_calls() == 0) break;
      EXPECT_FALSE(status.ok()) << path << ", call " << call;
    }
    EXPECT_GT(call, 1) << path << " was read past the file system";
  }
}

}  // namespace
}  // namespace ssl
