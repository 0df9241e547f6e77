// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "ssl/base/status_macros.h"
#include "ssl/io/safetensors.h"

namespace ssl::golden {
namespace {

using Json = nlohmann::ordered_json;
using TensorTable = std::map<std::string, at::Tensor>;

std::string Directory() {
  const char* directory = std::getenv("SSL_GOLDEN_DIR");
  if (directory != nullptr && *directory != '\0') return directory;
  const char* runfiles = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  return absl::StrCat(runfiles != nullptr ? runfiles : ".", "/", workspace != nullptr ? workspace : ".",
                      "/tests/golden/data");
}

absl::StatusOr<Json> ReadJson(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError(absl::StrCat(path, ": no valid JSON"));
  return json;
}

ConfigNode ToNode(const Json& json) {
  if (json.is_boolean()) return ConfigNode::FromBool(json.get<bool>());
  if (json.is_number_integer()) return ConfigNode::FromInt(json.get<int64_t>());
  if (json.is_number_float()) return ConfigNode::FromDouble(json.get<double>());
  if (json.is_string()) return ConfigNode::FromString(json.get<std::string>());
  if (json.is_array()) {
    ConfigNode list = ConfigNode::List();
    for (const Json& item : json) list.Append(ToNode(item));
    return list;
  }
  if (json.is_object()) {
    ConfigNode map = ConfigNode::Map();
    for (const auto& [key, value] : json.items()) map.Set(key, ToNode(value));
    return map;
  }
  return ConfigNode::Null();
}

// Splits "inputs" into the strings that name a tensor and the rest.
void ReadInputs(const Json& json, const TensorTable& table, TensorTable* tensors, ConfigNode* literals) {
  *literals = ConfigNode::Map();
  for (const auto& [name, value] : json.items()) {
    const auto found = value.is_string() ? table.find(value.get<std::string>()) : table.end();
    if (found != table.end()) {
      tensors->emplace(name, found->second);
    } else {
      literals->Set(name, ToNode(value));
    }
  }
}

absl::StatusOr<Output> ReadOutput(const Json& json, const TensorTable& table) {
  Output output;
  if (json.contains("scalar")) {
    output.kind = Output::Kind::kScalar;
    output.f64 = json["scalar"].value("f64", std::nan(""));
    output.f32 = json["scalar"].value("f32", output.f64);
  } else if (json.contains("tensor")) {
    output.kind = Output::Kind::kTensor;
    const auto found = table.find(json["tensor"].get<std::string>());
    if (found == table.end()) {
      return absl::NotFoundError(absl::StrCat("tensor ", json["tensor"].dump(), " is missing"));
    }
    output.tensor = found->second;
    output.f32_dev = json.value("f32_dev", 0.0);
    output.absmax = json.value("absmax", 0.0);
  } else if (json.contains("int")) {
    output.kind = Output::Kind::kInt;
    output.integer = json["int"].get<int64_t>();
  } else if (json.contains("list")) {
    output.kind = Output::Kind::kList;
    output.value = ToNode(json["list"]);
  } else if (json.contains("json")) {
    output.value = ToNode(json["json"]);
  } else {
    return absl::DataLossError(absl::StrCat("output ", json.dump(), " is of an unknown kind"));
  }
  return output;
}

absl::StatusOr<Case> ReadCase(const Json& json, const TensorTable& table) {
  Case result;
  result.name = json.at("name").get<std::string>();
  result.op = json.at("op").get<std::string>();
  result.params = ToNode(json.at("params"));
  ReadInputs(json.value("inputs", Json::object()), table, &result.inputs, &result.literals);
  for (const Json& entry : json.at("steps")) {
    Step step;
    ReadInputs(entry.at("inputs"), table, &step.inputs, &step.literals);
    for (const auto& [name, value] : entry.at("outputs").items()) {
      absl::StatusOr<Output> output = ReadOutput(value, table);
      if (!output.ok()) {
        return absl::Status(output.status().code(),
                            absl::StrCat(result.name, ", output '", name, "': ", output.status().message()));
      }
      step.outputs.emplace(name, *std::move(output));
    }
    result.steps.push_back(std::move(step));
  }
  return result;
}

absl::StatusOr<TensorTable> ReadTensors(const std::string& path) {
  TensorTable table;
  SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(path));
  for (NamedTensor& entry : content.tensors) table.emplace(std::move(entry.name), std::move(entry.tensor));
  return table;
}

const ConfigNode& Param(const Case& golden_case, absl::string_view name) {
  static const ConfigNode* const kNull = new ConfigNode();
  const ConfigNode* found = golden_case.params.Find(name);
  return found != nullptr ? *found : *kNull;
}

}  // namespace

int64_t Case::Int(absl::string_view param, int64_t fallback) const {
  return Param(*this, param).AsInt().value_or(fallback);
}

double Case::Double(absl::string_view param, double fallback) const {
  return Param(*this, param).AsDouble().value_or(fallback);
}

