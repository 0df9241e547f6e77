// SPDX-License-Identifier: Apache-2.0
//
// Values of all meters after several batches against VISSL's.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/meter.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/meters/register_meters.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using ValueLists = std::map<std::pair<std::string, std::string>, std::vector<double>>;

// A number, or lists of them in lists.
void Flatten(const ConfigNode& value, std::vector<double>* numbers) {
  if (value.is_scalar()) numbers->push_back(value.AsDouble().value_or(-100.0));
  for (const ConfigNode& item : value.items()) Flatten(item, numbers);
}

// {top_1: {"0": number or list}} by (metric, output).
ValueLists Expected(const ConfigNode& json) {
  ValueLists expected;
  for (const auto& [metric, outputs] : json.entries()) {
    for (const auto& [output, value] : outputs.entries()) Flatten(value, &expected[{metric, output}]);
  }
  return expected;
}

// The original keeps one list for all outputs that were given one name; we number them ("res4", "res4_1"). Values come
// output by output, so that the first ones of each metric tell the outputs' order.
ValueLists ByGivenName(const std::vector<MeterValue>& values, const golden::Case& golden_case) {
  std::vector<std::string> ours;
  for (const MeterValue& value : values) {
    if (std::find(ours.begin(), ours.end(), value.output) == ours.end()) ours.push_back(value.output);
  }
  const ConfigNode* const names = golden_case.params.Find("meter_names");
  ValueLists lists;
  for (const MeterValue& value : values) {
    const size_t position = std::find(ours.begin(), ours.end(), value.output) - ours.begin();
    const bool is_named = names != nullptr && position < names->items().size();
    lists[{value.metric, is_named ? names->items()[position].text() : value.output}].push_back(value.value);
  }
  return lists;
}

void CheckMeter(const golden::Case& golden_case) {
  Registries registries;
  ASSERT_OK(RegisterMeters(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const BuildContext context{ConfigNode::Map(), registries, *communicator};
  ASSERT_OK_AND_ASSIGN(const auto meter, registries.meters.Make(golden_case.op, golden_case.params, context));

  for (const golden::Step& step : golden_case.steps) {
    if (step.outputs.empty()) {
      std::vector<at::Tensor> outputs;
      for (int64_t i = 0; i < golden_case.Count("num_meters"); ++i) {
        outputs.push_back(step.Input(absl::StrCat("output", i)));
      }
      ASSERT_OK(meter->Update(outputs, step.Input("target")));
      continue;
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<MeterValue> values, meter->Values(*communicator));
    ValueLists actual = ByGivenName(values, golden_case);
    const ValueLists expected = Expected(step.Expected("value").value);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [key, numbers] : expected) {
      ASSERT_EQ(actual[key].size(), numbers.size()) << key.first << " " << key.second;
      for (size_t i = 0; i < numbers.size(); ++i) {
        // VISSL's AP is float32.
        EXPECT_NEAR(actual[key][i], numbers[i], key.first == "AP" ? 1e-7 : 1e-10) << key.first << " " << key.second;
      }
    }
  }
}

TEST(MetersGolden, ValuesMatch) {
  golden::RunCategory("meters", {{"accuracy_list_meter", &CheckMeter},
                                 {"mean_ap_list_meter", &CheckMeter},
                                 {"precision_at_k_list_meter", &CheckMeter},
                                 {"recall_at_k_list_meter", &CheckMeter}});
}

}  // namespace
}  // namespace ssl
