// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/swav_case.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl::golden {
namespace {

// "local_queue0" -> "queue_scores0"; "" for another name.
std::string StateNameOf(absl::string_view buffer) {
  if (buffer == "local_emb_queue") return "queue_embeddings";
  if (absl::ConsumePrefix(&buffer, "local_queue")) return absl::StrCat("queue_scores", buffer);
  return "";
}

}  // namespace

SwavOptions SwavOptionsOf(const Case& golden_case) {
  SwavOptions options;
  options.embedding_dim = golden_case.Count("embedding_dim");
  options.temperature = golden_case.Double("temperature");
  options.use_double_precision = golden_case.Flag("use_double");
  options.num_iters = golden_case.Count("num_iters");
  options.epsilon = golden_case.Double("epsilon");
  options.num_crops = golden_case.Count("num_crops");
  options.crops_for_assign = golden_case.Ints("crops_for_assign");
  options.num_prototypes = golden_case.Ints("num_prototypes");
  if (options.crops_for_assign.empty() || options.num_prototypes.empty()) {
    throw std::invalid_argument("a case of SwAV needs crops_for_assign and num_prototypes");  // RunCases catches it
  }
  options.temp_hard_assignment_iters = golden_case.Int("temp_hard_assignment_iters");
  options.shk_powerlaw = golden_case.Double("shk_powerlaw");
  // As configured, before VISSL rounds it down to whole batches, where the case tells.
  options.queue.queue_length = golden_case.Int("queue_length_config", golden_case.Int("queue_length"));
  options.queue.start_iter = golden_case.Int("start_iter");
  return options;
}

SwavRun::SwavRun(Model* model, int64_t batch_size, Communicator& communicator)
    : context_(std::make_unique<StepContext>(
          StepContext{state_, *model, /*optimizer=*/nullptr, communicator, metrics_, stop_, /*checkpoints=*/nullptr})) {
  context_->batch_size = batch_size;
}

SwavRun::SwavRun(Model* model, int64_t batch_size) : own_communicator_(MakeLocalCommunicator()) {
  context_ = std::make_unique<StepContext>(
      StepContext{state_, *model, /*optimizer=*/nullptr, *own_communicator_, metrics_, stop_, /*checkpoints=*/nullptr});
  context_->batch_size = batch_size;
}

SwavRun::~SwavRun() = default;

void LoadQueue(const Case& golden_case, SwavMethod* method) {
  if (golden_case.inputs.count("local_emb_queue") == 0) return;
  absl::StatusOr<std::vector<NamedTensor>> state = CollectState(*method);
  ASSERT_OK(state);
  size_t loaded = 0;
  for (const auto& [buffer, value] : golden_case.inputs) {
    const std::string name = StateNameOf(buffer);
    if (name.empty()) continue;
    for (NamedTensor& entry : *state) {
      if (entry.name != name) continue;
      entry.tensor = value;
      ++loaded;
    }
  }
  EXPECT_EQ(loaded, 1 + golden_case.Ints("num_prototypes").size());
  ASSERT_OK(RestoreState(*method, *state, golden_case.name));
}

void CheckSwavState(SwavMethod& method, const std::string& buffer, const Output& expected) {
  if (buffer == "num_iteration") {
    EXPECT_EQ(method.iteration(), expected.integer);
    return;
  }
  if (buffer == "use_queue") {
    EXPECT_EQ(method.uses_queue() ? 1 : 0, expected.integer);
    return;
  }
  const std::string name = StateNameOf(buffer);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(method));
  for (const NamedTensor& entry : state) {
    if (entry.name != name) continue;
    EXPECT_TRUE(Matches(entry.tensor, expected));
    return;
  }
  ADD_FAILURE() << "output '" << buffer << "' is not known to this test";
}

}  // namespace ssl::golden