std::vector<int64_t> Case::Ints(absl::string_view param) const {
  std::vector<int64_t> values;
  for (const ConfigNode& item : Param(*this, param).items()) values.push_back(item.AsInt().value_or(0));
  return values;
}

absl::StatusOr<std::vector<Case>> ReadCategory(absl::string_view category) {
  const std::string directory = Directory();
  SSL_ASSIGN_OR_RETURN(const Json index, ReadJson(absl::StrCat(directory, "/index.json")));
  for (const Json& entry : index.at("categories")) {
    if (entry.at("category").get<std::string>() != category) continue;
    TensorTable table;
    if (entry.at("tensors").is_string()) {
      SSL_ASSIGN_OR_RETURN(table, ReadTensors(absl::StrCat(directory, "/", entry["tensors"].get<std::string>())));
    }
    SSL_ASSIGN_OR_RETURN(const Json json, ReadJson(absl::StrCat(directory, "/", entry.at("file").get<std::string>())));
    std::vector<Case> cases;
    for (const Json& item : json.at("cases")) {
      SSL_ASSIGN_OR_RETURN(Case golden_case, ReadCase(item, table));
      cases.push_back(std::move(golden_case));
    }
    if (cases.size() != entry.at("cases").get<size_t>()) {
      return absl::DataLossError(absl::StrCat(directory, ": ", category, " has ", cases.size(),
                                              " cases, index.json says ", entry["cases"].dump()));
    }
    return cases;
  }
  return absl::NotFoundError(absl::StrCat(directory, "/index.json: no category '", category, "'"));
}

void RunCategory(absl::string_view category, const std::map<std::string, CaseRunner>& runners,
                 const std::set<std::string>& out_of_scope) {
  const absl::StatusOr<std::vector<Case>> cases = ReadCategory(category);
  ASSERT_TRUE(cases.ok()) << cases.status();
  int64_t run = 0;
  for (const Case& golden_case : *cases) {
    SCOPED_TRACE(absl::StrCat(golden_case.name, " (", golden_case.op, ")"));
    const auto runner = runners.find(golden_case.op);
    if (runner != runners.end()) {
      runner->second(golden_case);
      ++run;
    } else if (out_of_scope.count(golden_case.op) == 0) {
      ADD_FAILURE() << "op '" << golden_case.op << "' is not known to this test";
    }
  }
  std::cout << "golden " << category << ": " << run << " of " << cases->size() << " cases run" << std::endl;
  EXPECT_GT(run, 0);
}

double Float32Tolerance(const Output& expected) {
  if (expected.kind == Output::Kind::kScalar) {
    return std::max({1e-5 * std::abs(expected.f64), 16 * std::abs(expected.f32 - expected.f64), 1e-7});
  }
  return std::max({1e-5 * expected.absmax, 16 * expected.f32_dev, 1e-7});
}

::testing::AssertionResult Matches(const at::Tensor& actual, const Output& expected) {
  if (expected.kind == Output::Kind::kScalar) return Matches(actual.item<double>(), expected);
  if (expected.kind != Output::Kind::kTensor) return ::testing::AssertionFailure() << "the output is no tensor";
  if (!actual.defined()) return ::testing::AssertionFailure() << "the tensor is undefined";
  if (actual.sizes() != expected.tensor.sizes()) {
    return ::testing::AssertionFailure() << "the shape is [" << absl::StrJoin(actual.sizes(), ", ") << "], expected ["
                                         << absl::StrJoin(expected.tensor.sizes(), ", ") << "]";
  }
  if (actual.numel() == 0) return ::testing::AssertionSuccess();
  const at::Tensor difference = actual.detach().to(at::kDouble) - expected.tensor.to(at::kDouble);
  const double error = at::max(at::abs(difference)).item<double>();
  const double tolerance = Float32Tolerance(expected);
  if (error <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the largest error is " << error << ", the tolerance " << tolerance;
}

::testing::AssertionResult Matches(double actual, const Output& expected) {
  if (expected.kind != Output::Kind::kScalar) return ::testing::AssertionFailure() << "the output is no scalar";
  const double tolerance = Float32Tolerance(expected);
  if (std::abs(actual - expected.f64) <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the value is " << actual << ", expected " << expected.f64 << " within "
                                       << tolerance;
}

::testing::AssertionResult MatchesExactly(const at::Tensor& actual, const Output& expected) {
  if (expected.kind != Output::Kind::kTensor) return ::testing::AssertionFailure() << "the output is no tensor";
  const at::Tensor wanted = expected.tensor.to(actual.scalar_type());
  if (actual.sizes() == wanted.sizes() && at::equal(actual.detach(), wanted)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the values differ from the expected ones";
}

std::vector<double> ListOf(const Output& expected) {
  std::vector<double> values;
  for (const ConfigNode& item : expected.value.items()) values.push_back(item.AsDouble().value_or(std::nan("")));
  return values;
}

}  // namespace ssl::golden
