// SPDX-License-Identifier: Apache-2.0
//
// Complete training steps from a configuration: model, loss, hooks, parameter groups, optimizer and schedule together,
// through the same Session that a user runs.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/methods/register_methods.h"
#include "ssl/models/layers.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// The views of the recipe: view v of step t is drawn with the seed input_seed + 100 t + v.
class RecipeSource : public BatchSource {
 public:
  explicit RecipeSource(const golden::Case& golden_case)
      : seed_(golden_case.Int("input_seed")), num_steps_(golden_case.Int("num_steps")) {
    for (const ConfigNode& shape : golden_case.Param("views").items()) shapes_.push_back(golden::ToInts(shape));
  }

  int64_t batches_per_epoch() const override { return num_steps_; }
  int64_t dataset_size() const override { return num_steps_ * shapes_[0][0]; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    next_ = first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    if (next_ == num_steps_) return nullptr;
    batch_.views.clear();
    for (size_t v = 0; v < shapes_.size(); ++v) {
      at::Generator generator = MakeGenerator(seed_ + 100 * next_ + static_cast<int64_t>(v));
      batch_.views.push_back(at::rand(shapes_[v], generator, at::kFloat) * 4 - 2);
    }
    batch_.indices = at::arange(shapes_[0][0]);
    batch_.targets = at::zeros({shapes_[0][0]}, at::kLong);
    ++next_;
    return &batch_;
  }

 private:
  const int64_t seed_;
  const int64_t num_steps_;
  std::vector<std::vector<int64_t>> shapes_;
  int64_t next_ = 0;
  Batch batch_;
};

at::Tensor RecipeValue(const NamedTensor& entry, bool of_norm, at::Generator& generator) {
  if (absl::EndsWith(entry.name, "num_batches_tracked")) return entry.tensor.clone();
  const at::Tensor u = at::rand(entry.tensor.sizes(), generator, at::kFloat);
  if (absl::EndsWith(entry.name, "running_mean")) return (u - 0.5) * 0.2;
  if (absl::EndsWith(entry.name, "running_var")) return u + 0.5;
  if (u.dim() >= 2) return (u * 2 - 1) * std::sqrt(3.0 / static_cast<double>(u[0].numel()));
  if (absl::EndsWith(entry.name, "weight")) return u * 0.5 + 0.25;
  return of_norm ? u + 0.3 : (u - 0.5) * 0.2;
}

void ApplyRecipe(Model& model, int64_t seed) {
  const at::NoGradGuard no_grad;
  const std::vector<NamedTensor> state = *CollectState(model);
  std::set<std::string> names;
  for (const NamedTensor& entry : state) names.insert(entry.name);
  at::Generator generator = MakeGenerator(seed);
  for (const NamedTensor& entry : state) {
    const std::string statistics = absl::StrCat(absl::StripSuffix(entry.name, "bias"), "running_mean");
    at::Tensor target = entry.tensor;
    target.copy_(RecipeValue(entry, names.count(statistics) > 0, generator));
  }
}

std::string LossOf(const golden::Case& golden_case) {
  const ConfigNode* name = golden_case.Param("loss").Find("name");
  return name != nullptr ? name->text() : "";
}

// The case has views.
ConfigNode ConfigOf(const golden::Case& golden_case) {
  const ConfigNode& params = golden_case.params;
  ConfigNode config = ConfigNode::Map();
  config.SetPath("SEED_VALUE", golden_case.Param("loss_seed"));
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(false));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", *params.FindPath("views.0.0"));
  config.SetPath("MODEL.TRUNK.RESNETS", golden_case.Param("resnets"));
  config.SetPath("MODEL.HEAD.PARAMS", golden_case.Param("heads"));
  if (const ConfigNode* frozen = params.Find("temp_frozen"))
    config.SetPath("MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", *frozen);
  const ConfigNode& loss = golden_case.Param("loss");
  const std::string name = LossOf(golden_case);
  config.SetPath("LOSS.name", ConfigNode::FromString(name));
  for (const auto& [key, value] : loss.entries()) {
    if (key != "name") config.SetPath(absl::StrCat("LOSS.", name, ".", key), value);
  }
  config.SetPath("OPTIMIZER", golden_case.Param("optimizer"));
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(1));
  config.SetPath("OPTIMIZER.param_schedulers.lr", golden_case.Param("lr"));
  if (golden_case.Param("lr").Find("update_interval") == nullptr) {
    config.SetPath("OPTIMIZER.param_schedulers.lr.update_interval", ConfigNode::FromString("step"));
  }
  return config;
}

at::Tensor Summary(const std::vector<at::Tensor>& tensors, bool norms) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor value = tensor.detach().to(at::kDouble);
    values.push_back(norms ? value.norm() : value.sum());
  }
  return at::stack(values);
}

std::vector<at::Tensor> Buffers(Model& model) {
  std::vector<at::Tensor> buffers;
  const std::vector<NamedTensor> state = *CollectState(model);
  for (const NamedTensor& entry : state) {
    if (absl::StrContains(entry.name, "running_")) buffers.push_back(entry.tensor);
  }
  return buffers;
}

