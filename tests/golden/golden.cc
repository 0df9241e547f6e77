// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "ssl/base/status_macros.h"
#include "ssl/io/safetensors.h"

namespace ssl::golden {
namespace {

using Json = nlohmann::ordered_json;
using TensorTable = std::map<std::string, at::Tensor>;

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

absl::StatusOr<at::Tensor> FindTensor(const Json& name, const TensorTable& table) {
  const auto found = table.find(name.get<std::string>());
  if (found == table.end()) return absl::NotFoundError(absl::StrCat("tensor ", name.dump(), " is missing"));
  return found->second;
}

// Splits "inputs" into the strings, which name tensors, and the rest.
absl::Status ReadInputs(const Json& json, const TensorTable& table, TensorTable* tensors, ConfigNode* literals) {
  *literals = ConfigNode::Map();
  for (const auto& [name, value] : json.items()) {
    if (value.is_string()) {
      SSL_ASSIGN_OR_RETURN((*tensors)[name], FindTensor(value, table));
    } else {
      literals->Set(name, ToNode(value));
    }
  }
  return absl::OkStatus();
}

// JSON has no NaN and no infinities: words stand for them.
double ToNumber(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::nan("");
}

absl::StatusOr<Output> ReadOutput(const Json& json, const TensorTable& table) {
  Output output;
  if (json.contains("scalar")) {
    output.kind = Output::Kind::kScalar;
    const Json& scalar = json.at("scalar");
    output.f64 = ToNumber(scalar.at("f64"));
    output.f32 = scalar.contains("f32") ? ToNumber(scalar.at("f32")) : output.f64;
  } else if (json.contains("tensor")) {
    output.kind = Output::Kind::kTensor;
    SSL_ASSIGN_OR_RETURN(output.tensor, FindTensor(json.at("tensor"), table));
    output.f32_dev = json.value("f32_dev", 0.0);
    output.absmax = json.value("absmax", 0.0);
  } else if (json.contains("int")) {
    output.kind = Output::Kind::kInt;
    output.integer = json.at("int").get<int64_t>();
  } else if (json.contains("list")) {
    output.kind = Output::Kind::kList;
    output.value = ToNode(json.at("list"));
  } else if (json.contains("json")) {
    output.value = ToNode(json.at("json"));
  } else {
    return absl::DataLossError(absl::StrCat("output ", json.dump(), " is of an unknown kind"));
  }
  return output;
}

absl::StatusOr<Step> ReadStep(const Json& json, const TensorTable& table) {
  Step step;
  SSL_RETURN_IF_ERROR(ReadInputs(json.value("inputs", Json::object()), table, &step.inputs, &step.literals));
  for (const auto& [name, value] : json.at("outputs").items()) {
    absl::StatusOr<Output> output = ReadOutput(value, table);
    if (!output.ok()) {
      return absl::Status(output.status().code(), absl::StrCat("output '", name, "': ", output.status().message()));
    }
    step.outputs.emplace(name, *std::move(output));
  }
  return step;
}

absl::StatusOr<Case> ReadCase(const Json& json, const TensorTable& table) {
  Case result;
  result.name = json.at("name").get<std::string>();
  result.op = json.at("op").get<std::string>();
  result.params = ToNode(json.at("params"));
  SSL_RETURN_IF_ERROR(ReadInputs(json.value("inputs", Json::object()), table, &result.inputs, &result.literals));
  for (const Json& entry : json.at("steps")) {
    SSL_ASSIGN_OR_RETURN(Step step, ReadStep(entry, table));
    result.steps.push_back(std::move(step));
  }
  if (result.steps.empty()) return absl::DataLossError("the case has no steps");
  return result;
}

absl::StatusOr<TensorTable> ReadTensors(const std::string& path) {
  TensorTable table;
  SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(path));
  for (NamedTensor& entry : content.tensors) table.emplace(std::move(entry.name), std::move(entry.tensor));
  return table;
}

absl::StatusOr<std::vector<Case>> ReadCases(const Json& json, const TensorTable& table) {
  std::vector<Case> cases;
  for (const Json& item : json.at("cases")) {
    absl::StatusOr<Case> golden_case = ReadCase(item, table);
    if (!golden_case.ok()) {
      return absl::Status(golden_case.status().code(),
                          absl::StrCat(item.value("name", "?"), ": ", golden_case.status().message()));
    }
    cases.push_back(*std::move(golden_case));
  }
  return cases;
}

// One row of index.json.
absl::StatusOr<std::vector<Case>> ReadEntry(const Json& entry, const std::string& directory) {
  TensorTable table;
  if (entry.contains("tensors") && entry.at("tensors").is_string()) {
    SSL_ASSIGN_OR_RETURN(table, ReadTensors(absl::StrCat(directory, "/", entry.at("tensors").get<std::string>())));
  }
  const std::string path = absl::StrCat(directory, "/", entry.at("file").get<std::string>());
  SSL_ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  SSL_ASSIGN_OR_RETURN(std::vector<Case> cases, ReadCases(json, table));
  if (cases.size() == entry.at("cases").get<size_t>()) return cases;
  return absl::DataLossError(
      absl::StrCat(path, ": ", cases.size(), " cases, index.json says ", entry.at("cases").dump()));
}

absl::StatusOr<std::vector<Case>> FindCategory(absl::string_view category, const std::string& directory) {
  SSL_ASSIGN_OR_RETURN(const Json index, ReadJson(absl::StrCat(directory, "/index.json")));
  for (const Json& entry : index.at("categories")) {
    if (entry.at("category").get<std::string>() == category) return ReadEntry(entry, directory);
  }
  return absl::NotFoundError(absl::StrCat(directory, "/index.json: no category '", category, "'"));
}

// Ends the case: what follows would work with values that are not there. RunCase makes a test failure of it.
[[noreturn]] void Malformed(const std::string& what) { throw std::runtime_error(what); }

template <typename Value>
const Value& FindOrEnd(const std::map<std::string, Value>& values, absl::string_view name, absl::string_view what) {
  const auto found = values.find(std::string(name));
  if (found == values.end()) Malformed(absl::StrCat("the case has no ", what, " '", name, "'"));
  return found->second;
}

// `read` of the number.
template <typename Value>
Value NumberOf(const ConfigNode& node, absl::string_view what, const absl::StatusOr<Value>& read) {
  if (!read.ok()) Malformed(absl::StrCat(what, " is ", node.Describe(), ", expected a number"));
  return *read;
}

template <typename Value>
std::vector<Value> OfLength(std::vector<Value> values, absl::string_view what, size_t count) {
  if (count > 0 && values.size() != count) {
    Malformed(absl::StrCat(what, " has ", values.size(), " items, expected ", count));
  }
  return values;
}

absl::StatusOr<int64_t> ReadInt(const ConfigNode& node) {
  if (const absl::StatusOr<bool> truth = node.AsBool(); truth.ok()) return *truth ? 1 : 0;
  const absl::StatusOr<int64_t> integer = node.AsInt();
  const absl::StatusOr<double> number = node.AsDouble();  // 128.0 is an integer as well
  if (!integer.ok() && number.ok() && *number == std::floor(*number) && std::abs(*number) < 1e15) {
    return static_cast<int64_t>(*number);
  }
  return integer;
}

// How a walk over cases went.
struct Tally {
  int64_t run = 0;
  std::vector<std::string> beyond;  // "name (why)"
};

void RunCase(const Case& golden_case, const CaseRunner& runner, const CaseLimit& limit, Tally* tally) {
  try {
    const std::string why = limit == nullptr ? "" : limit(golden_case);
    if (!why.empty()) {
      tally->beyond.push_back(absl::StrCat(golden_case.name, " (", why, ")"));
      return;
    }
    ++tally->run;
    runner(golden_case);
  } catch (const std::exception& error) {  // Malformed, or of LibTorch or the standard library
    const std::vector<std::string> lines = absl::StrSplit(error.what(), absl::MaxSplits('\n', 1));
    ADD_FAILURE() << "the case ended early: " << lines[0];
  }
}

}  // namespace

