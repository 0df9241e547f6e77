// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/check_data_engine.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/inspection/image_survey.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/progress.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"

namespace ssl {
namespace {

constexpr char kSection[] = "CHECK_DATA";
constexpr char kPrefix[] = "check_data";

struct CheckedSplit {
  DataDescription description;
  std::vector<SurveyedImage> images;
  DataReport report;
};

void AppendClassesOf(int64_t index, const Dataset& dataset, std::vector<int64_t>* classes) {
  const absl::Span<const int64_t> row = dataset.LabelRow(index);
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == 1) classes->push_back(static_cast<int64_t>(i));
  }
  const absl::Span<const int64_t> list = dataset.LabelList(index);
  classes->insert(classes->end(), list.begin(), list.end());
  if (row.empty() && list.empty()) classes->push_back(dataset.Label(index));
}

std::string TextOf16Bits(Grey16 grey16, const std::string& key) {
  return grey16 == Grey16::kClip ? absl::StrCat("grey values above 255 become white (", key, " is clip)")
                                 : absl::StrCat("values are divided by 256 (", key, " is scale)");
}

absl::StatusOr<DataDescription> Describe(const std::string& split, const Dataset& dataset, const ConfigNode& config) {
  DataDescription description;
  description.split = split;
  const ConfigNode& node = config.Section(absl::StrCat("DATA.", split));
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(node, config));
  description.of_16_bits = TextOf16Bits(Grey16Of(options), SplitKey(node, config, "GRAY_16_BIT"));
  description.source = dataset.description();
  description.passed_over = dataset.PassedOver();
  description.class_names.assign(dataset.ClassNames().begin(), dataset.ClassNames().end());
  Progress progress(absl::StrCat("names of ", split), dataset.size(), Clock::Real());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    progress.Update(i);
    std::string path = dataset.ImagePath(i);
    description.names.push_back(path.empty() ? absl::StrCat("image ", i) : std::move(path));
    if (dataset.has_labels()) AppendClassesOf(i, dataset, &description.labels);
  }
  return description;
}

absl::StatusOr<std::vector<SurveyedImage>> Survey(const std::string& split, const Dataset& dataset,
                                                  EngineContext& context) {
  DataOptions data;
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("DATA"), "config.DATA", UnknownKeys::kIgnore, &data));
  Progress progress(absl::StrCat("reading ", split), dataset.size(), Clock::Real());
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions read,
                       ReadDataSplit(context.config.Section(absl::StrCat("DATA.", split)), context.config));
  SurveyOptions options;
  options.grey16 = Grey16Of(read);
  options.threads = data.num_dataloader_workers;
  options.stop = &context.stop;
  options.on_progress = [&progress](int64_t done) { progress.Update(done); };
  return SurveyImages(dataset, options);
}

// What a training would end with.
absl::Status CheckShareOfBroken(const CheckedSplit& split, const ConfigNode& config) {
  const ConfigNode& node = config.Section(absl::StrCat("DATA.", split.description.split));
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(node, config));
  const int64_t broken = split.report.num_broken();
  if (broken > 0 && options.broken_images == "error") {
    return absl::DataLossError(absl::StrCat(split.description.source, ": ", broken, " of ", split.report.images,
                                            " images cannot be read, and ", SplitKey(node, config, "BROKEN_IMAGES"),
                                            " is error, so that a training would end; repair or remove those that the "
                                            "report names"));
  }
  if (static_cast<double>(broken) <= MostBroken(options.max_broken_fraction, split.report.images)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(split.description.source, ": ", broken, " of ", split.report.images, " images cannot be read, but ",
                   SplitKey(node, config, "MAX_BROKEN_FRACTION"), " allows a share of ", options.max_broken_fraction,
                   ", so that a training would end; repair or remove those that the report names"));
}

ConfigNode Figures(const DataReport& report) {
  ConfigNode figures = ConfigNode::Map();
  figures.Set("images", ConfigNode::FromInt(report.images));
  figures.Set("broken", ConfigNode::FromInt(report.num_broken()));
  figures.Set("tiny", ConfigNode::FromInt(static_cast<int64_t>(report.tiny.size())));
  figures.Set("huge", ConfigNode::FromInt(static_cast<int64_t>(report.huge.size())));
  figures.Set("exact_duplicates", ConfigNode::FromInt(NumRepetitions(report.exact_duplicates)));
  figures.Set("near_duplicates", ConfigNode::FromInt(NumRepetitions(report.near_duplicates)));
  return figures;
}

// What evaluations read as DATA.TRAIN is read.
bool NamesPathsAlone(const ConfigNode& test) {
  const ConfigNode* sources = test.Find("DATA_SOURCES");
  const ConfigNode* paths = test.Find("DATA_PATHS");
  return (sources == nullptr || sources->items().empty()) && paths != nullptr && !paths->items().empty();
}

