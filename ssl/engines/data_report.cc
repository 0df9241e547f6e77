// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/data_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/utf8.h"
#include "ssl/data/inspection/difference_hash.h"
#include "ssl/data/read_fault.h"

namespace ssl {
namespace {

using Positions = std::vector<int64_t>;
using Groups = std::vector<Positions>;

constexpr size_t kShown = 3;         // names of a list in the table
constexpr size_t kShownClasses = 5;  // the smallest ones, beside the largest

bool IsReadable(const SurveyedImage& image) { return image.fault == ReadFault::kNone; }

Groups GroupEqualContent(const std::vector<SurveyedImage>& images) {
  std::map<ContentKey, Positions> by_content;
  for (size_t i = 0; i < images.size(); ++i) {
    if (IsReadable(images[i])) by_content[images[i].content].push_back(static_cast<int64_t>(i));
  }
  Groups groups;
  for (auto& [content, positions] : by_content) {
    if (positions.size() > 1) groups.push_back(std::move(positions));
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

// Of each group all but the first.
std::set<int64_t> Repetitions(const Groups& groups) {
  std::set<int64_t> repetitions;
  for (const Positions& group : groups) repetitions.insert(group.begin() + 1, group.end());
  return repetitions;
}

absl::StatusOr<Groups> GroupNearDuplicates(const std::vector<SurveyedImage>& images, const Groups& exact,
                                           int64_t distance, const std::function<void(int64_t)>& on_progress,
                                           const StopToken* stop) {
  const std::set<int64_t> repetitions = Repetitions(exact);
  Positions positions;
  std::vector<DifferenceHash> hashes;
  for (int64_t i = 0; i < static_cast<int64_t>(images.size()); ++i) {
    if (!images[i].difference_hash.has_value() || repetitions.count(i) > 0) continue;
    positions.push_back(i);
    hashes.push_back(*images[i].difference_hash);
  }
  const auto report = [&](int64_t done) {  // of the hashes, which are fewer than the images
    const int64_t count = static_cast<int64_t>(hashes.size());
    if (on_progress && count > 0) on_progress(done * static_cast<int64_t>(images.size()) / count);
  };
  SSL_ASSIGN_OR_RETURN(Groups groups, GroupLookalikes(hashes, static_cast<int>(distance), report, stop));
  for (Positions& group : groups) {
    for (int64_t& position : group) position = positions[position];
  }
  return groups;
}

std::map<int64_t, int64_t> CountClasses(const DataDescription& description) {
  std::map<int64_t, int64_t> sizes;
  if (description.labels.empty()) return sizes;
  for (size_t i = 0; i < description.class_names.size(); ++i) sizes[static_cast<int64_t>(i)] = 0;
  for (const int64_t label : description.labels) {
    if (label >= 0) ++sizes[label];
  }
  return sizes;
}

void AddMoments(const std::vector<SurveyedImage>& images, DataReport* report) {
  int channels = 0;
  for (const SurveyedImage& image : images) channels = std::max(channels, image.channels);
  std::vector<double> mean(channels);
  std::vector<double> mean_square(channels);
  int64_t count = 0;
  for (const SurveyedImage& image : images) {
    if (!IsReadable(image)) continue;
    ++count;
    for (int channel = 0; channel < channels; ++channel) {
      const int own = std::min(channel, image.channels - 1);  // a grey image is repeated for three channels
      mean[channel] += image.mean[own];
      mean_square[channel] += image.mean_square[own];
    }
  }
  for (int channel = 0; channel < channels; ++channel) {
    const double center = mean[channel] / count;
    report->mean.push_back(center);
    report->std.push_back(std::sqrt(std::max(0.0, mean_square[channel] / count - center * center)));
  }
}

int64_t Median(Positions values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void AddSizes(const std::vector<SurveyedImage>& images, const DataReportLimits& limits, DataReport* report) {
  Positions shorter;
  Positions longer;
  for (int64_t i = 0; i < static_cast<int64_t>(images.size()); ++i) {
    const SurveyedImage& image = images[i];
    report->bytes += image.content.bytes;
    if (!IsReadable(image)) {
      report->broken[static_cast<int>(image.fault)].push_back(i);
      continue;
    }
    shorter.push_back(std::min(image.height, image.width));
    longer.push_back(std::max(image.height, image.width));
    if (shorter.back() < limits.tiny_side) report->tiny.push_back(i);
    if (image.has_16_bits) report->of_16_bits.push_back(i);
    if (shorter.back() * longer.back() > limits.huge_pixels) report->huge.push_back(i);
  }
  report->median_shorter_side = Median(std::move(shorter));
  report->median_longer_side = Median(std::move(longer));
}

// "[0.4812, 0.4573, 0.4078]"
std::string FormatList(const std::vector<double>& values) {
  const auto format = [](std::string* out, double value) { absl::StrAppendFormat(out, "%.4f", value); };
  return absl::StrCat("[", absl::StrJoin(values, ", ", format), "]");
}

std::vector<std::string> NamesOf(const Positions& positions, const DataDescription& description) {
  std::vector<std::string> names;
  for (const int64_t position : positions) names.push_back(description.names[position]);
  return names;
}

std::string FirstOf(const std::vector<std::string>& texts, absl::string_view separator) {
  const auto end = texts.begin() + static_cast<int64_t>(std::min(texts.size(), kShown));
  const std::string more = texts.size() > kShown ? absl::StrCat(" and ", texts.size() - kShown, " more") : "";
  return absl::StrCat(absl::StrJoin(texts.begin(), end, separator), more);
}

void AppendRow(absl::string_view what, int64_t count, absl::string_view remark, std::string* table) {
  absl::StrAppendFormat(table, "  %-22s %9d%s%s\n", what, count, remark.empty() ? "" : "   ", EscapeForMessage(remark));
}

void AppendBroken(const DataReport& report, const std::vector<SurveyedImage>& images, std::string* table) {
  AppendRow("broken", report.num_broken(), "", table);
  for (const ReadFault fault : kKindsOfBroken) {
    const Positions& positions = report.broken[static_cast<int>(fault)];
    if (positions.empty()) continue;
    std::vector<std::string> reasons;
    for (const int64_t position : positions) reasons.push_back(images[position].reason);
    AppendRow(absl::StrCat("  ", ReadFaultName(fault)), positions.size(), FirstOf(reasons, "; "), table);
  }
}

void AppendGroups(absl::string_view what, const Groups& groups, const DataDescription& description,
                  std::string* table) {
  const std::string example = groups.empty() ? "" : FirstOf(NamesOf(groups.front(), description), " = ");
  const std::string remark = groups.size() < 2 ? example : absl::StrCat("in ", groups.size(), " groups: ", example);
  AppendRow(what, NumRepetitions(groups), remark, table);
}

// Of images that use a part of the 16 bits alone, such as the 12 of a camera, few levels are left.
void AppendOf16Bits(const DataReport& report, const DataDescription& description,
                    const std::vector<SurveyedImage>& images, std::string* table) {
  if (report.of_16_bits.empty()) return;
  constexpr int kDark = 64;
  int brightest = 0;
  for (const int64_t position : report.of_16_bits) brightest = std::max(brightest, images[position].brightest);
  const std::string dark =
      brightest >= kDark ? ""
                         : absl::StrCat("; the brightest value is then ", brightest, " of 255, so that few levels are ",
                                        "left: stretch the files' values to 0 ... 65535");
  AppendRow("16-bit", static_cast<int64_t>(report.of_16_bits.size()), absl::StrCat(description.of_16_bits, dark),
            table);
}

// With quotes where a name begins or ends with a blank, which a table does not show.
std::string ClassText(absl::string_view name) {
  const bool is_plain = !name.empty() && name == absl::StripAsciiWhitespace(name);
  return is_plain ? std::string(name) : absl::StrCat("'", name, "'");
}

// A std of 0 would be refused.
void AppendNormalize(const DataReport& report, std::string* table) {
  if (report.mean.empty()) return;
  constexpr double kLeast = 5e-5;  // prints as 0.0001
  const std::string mean = FormatList(report.mean), std = FormatList(report.std);
  if (*std::min_element(report.std.begin(), report.std.end()) < kLeast) {
    absl::StrAppend(table, "  mean ", mean, ", std ", std,
                    ": where the std is 0, all pixels of a channel have the same ",
                    "value, and Normalize, which divides by it, is not proposed\n");
    return;
  }
  absl::StrAppend(table, "  for TRANSFORMS:\n        - name: Normalize\n          mean: ", mean,
                  "\n          std: ", std, "\n");
}

std::string ClassName(int64_t label, const DataDescription& description) {
  const bool has_name = label < static_cast<int64_t>(description.class_names.size());
  return has_name ? description.class_names[label] : absl::StrCat("class ", label);
}

void AppendClasses(const DataReport& report, const DataDescription& description, std::string* table) {
  if (report.class_sizes.empty()) return AppendRow("classes", 0, "no labels", table);
  std::vector<std::pair<int64_t, int64_t>> order(report.class_sizes.begin(), report.class_sizes.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto describe = [&](const std::pair<int64_t, int64_t>& label_and_size) {
    return absl::StrCat(ClassText(ClassName(label_and_size.first, description)), " ", label_and_size.second);
  };
  std::vector<std::string> smallest;
  for (size_t i = 0; i < std::min(order.size(), kShownClasses); ++i) smallest.push_back(describe(order[i]));
  if (order.size() > kShownClasses) {
    const bool leaves_out = order.size() > kShownClasses + 1;
    smallest.push_back(absl::StrCat(leaves_out ? "... " : "", describe(order.back())));
  }
  AppendRow("classes", static_cast<int64_t>(order.size()), absl::StrCat("images: ", absl::StrJoin(smallest, ", ")),
            table);
}

ConfigNode GroupsTree(const Groups& groups, const DataDescription& description) {
  ConfigNode tree = ConfigNode::List();
  for (const Positions& group : groups) tree.Append(ConfigNode::FromStrings(NamesOf(group, description)));
  return tree;
}

ConfigNode BrokenTree(const DataReport& report, const DataDescription& description,
                      const std::vector<SurveyedImage>& images) {
  ConfigNode tree = ConfigNode::Map();
  for (const ReadFault fault : kKindsOfBroken) {
    ConfigNode files = ConfigNode::List();
    for (const int64_t position : report.broken[static_cast<int>(fault)]) {
      ConfigNode file = ConfigNode::Map();
      file.Set("file", ConfigNode::FromString(description.names[position]));
      file.Set("reason", ConfigNode::FromString(images[position].reason));
      files.Append(std::move(file));
    }
    tree.Set(ReadFaultName(fault), std::move(files));
  }
  return tree;
}

}  // namespace

int64_t NumRepetitions(const std::vector<std::vector<int64_t>>& groups) {
  int64_t count = 0;
  for (const Positions& group : groups) count += static_cast<int64_t>(group.size()) - 1;
  return count;
}

int64_t DataReport::num_broken() const {
  return std::accumulate(broken.begin(), broken.end(), int64_t{0}, [](int64_t sum, const Positions& positions) {
    return sum + static_cast<int64_t>(positions.size());
  });
}

absl::StatusOr<DataReport> MakeDataReport(const std::vector<SurveyedImage>& images, const DataDescription& description,
                                          const DataReportLimits& limits,
                                          const std::function<void(int64_t done)>& on_progress, const StopToken* stop) {
  DataReport report;
  report.images = static_cast<int64_t>(images.size());
  report.broken.resize(kNumReadFaults);
  AddSizes(images, limits, &report);
  AddMoments(images, &report);
  report.exact_duplicates = GroupEqualContent(images);
  SSL_ASSIGN_OR_RETURN(report.near_duplicates, GroupNearDuplicates(images, report.exact_duplicates,
                                                                   limits.duplicate_distance, on_progress, stop));
  report.class_sizes = CountClasses(description);
  return report;
}

Positions SharedContent(const std::vector<SurveyedImage>& first, const std::vector<SurveyedImage>& second) {
  std::set<ContentKey> contents;
  for (const SurveyedImage& image : first) {
    if (IsReadable(image)) contents.insert(image.content);
  }
  Positions shared;
  for (int64_t i = 0; i < static_cast<int64_t>(second.size()); ++i) {
    if (IsReadable(second[i]) && contents.count(second[i].content) > 0) shared.push_back(i);
  }
  return shared;
}

std::string FormatDataReport(const DataReport& report, const DataDescription& description,
                             const std::vector<SurveyedImage>& images, const DataReportLimits& limits) {
  std::string table =
      absl::StrFormat("%s: %s, %d %s, %.1f MB, median size %d x %d (longer x shorter side)\n", description.split,
                      EscapeForMessage(description.source), report.images, report.images == 1 ? "image" : "images",
                      report.bytes / 1e6, report.median_longer_side, report.median_shorter_side);
  for (const std::string& what : description.passed_over) absl::StrAppend(&table, "  passed over: ", what, "\n");
  AppendBroken(report, images, &table);
  AppendRow(absl::StrCat("tiny (side < ", limits.tiny_side, ")"), static_cast<int64_t>(report.tiny.size()),
            FirstOf(NamesOf(report.tiny, description), ", "), &table);
  AppendRow(absl::StrFormat("huge (> %.3g MP)", limits.huge_pixels / 1e6), static_cast<int64_t>(report.huge.size()),
            FirstOf(NamesOf(report.huge, description), ", "), &table);
  AppendOf16Bits(report, description, images, &table);
  AppendGroups("exact duplicates", report.exact_duplicates, description, &table);
  AppendGroups("near duplicates", report.near_duplicates, description, &table);
  AppendClasses(report, description, &table);
  AppendNormalize(report, &table);
  return table;
}

ConfigNode DataReportTree(const DataReport& report, const DataDescription& description,
                          const std::vector<SurveyedImage>& images) {
  ConfigNode tree = ConfigNode::Map();
  tree.Set("source", ConfigNode::FromString(description.source));
  tree.Set("images", ConfigNode::FromInt(report.images));
  tree.Set("passed_over", ConfigNode::FromStrings(description.passed_over));
  tree.Set("bytes", ConfigNode::FromInt(report.bytes));
  tree.Set("median_longer_side", ConfigNode::FromInt(report.median_longer_side));
  tree.Set("median_shorter_side", ConfigNode::FromInt(report.median_shorter_side));
  tree.Set("num_broken", ConfigNode::FromInt(report.num_broken()));
  tree.Set("broken", BrokenTree(report, description, images));
  tree.Set("tiny", ConfigNode::FromStrings(NamesOf(report.tiny, description)));
  tree.Set("huge", ConfigNode::FromStrings(NamesOf(report.huge, description)));
  tree.Set("of_16_bits", ConfigNode::FromStrings(NamesOf(report.of_16_bits, description)));
  tree.Set("exact_duplicates", GroupsTree(report.exact_duplicates, description));
  tree.Set("near_duplicates", GroupsTree(report.near_duplicates, description));
  ConfigNode classes = ConfigNode::Map();
  for (const auto& [label, size] : report.class_sizes) {
    classes.Set(ClassName(label, description), ConfigNode::FromInt(size));
  }
  tree.Set("classes", std::move(classes));
  tree.Set("mean", ConfigNode::FromDoubles(report.mean));
  tree.Set("std", ConfigNode::FromDoubles(report.std));
  return tree;
}

}  // namespace ssl