const at::Tensor& Step::Input(absl::string_view name) const { return FindOrEnd(inputs, name, "input"); }

const Output& Step::Expected(absl::string_view name) const { return FindOrEnd(outputs, name, "output"); }

const at::Tensor& Case::Input(absl::string_view name) const { return FindOrEnd(inputs, name, "input"); }

const ConfigNode& Case::Param(absl::string_view param) const {
  const ConfigNode* found = params.Find(param);
  if (found == nullptr) Malformed(absl::StrCat("the case has no parameter '", param, "'"));
  return *found;
}

int64_t Case::Int(absl::string_view param, int64_t fallback) const {
  const ConfigNode* node = params.Find(param);
  return node == nullptr ? fallback : NumberOf(*node, param, ReadInt(*node));
}

int64_t Case::IntIn(absl::string_view param, int64_t lo, int64_t hi) const {
  const int64_t number = NumberOf(Param(param), param, ReadInt(Param(param)));
  if (number < lo || number > hi) Malformed(absl::StrCat(param, " is ", number, ", expected ", lo, " to ", hi));
  return number;
}

double Case::DoubleIn(absl::string_view param, double lo, double hi) const {
  const double number = NumberOf(Param(param), param, Param(param).AsDouble());
  if (number < lo || number > hi) Malformed(absl::StrCat(param, " is ", number, ", expected ", lo, " to ", hi));
  return number;
}

