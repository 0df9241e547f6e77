// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of processor time to compose a file of 200 lines over 700 known keys and to check all its values: what a
// run spends on its configuration before anything else.
//
//   bazel run //ssl/config:bench_compose
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/compose.h"
#include "ssl/config/fields.h"
#include "ssl/config/option_catalog.h"

namespace ssl {
namespace {

constexpr int kSections = 20;
constexpr int kFieldsOfSection = 20;
constexpr int kUnreadKeys = 300;
constexpr int kSetFieldsOfSection = 8;
constexpr int kRounds = 20;

// One of the options structs of a program.
struct BenchOptions : public Options {
  std::vector<double> values = std::vector<double>(kFieldsOfSection, 0.5);

  void VisitFields(FieldVisitor& visitor) override {
    for (int i = 0; i < kFieldsOfSection; ++i) {
      visitor.Field(absl::StrCat("OPTION_NAME_", i), &values[i], Doc("What it does.").Between(0, 1));
    }
  }
};

std::string SectionPath(int i) { return absl::StrCat("PART_", i % 5, ".SECTION_", i); }

absl::StatusOr<OptionCatalog> MakeCatalog() {
  OptionCatalog catalog;
  for (int i = 0; i < kSections; ++i) {
    SSL_RETURN_IF_ERROR(catalog.Add(SectionPath(i), [] { return std::make_unique<BenchOptions>(); }));
  }
  std::vector<CompatibilityKey> keys;
  for (int i = 0; i < kUnreadKeys; ++i) {
    keys.push_back({absl::StrCat(SectionPath(i % kSections), ".UNREAD_", i), "[1, 2]",
                    CompatibilityKey::Support::kNotYet, "not here"});
  }
  SSL_RETURN_IF_ERROR(catalog.AddKeys(std::move(keys)));
  return catalog;
}

// A list of transforms and heads as in VISSL's files, and eight values in each section.
std::string MakeFile() {
  std::string text = "# @package _global_\nconfig:\n";
  for (int part = 0; part < 5; ++part) {
    absl::StrAppend(&text, "  PART_", part, ":\n");
    for (int i = part; i < kSections; i += 5) {
      absl::StrAppend(&text, "    SECTION_", i, ":\n");
      for (int j = 0; j < kSetFieldsOfSection; ++j) absl::StrAppend(&text, "      OPTION_NAME_", 2 * j, ": 2.5e-1\n");
      absl::StrAppend(&text, "      UNREAD_", i + kSections, ": [1, 2,]\n");
    }
  }
  return text;
}

double CpuMilliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

absl::Status RunBench(const std::string& file) {
  std::vector<double> register_ms;
  std::vector<double> compose_ms;
  std::vector<double> check_ms;
  for (int round = 0; round < kRounds; ++round) {
    const double start = CpuMilliseconds();
    SSL_ASSIGN_OR_RETURN(const OptionCatalog catalog, MakeCatalog());
    const double registered = CpuMilliseconds();
    ComposeRequest request;
    request.defaults.Set("config", catalog.Defaults());
    request.tokens = {absl::StrCat("config=", file), "config.PART_0.SECTION_0.OPTION_NAME_1=0.125"};
    SSL_ASSIGN_OR_RETURN(const ComposedConfig composed, Compose(request));
    const double finished = CpuMilliseconds();
    if (!composed.warnings.empty()) return absl::InternalError(composed.warnings[0]);
    const ConfigNode& config = composed.root.Section("config");
    SSL_RETURN_IF_ERROR(catalog.Check(config));
    if (!catalog.Unsupported(config).empty()) return absl::InternalError("a default counts as another value");
    register_ms.push_back(registered - start);
    compose_ms.push_back(finished - registered);
    check_ms.push_back(CpuMilliseconds() - finished);
  }
  for (std::vector<double>* times : {&register_ms, &compose_ms, &check_ms}) std::sort(times->begin(), times->end());
  std::printf("register %.2f ms, compose %.2f ms, check %.2f ms (processor time, median of %d)\n",
              register_ms[kRounds / 2], compose_ms[kRounds / 2], check_ms[kRounds / 2], kRounds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main() {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "bench_compose.yaml";
  std::ofstream(file) << ssl::MakeFile();
  const absl::Status status = ssl::RunBench(file.string());
  std::filesystem::remove(file);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