// Outputs that VISSL keeps in its loss: they are compared with the checkpoint at the end.
bool IsSavedState(const std::string& output) { return output == "queue_ptr" || output == "key_param_norms"; }

bool HasSavedState(const golden::Case& golden_case) {
  const auto& outputs = golden_case.steps.back().outputs;
  return std::any_of(outputs.begin(), outputs.end(), [](const auto& output) { return IsSavedState(output.first); });
}

// The method's state after the last step, by its names in the checkpoint.
std::map<std::string, at::Tensor> SavedState(const golden::Case& golden_case, const std::string& run_directory) {
  CheckpointStoreOptions options;
  options.directory = absl::StrCat(run_directory, "/checkpoints");
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const CheckpointStore store(options, PosixFileSystem(), *communicator);
  const absl::StatusOr<std::vector<NamedTensor>> part =
      store.Load(golden_case.Int("num_steps"), "state_rank0.safetensors");
  EXPECT_OK(part);
  std::map<std::string, at::Tensor> state;
  if (!part.ok()) return state;
  for (const NamedTensor& entry : *part) state.emplace(entry.name, entry.tensor);
  return state;
}

void CheckSavedState(const golden::Case& golden_case, Model& model, const std::string& run_directory) {
  const std::map<std::string, at::Tensor> state = SavedState(golden_case, run_directory);
  for (const auto& [name, expected] : golden_case.steps.back().outputs) {
    SCOPED_TRACE(name);
    if (name == "queue_ptr") {
      ASSERT_EQ(state.count("method/queue_ptr"), 1u);
      EXPECT_EQ(state.at("method/queue_ptr").item<int64_t>(), expected.integer);
    } else if (name == "key_param_norms") {
      std::vector<at::Tensor> parameters;
      for (const NamedParameter& parameter : model.Parameters()) {
        const auto saved = state.find(absl::StrCat("method/encoder/", parameter.name));
        ASSERT_NE(saved, state.end()) << parameter.name;
        parameters.push_back(saved->second);
      }
      EXPECT_TRUE(golden::Matches(Summary(parameters, /*norms=*/true), expected));
    }
  }
}

// Compares what a step leaves behind.
class CompareHook : public Hook {
 public:
  explicit CompareHook(const golden::Case& golden_case) : case_(golden_case) {}
  absl::string_view name() const override { return "compare"; }
  HookStage stage() const override { return HookStage::kReport; }

  absl::Status OnUpdate(StepContext& context) override {
    std::vector<at::Tensor> parameters;
    for (const NamedParameter& parameter : context.model.Parameters()) parameters.push_back(parameter.value);
    const size_t index = static_cast<size_t>(context.state.iteration);
    if (index >= case_.steps.size()) return absl::OutOfRangeError("the case has fewer steps than its num_steps");
    const golden::Step& step = case_.steps[index];
    for (const auto& [name, expected] : step.outputs) {
      SCOPED_TRACE(absl::StrCat("step ", context.state.iteration, " ", name));
      if (name == "loss") {
        EXPECT_TRUE(golden::Matches(context.loss, expected));
      } else if (name == "lr") {
        EXPECT_TRUE(golden::Matches(context.optimizer->groups()[0].learning_rate, expected));
      } else if (name == "param_sums" || name == "param_norms") {
        EXPECT_TRUE(golden::Matches(Summary(parameters, name == "param_norms"), expected));
      } else if (name == "buffer_sums") {
        EXPECT_TRUE(golden::Matches(Summary(Buffers(context.model), false), expected));
      } else if (!IsSavedState(name)) {
        ADD_FAILURE() << "output is not known to this test";
      }
    }
    return absl::OkStatus();
  }

 private:
  const golden::Case& case_;
};

void CheckSteps(const golden::Case& golden_case) {
  Registries registries;
  ASSERT_OK(RegisterMethods(&registries));
  ASSERT_OK(RegisterHooks(&registries));
  ASSERT_NE(golden_case.params.FindPath("views.0.0"), nullptr);
  SessionOptions options;
  options.train_source = std::make_unique<RecipeSource>(golden_case);
  const std::string run_directory = HasSavedState(golden_case) ? MakeTempDir("train_steps") : "";
  ConfigNode config = ConfigOf(golden_case);
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run_directory));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
  ApplyRecipe(session->model(), golden_case.Int("weight_seed"));
  ASSERT_OK(session->AddHook(std::make_unique<CompareHook>(golden_case)));
  ASSERT_OK(session->Train());
  EXPECT_EQ(session->state().iteration, golden_case.Int("num_steps"));
  if (!run_directory.empty()) CheckSavedState(golden_case, session->model(), run_directory);
}

std::string LimitOf(const golden::Case& golden_case) {
  Registries registries;
  EXPECT_OK(RegisterMethods(&registries));
  const std::string loss = LossOf(golden_case);
  return registries.methods.Has(loss) ? "" : absl::StrCat("no method ", loss);
}

TEST(TrainStepsGolden, WholeStepsAreVissls) {
  golden::RunCategory("train_steps", {{"train_steps", &CheckSteps}}, {}, &LimitOf);
}

}  // namespace
}  // namespace ssl