// Calls `check` with a context whose configuration says how each split is read.
absl::Status WithSplits(EngineContext& context, absl::FunctionRef<absl::Status(EngineContext&)> check) {
  return NamesPathsAlone(context.config.Section("DATA.TEST")) ? CheckWithEvaluationPlan(context, check)
                                                              : check(context);
}

class CheckDataEngine : public Engine {
 public:
  explicit CheckDataEngine(CheckDataOptions options) : limits_(options.limits) {}

  // Threads share the reading, so that rank 0 has no use for the others.
  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    EngineReport report;
    const auto check = [&] {
      if (context.communicator.rank() != 0) return absl::OkStatus();
      return WithSplits(context, [&](EngineContext& complete) { return CheckAll(complete, &report); });
    };
    const absl::Status status = AgreeOnWork(check, kPrefix, context.communicator);
    if (absl::IsCancelled(status)) return StoppedReport(kPrefix);
    SSL_RETURN_IF_ERROR(status);
    report.verdict = AgreeOnStatus(report.verdict, kPrefix, context.communicator);
    return report;
  }

  absl::Status Check(EngineContext& context) const override {
    return WithSplits(context, [](EngineContext& complete) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const std::vector<std::string> splits, ConfiguredSplits(complete.config));
      for (const std::string& split : splits) SSL_RETURN_IF_ERROR(OpenSplitDataset(split, complete).status());
      return absl::OkStatus();
    });
  }

  bool uses_device() const override { return false; }

 private:
  absl::Status CheckAll(EngineContext& context, EngineReport* report) const {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ConfiguredSplits(context.config));
    std::vector<CheckedSplit> splits;
    for (const std::string& name : names) {
      SSL_ASSIGN_OR_RETURN(CheckedSplit split, CheckOne(name, context));
      splits.push_back(std::move(split));
    }
    ConfigNode figures = ConfigNode::Map();
    ConfigNode details = ConfigNode::Map();
    for (const CheckedSplit& split : splits) {
      const std::string key = absl::AsciiStrToLower(split.description.split);
      absl::StrAppend(&report->summary, FormatDataReport(split.report, split.description, split.images, limits_));
      figures.Set(key, Figures(split.report));
      details.Set(key, DataReportTree(split.report, split.description, split.images));
      report->verdict.Update(CheckShareOfBroken(split, context.config));
    }
    if (splits.size() == 2) AddShared(splits[0], splits[1], &report->summary, &details);
    context.results.Set(kPrefix, std::move(figures));
    if (context.run_directory.empty() || !context.keeps_results) return absl::OkStatus();
    // Without the file, the table is there all the same.
    const absl::Status written =
        WriteEvaluationFile(context.run_directory, kDataCheckFile, ToJson(details), context.file_system);
    report->verdict.Update(written);
    if (written.ok()) {
      absl::StrAppend(&report->summary, "every file by name: ", context.run_directory, "/", kDataCheckFile, "\n");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CheckedSplit> CheckOne(const std::string& name, EngineContext& context) const {
    CheckedSplit split;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, OpenSplitDataset(name, context));
    SSL_ASSIGN_OR_RETURN(split.description, Describe(name, *dataset, context.config));
    SSL_ASSIGN_OR_RETURN(split.images, Survey(name, *dataset, context));
    Progress search(absl::StrCat("near duplicates of ", name), dataset->size(), Clock::Real());
    const auto on_progress = [&search](int64_t done) { search.Update(done); };
    SSL_ASSIGN_OR_RETURN(split.report,
                         MakeDataReport(split.images, split.description, limits_, on_progress, &context.stop));
    return split;
  }

  // A test image that was trained on makes every figure of the test too good.
  static void AddShared(const CheckedSplit& train, const CheckedSplit& test, std::string* table, ConfigNode* details) {
    ConfigNode names = ConfigNode::List();
    for (const int64_t position : SharedContent(train.images, test.images)) {
      names.Append(ConfigNode::FromString(test.description.names[position]));
    }
    absl::StrAppend(table, "images of TEST that are in TRAIN as well: ", names.items().size(), "\n");
    details->SetPath("test.in_train", std::move(names));
  }

  const DataReportLimits limits_;
};

}  // namespace

void CheckDataOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("TINY_SIDE", &limits.tiny_side,
                Doc("Images with a shorter side than this are listed as tiny.").AtLeast(0).Unit("pixels"));
  visitor.Field("HUGE_PIXELS", &limits.huge_pixels,
                Doc("Images with more pixels are listed as huge: they take long to decode.").AtLeast(1).Unit("pixels"));
  visitor.Field(
      "DUPLICATE_DISTANCE", &limits.duplicate_distance,
      Doc("Images are near duplicates when at most this many of the 64 bits of their difference hashes differ.")
          .Between(0, 15)
          .Unit("bits"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeCheckDataEngine(const ConfigNode& config, const BuildContext& context) {
  CheckDataOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(config.Section(kSection), absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  return std::make_unique<CheckDataEngine>(std::move(options));
}

}  // namespace ssl
