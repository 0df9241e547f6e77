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
// A test takes sizes, names and counts from the case, never from the set it was written with: sets differ. What a case
// lacks is a test failure with the name of what is missing, not a crash: the accessors below throw then, and RunCases
// catches that, so that one case ends and the next one runs.
//
// Inputs are float32 tensors that the caller may keep; every call of ReadCategory reads the files anew.
#ifndef SSL_TESTS_GOLDEN_GOLDEN_H_
#define SSL_TESTS_GOLDEN_GOLDEN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
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

  // The input and the expected output of that name. One that is missing ends the case with a failure.
  const at::Tensor& Input(absl::string_view name) const;
  const Output& Expected(absl::string_view name) const;
};

// Consecutive calls on one object: state carries over from step to step.
struct Case {
  std::string name;
  std::string op;
  ConfigNode params;                         // map
  std::map<std::string, at::Tensor> inputs;  // initial state
  ConfigNode literals;                       // map
  std::vector<Step> steps;

  // Parameters as numbers; `fallback` when the case has no such parameter. One of another type ends the case with a
  // failure. Truth values are the numbers 0 and 1.
  int64_t Int(absl::string_view param, int64_t fallback = 0) const;
  double Double(absl::string_view param, double fallback = 0.0) const;
  bool Flag(absl::string_view param, bool fallback = false) const { return Int(param, fallback ? 1 : 0) != 0; }
  // One between two bounds, or the case ends with a failure: for functions that trust their caller.
  int64_t IntIn(absl::string_view param, int64_t lo, int64_t hi) const;
  double DoubleIn(absl::string_view param, double lo, double hi) const;
  // A size or a number of things: 1 to a million.
  int64_t Count(absl::string_view param) const { return IntIn(param, 1, 1000 * 1000); }
  // A list, empty without the parameter; with a `count`, another number of items ends the case with a failure.
  std::vector<int64_t> Ints(absl::string_view param, size_t count = 0) const;
  std::vector<double> Doubles(absl::string_view param, size_t count = 0) const;

  bool Has(absl::string_view param) const { return params.Find(param) != nullptr; }
  // A parameter as it is, and as text. A missing one ends the case with a failure.
  const ConfigNode& Param(absl::string_view param) const;
  const std::string& Text(absl::string_view param) const { return Param(param).text(); }
  // As Step::Input, of the initial state.
  const at::Tensor& Input(absl::string_view name) const;
};

// Where the numbers are: SSL_GOLDEN_DIR, else `own`, a folder of this workspace.
std::string Directory(absl::string_view own = "tests/golden/data");

// All cases of `category`, in order; each has a step. An error names the file that is missing or malformed.
absl::StatusOr<std::vector<Case>> ReadCategory(absl::string_view category, const std::string& directory = Directory());

using CaseRunner = std::function<void(const Case&)>;

// Why a test cannot express a case that the schema allows: "a trunk of other widths"; "" for one that it can run.
using CaseLimit = std::function<std::string(const Case&)>;

// Runs every case of `category` with the runner of its op, inside a SCOPED_TRACE with the case's name, and prints
// how many ran, and which could not because of `limit`. An op without a runner that is not in `out_of_scope` is a test
// failure, and so is a category of which no case ran.
void RunCategory(absl::string_view category, const std::map<std::string, CaseRunner>& runners,
                 const std::set<std::string>& out_of_scope = {}, const CaseLimit& limit = nullptr);

// The same for cases that were read already; `title` stands for the category in what is printed.
void RunCases(absl::string_view title, const std::vector<Case>& cases, const std::map<std::string, CaseRunner>& runners,
              const std::set<std::string>& out_of_scope = {}, const CaseLimit& limit = nullptr);

// The tolerance of a float32 implementation: max(1e-5 * magnitude, 16 * (difference of the float32 run), 1e-7).
double Float32Tolerance(const Output& expected);

// actual: any floating dtype; the shape must be the expected one. Where NaN or an infinity is expected, it must stand.
::testing::AssertionResult Matches(const at::Tensor& actual, const Output& expected);
::testing::AssertionResult Matches(double actual, const Output& expected);

// Every element equal; integer and boolean tensors, and one-hot assignments.
::testing::AssertionResult MatchesExactly(const at::Tensor& actual, const Output& expected);

// The numbers of a kList output, and of any list. Something else in it ends the case with a failure.
std::vector<double> ListOf(const Output& expected);
std::vector<double> ToDoubles(const ConfigNode& list);

// The same as integers.
std::vector<int64_t> ToInts(const ConfigNode& list);

}  // namespace ssl::golden

#endif  // SSL_TESTS_GOLDEN_GOLDEN_H_
