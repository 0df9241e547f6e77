// SPDX-License-Identifier: Apache-2.0
//
// Reference numbers computed with the original Python code, and the rules for comparing with them.
//
// The directory is SSL_GOLDEN_DIR when that is set (a fresh set of the same schema), else the copy in this package.
// A test walks every case of one category:
//
//   TEST(SinkhornGolden, AssignmentsMatch) {
//     ssl::golden::RunCategory("sinkhorn", {{"sinkhorn", &CheckSinkhorn}});
//   }
//
// Inputs are float32 tensors that the caller may keep; every call of ReadCategory reads the files anew.
#ifndef SSL_TESTS_GOLDEN_GOLDEN_H_
#define SSL_TESTS_GOLDEN_GOLDEN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"

namespace ssl::golden {

// One expected value. Which members are set depends on the kind.
struct Output {
  enum class Kind { kScalar, kTensor, kInt, kList, kJson };

  Kind kind = Kind::kJson;
  // kScalar: the value of a float64 and of a float32 run.
  double f64 = 0.0;
  double f32 = 0.0;
  // kTensor: the float64 run's value; the largest difference from a float32 run; the largest magnitude.
  at::Tensor tensor;
  double f32_dev = 0.0;
  double absmax = 0.0;
  // kInt.
  int64_t integer = 0;
  // kList, kJson: the JSON value.
  ConfigNode value;
};

// One call on the object under test.
struct Step {
  std::map<std::string, at::Tensor> inputs;
  ConfigNode literals;  // map: the inputs that are not tensors
  std::map<std::string, Output> outputs;
};

// Consecutive calls on one object: state carries over from step to step.
struct Case {
  std::string name;
  std::string op;
  ConfigNode params;                         // map
  std::map<std::string, at::Tensor> inputs;  // initial state
  ConfigNode literals;                       // map
  std::vector<Step> steps;

  // Parameters as numbers; `fallback` when the case has no such parameter.
  int64_t Int(absl::string_view param, int64_t fallback = 0) const;
  double Double(absl::string_view param, double fallback = 0.0) const;
  std::vector<int64_t> Ints(absl::string_view param) const;
};

// All cases of `category`, in order. An error names the file that is missing or malformed.
absl::StatusOr<std::vector<Case>> ReadCategory(absl::string_view category);

using CaseRunner = std::function<void(const Case&)>;

// Runs every case of `category` with the runner of its op, inside a SCOPED_TRACE with the case's name, and prints
// how many ran. An op without a runner that is not in `out_of_scope` is a test failure, and so is a category of
// which no case ran.
void RunCategory(absl::string_view category, const std::map<std::string, CaseRunner>& runners,
                 const std::set<std::string>& out_of_scope = {});

// The tolerance of a float32 implementation: max(1e-5 * magnitude, 16 * (difference of the float32 run), 1e-7).
double Float32Tolerance(const Output& expected);

// actual: any floating dtype; the shape must be the expected one.
::testing::AssertionResult Matches(const at::Tensor& actual, const Output& expected);
::testing::AssertionResult Matches(double actual, const Output& expected);

// Every element equal; integer and boolean tensors, and one-hot assignments.
::testing::AssertionResult MatchesExactly(const at::Tensor& actual, const Output& expected);

// The numbers of a kList output.
std::vector<double> ListOf(const Output& expected);

}  // namespace ssl::golden

#endif  // SSL_TESTS_GOLDEN_GOLDEN_H_