double Case::Double(absl::string_view param, double fallback) const {
  const ConfigNode* node = params.Find(param);
  return node == nullptr ? fallback : NumberOf(*node, param, node->AsDouble());
}

std::vector<int64_t> Case::Ints(absl::string_view param, size_t count) const {
  return OfLength(Has(param) ? ToInts(Param(param)) : std::vector<int64_t>(), param, count);
}

std::vector<double> Case::Doubles(absl::string_view param, size_t count) const {
  return OfLength(Has(param) ? ToDoubles(Param(param)) : std::vector<double>(), param, count);
}

std::string Directory(absl::string_view own) {
  const char* directory = std::getenv("SSL_GOLDEN_DIR");
  if (directory != nullptr && *directory != '\0') return directory;
  const char* runfiles = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  return absl::StrCat(runfiles != nullptr ? runfiles : ".", "/", workspace != nullptr ? workspace : ".", "/", own);
}

absl::StatusOr<std::vector<Case>> ReadCategory(absl::string_view category, const std::string& directory) {
  try {
    return FindCategory(category, directory);
  } catch (const Json::exception& error) {  // a key that is missing, a value of another type
    return absl::DataLossError(absl::StrCat(directory, ", ", category, ": ", error.what()));
  }
}

void RunCategory(absl::string_view category, const std::map<std::string, CaseRunner>& runners,
                 const std::set<std::string>& out_of_scope, const CaseLimit& limit) {
  const absl::StatusOr<std::vector<Case>> cases = ReadCategory(category);
  ASSERT_TRUE(cases.ok()) << cases.status();
  RunCases(category, *cases, runners, out_of_scope, limit);
}

void RunCases(absl::string_view title, const std::vector<Case>& cases, const std::map<std::string, CaseRunner>& runners,
              const std::set<std::string>& out_of_scope, const CaseLimit& limit) {
  Tally tally;
  for (const Case& golden_case : cases) {
    SCOPED_TRACE(absl::StrCat(golden_case.name, " (", golden_case.op, ")"));
    const auto runner = runners.find(golden_case.op);
    if (runner != runners.end()) {
      RunCase(golden_case, runner->second, limit, &tally);
    } else if (out_of_scope.count(golden_case.op) == 0) {
      ADD_FAILURE() << "op '" << golden_case.op << "' is not known to this test";
    }
  }
  std::cout << "golden " << title << ": " << tally.run << " of " << cases.size() << " cases run" << std::endl;
  if (!tally.beyond.empty()) {
    std::cout << "golden " << title << ": not expressible: " << tally.beyond.size() << " of " << cases.size() << ": "
              << absl::StrJoin(tally.beyond, ", ") << std::endl;
  }
  EXPECT_GT(tally.run, 0) << "no case of " << title << " ran";
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
  const at::Tensor value = actual.detach().to(at::kDouble);
  const at::Tensor wanted = expected.tensor.to(at::kDouble);
  const double tolerance = Float32Tolerance(expected);
  if (at::isclose(value, wanted, /*rtol=*/0.0, tolerance, /*equal_nan=*/true).all().item<bool>()) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "the largest error is " << at::max(at::abs(value - wanted)).item<double>()
                                       << ", the tolerance " << tolerance;
}

::testing::AssertionResult Matches(double actual, const Output& expected) {
  if (expected.kind != Output::Kind::kScalar) return ::testing::AssertionFailure() << "the output is no scalar";
  if (std::isnan(expected.f64) && std::isnan(actual)) return ::testing::AssertionSuccess();
  if (std::isinf(expected.f64) && actual == expected.f64) return ::testing::AssertionSuccess();
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
  if (expected.kind != Output::Kind::kList) Malformed("an output is no list");
  return ToDoubles(expected.value);
}

std::vector<double> ToDoubles(const ConfigNode& list) {
  if (!list.is_list()) Malformed(absl::StrCat("found ", list.Describe(), ", expected a list"));
  std::vector<double> values;
  for (const ConfigNode& item : list.items()) values.push_back(NumberOf(item, "an item", item.AsDouble()));
  return values;
}

std::vector<int64_t> ToInts(const ConfigNode& list) {
  if (!list.is_list()) Malformed(absl::StrCat("found ", list.Describe(), ", expected a list"));
  std::vector<int64_t> values;
  for (const ConfigNode& item : list.items()) values.push_back(NumberOf(item, "an item", ReadInt(item)));
  return values;
}

}  // namespace ssl::golden
