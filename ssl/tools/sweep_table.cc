// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_table.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/engines/results_file.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

constexpr size_t kWidth = 120;
constexpr size_t kIndent = 20;       // where the choices of a run begin
constexpr size_t kMostResults = 12;  // results.json has all

// "knn.trained=0.8796": the numbers of the run's results.
void AppendNumbers(const ConfigNode& node, const std::string& path, std::vector<std::string>* numbers) {
  for (const auto& [key, value] : node.entries()) AppendNumbers(value, JoinPath(path, key), numbers);
  const absl::StatusOr<double> number =
      node.is_scalar() ? node.AsDouble() : absl::StatusOr<double>(absl::UnknownError(""));
  if (number.ok()) numbers->push_back(absl::StrFormat("%s=%.6g", path, *number));
}

// "loss=2.88" of the last line of metrics.json that has one; "" for none.
std::string LastLoss(const std::string& directory, FileSystem& file_system) {
  const std::string path = absl::StrCat(directory, "/metrics.json");
  const absl::StatusOr<std::string> text = file_system.Read(path);
  if (!text.ok()) return "";
  const std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    // JSON is a subset of YAML.
    const absl::StatusOr<ConfigNode> phase = ParseYaml(*line, path, nullptr);
    const ConfigNode* mean = phase.ok() ? phase->FindPath("train_loss.mean") : nullptr;
    if (mean != nullptr && mean->AsDouble().ok()) return absl::StrFormat("loss=%.6g", *mean->AsDouble());
  }
  return "";
}

std::vector<std::string> FiguresOf(const std::string& directory, FileSystem& file_system) {
  std::vector<std::string> numbers;
  if (const std::string loss = LastLoss(directory, file_system); !loss.empty()) numbers.push_back(loss);
  const absl::StatusOr<ConfigNode> results = ReadResults(absl::StrCat(directory, "/results.json"), file_system);
  if (results.ok()) AppendNumbers(*results, "", &numbers);
  if (numbers.size() > kMostResults) {
    const size_t more = numbers.size() - kMostResults;
    numbers.resize(kMostResults);
    numbers.push_back(absl::StrCat("(", more, " more in results.json)"));
  }
  return numbers;
}

// A word that is wider than a line has a line of its own.
class WrappedLine {
 public:
  explicit WrappedLine(std::string text) : text_(std::move(text)), column_(text_.size()) {}

  void Add(absl::string_view space, absl::string_view word) {
    if (column_ + space.size() + word.size() > kWidth && column_ > kIndent) {
      absl::StrAppend(&text_, "\n", std::string(kIndent, ' '));
      column_ = kIndent;
      space = "";
    }
    absl::StrAppend(&text_, space, word);
    column_ += space.size() + word.size();
  }
  std::string Take() { return absl::StrCat(text_, "\n"); }

 private:
  std::string text_;
  size_t column_;
};

}  // namespace

std::string SweepRow(size_t number, const SweepRun& run, const SweepOutcome& outcome, FileSystem& file_system) {
  const char* state = outcome.exit_code == kExitFinished  ? "finished"
                      : outcome.exit_code == kExitStopped ? "stopped"
                                                          : "failed";
  WrappedLine row(absl::StrFormat("sweep_%-3d %-9s", number, state));
  for (const std::string& choice : run.choices) row.Add(" ", choice);
  if (!outcome.error.empty()) row.Add("  ", outcome.error);
  if (outcome.exit_code != kExitFinished) return row.Take();
  absl::string_view space = "  ";
  for (const std::string& figure : FiguresOf(outcome.directory, file_system)) {
    row.Add(space, figure);
    space = " ";
  }
  return row.Take();
}

}  // namespace ssl
