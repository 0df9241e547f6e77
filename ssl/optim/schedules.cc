// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/config/reader.h"
#include "ssl/optim/schedule_options.h"

namespace ssl {
namespace {

// Progress is a quotient of integers: a boundary must not be missed by a rounding error.
constexpr double kWhereEpsilon = 1e-6;
constexpr double kLengthsTolerance = 1e-3;
constexpr double kPi = 3.14159265358979323846;

class FunctionSchedule : public Schedule {
 public:
  FunctionSchedule(std::function<double(double)> function, UpdateInterval interval)
      : function_(std::move(function)), interval_(interval) {}

  double ValueAt(double where) const override { return function_(where); }
  UpdateInterval update_interval() const override { return interval_; }

 private:
  std::function<double(double)> function_;
  UpdateInterval interval_;
};

struct Part {
  std::unique_ptr<Schedule> schedule;
  double begin = 0.0;
  double end = 0.0;
  double length = 0.0;
  bool rescaled = true;
};

class CompositeSchedule : public Schedule {
 public:
  CompositeSchedule(std::vector<Part> parts, UpdateInterval interval) : parts_(std::move(parts)), interval_(interval) {}

  double ValueAt(double where) const override {
    size_t i = 0;
    while (i + 1 < parts_.size() && where + kWhereEpsilon > parts_[i].end) ++i;
    const Part& part = parts_[i];
    return part.schedule->ValueAt(part.rescaled ? (where - part.begin) / part.length : where);
  }
  UpdateInterval update_interval() const override { return interval_; }

 private:
  std::vector<Part> parts_;
  UpdateInterval interval_;
};

// Half a wave from `start` at phase 0 to `end` at phase 1.
double Cosine(double start, double end, double phase) {
  return end + (start - end) * (1.0 + std::cos(kPi * phase)) / 2.0;
}

// Training in values.size() equal parts.
double ValueOfEqualPart(const std::vector<double>& values, double where) {
  const size_t i = static_cast<size_t>((where + kWhereEpsilon) * static_cast<double>(values.size()));
  return values[std::min(i, values.size() - 1)];
}

// Where the waves of cosine_warm_restart begin, and how high. Half waves begin at every multiple of the length r; full
// waves, which fall for r and rise for r, count from their valleys at r, 3r, 5r, ...
class CosineWaves {
 public:
  explicit CosineWaves(const ScheduleOptions& options) {
    const bool half = options.wave_type == "half";
    const double length = options.restart_interval_length;
    const double distance = half ? length : 2.0 * length;
    begins_ = {0.0};
    for (int64_t i = 0; length + static_cast<double>(i) * distance < 1.0; ++i) {
      begins_.push_back(length + static_cast<double>(i) * distance);
    }
    for (size_t i = 0; i < begins_.size(); ++i) {
      const double crest = half ? begins_[i] : begins_[i] + length;
      peaks_.push_back(options.is_adaptive
                           ? Cosine(options.start_value, options.end_value, crest)
                           : options.start_value * std::pow(options.lr_multiplier, static_cast<double>(i)));
    }
  }

  double PeakAt(double where) const {
    return peaks_[std::upper_bound(begins_.begin() + 1, begins_.end(), where) - begins_.begin() - 1];
  }

 private:
  std::vector<double> begins_;
  std::vector<double> peaks_;
};

// With a length of its own, as files of VISSL have it, which VISSL replaces by OPTIMIZER.num_epochs.
struct ScheduleWithLength : public ScheduleOptions {
  ConfigNode num_epochs;
  void VisitFields(FieldVisitor& visitor) override {
    ScheduleOptions::VisitFields(visitor);
    visitor.Field("num_epochs", &num_epochs, Doc("without effect"));
  }
};

absl::StatusOr<ScheduleOptions> Read(const ConfigNode& params) {
  ScheduleWithLength options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "param_schedulers", UnknownKeys::kError, &options));
  return ScheduleOptions(options);
}

Schedule::UpdateInterval IntervalOf(const ScheduleOptions& options, Schedule::UpdateInterval fallback) {
  if (options.update_interval.empty()) return fallback;
  return options.update_interval == "step" ? Schedule::UpdateInterval::kStep : Schedule::UpdateInterval::kEpoch;
}

absl::Status Wrong(const ConfigNode& params, absl::string_view key, absl::string_view problem) {
  const ConfigNode* node = params.Find(key);
  const SourceLocation& location = node == nullptr ? params.location() : node->location();
  return absl::InvalidArgumentError(absl::StrCat(location.ToString(), ": param_schedulers.", key, " ", problem));
}

absl::StatusOr<int64_t> NumEpochs(const BuildContext& context) {
  const ConfigNode* node = context.config.FindPath("OPTIMIZER.num_epochs");
  if (node == nullptr) return absl::InvalidArgumentError("config.OPTIMIZER.num_epochs is missing, a schedule needs it");
  return node->AsInt();
}

// Checks the composite's lists against each other and returns the lengths, the last one corrected.
absl::StatusOr<std::vector<double>> CheckedLengths(const ConfigNode& params, const ScheduleOptions& options) {
  const size_t count = options.schedulers.items().size();
  if (count == 0) return Wrong(params, "schedulers", "is empty, expected at least one schedule");
  if (options.lengths.size() != count) {
    return Wrong(
        params, "lengths",
        absl::StrCat("has ", options.lengths.size(), " entries, expected one for each of ", count, " schedulers"));
  }
  if (!options.interval_scaling.empty() && options.interval_scaling.size() != count) {
    return Wrong(params, "interval_scaling",
                 absl::StrCat("has ", options.interval_scaling.size(), " entries, expected one for each of ", count,
                              " schedulers"));
  }
  std::vector<double> lengths = options.lengths;
  if (*std::min_element(lengths.begin(), lengths.end()) <= 0.0) {
    return Wrong(params, "lengths", "has an entry that is not above 0");
  }
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  if (std::abs(sum - 1.0) > kLengthsTolerance) {
    return Wrong(params, "lengths", absl::StrCat("add up to ", sum, ", expected 1"));
  }
  lengths.back() += 1.0 - sum;
  return lengths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Schedule>> MakeConstantSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  return std::make_unique<FunctionSchedule>([value = options.value](double) { return value; },
                                            IntervalOf(options, Schedule::UpdateInterval::kEpoch));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeLinearSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  const auto function = [start = options.start_value, end = options.end_value](double where) {
    return end * where + start * (1.0 - where);
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeCosineSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  const auto function = [start = options.start_value, end = options.end_value](double where) {
    return Cosine(start, end, where);
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeMultistepSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  SSL_ASSIGN_OR_RETURN(const int64_t num_epochs, NumEpochs(context));
  const std::vector<int64_t>& milestones = options.milestones;
  if (options.values.size() != milestones.size() + 1) {
    return Wrong(params, "values",
                 absl::StrCat("has ", options.values.size(), " entries, expected ", milestones.size() + 1,
                              ", one more than milestones"));
  }
  if (std::adjacent_find(milestones.begin(), milestones.end(), std::greater_equal<>()) != milestones.end()) {
    return Wrong(params, "milestones", "do not rise, expected rising epochs");
  }
  if (!milestones.empty() && milestones.back() >= num_epochs) {
    return Wrong(params, "milestones",
                 absl::StrCat("reach epoch ", milestones.back(), ", expected epochs below config.OPTIMIZER.num_epochs ",
                              num_epochs));
  }
  const auto function = [values = options.values, milestones, num_epochs](double where) {
    const int64_t epoch = static_cast<int64_t>((where + kWhereEpsilon) * static_cast<double>(num_epochs));
    return values[std::upper_bound(milestones.begin(), milestones.end(), epoch) - milestones.begin()];
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kEpoch));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeStepSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  if (options.values.empty()) return Wrong(params, "values", "is empty, expected at least one value");
  const auto function = [values = options.values](double where) { return ValueOfEqualPart(values, where); };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kEpoch));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeStepWithFixedGammaSchedule(const ConfigNode& params,
                                                                         const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  if (options.num_decays < 1) {
    return Wrong(params, "num_decays", absl::StrCat("is ", options.num_decays, ", expected at least 1"));
  }
  std::vector<double> values = {options.base_value};
  for (int64_t i = 0; i < options.num_decays; ++i) values.push_back(values.back() * options.gamma);
  return std::make_unique<FunctionSchedule>(
      [values = std::move(values)](double where) { return ValueOfEqualPart(values, where); },
      IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakePolynomialSchedule(const ConfigNode& params,
                                                                 const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  const auto function = [base = options.base_value, power = options.power](double where) {
    return base * std::pow(1.0 - where, power);
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeExponentialSchedule(const ConfigNode& params,
                                                                  const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  const auto function = [start = options.start_value, decay = options.decay](double where) {
    return start * std::pow(decay, where);
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeInverseSqrtSchedule(const ConfigNode& params,
                                                                  const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  const double warm_up = options.warmup_interval_length;
  const double factor = options.start_value * (warm_up > 0.0 ? std::sqrt(warm_up) : 1.0);
  // The first step has no root to divide by.
  const auto function = [factor](double where) { return where > 0.0 ? factor / std::sqrt(where) : factor; };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeCosineWarmRestartSchedule(const ConfigNode& params,
                                                                        const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  if (options.restart_interval_length <= 0.0) {
    return Wrong(params, "restart_interval_length",
                 absl::StrCat("is ", options.restart_interval_length, ", expected a value above 0, at most 1"));
  }
  const auto function = [waves = CosineWaves(options), length = options.restart_interval_length,
                         half = options.wave_type == "half", end = options.end_value](double where) {
    const double phase = (half ? std::fmod(where, length) : where) / length;
    return Cosine(waves.PeakAt(where), end, phase);
  };
  return std::make_unique<FunctionSchedule>(function, IntervalOf(options, Schedule::UpdateInterval::kStep));
}

absl::StatusOr<std::unique_ptr<Schedule>> MakeCompositeSchedule(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ScheduleOptions options, Read(params));
  SSL_ASSIGN_OR_RETURN(const std::vector<double> lengths, CheckedLengths(params, options));
  std::vector<Part> parts;
  double begin = 0.0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const ConfigNode& child = options.schedulers.items()[i];
    const ConfigNode* name = child.Find("name");
    if (name == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(child.location().ToString(), ": param_schedulers.schedulers.", i,
                                                     ".name is missing, expected the name of a schedule"));
    }
    Part part;
    SSL_ASSIGN_OR_RETURN(part.schedule, context.registries.schedules.Make(name->text(), child, context));
    part.begin = begin;
    part.end = begin + lengths[i];
    part.length = lengths[i];
    part.rescaled = options.interval_scaling.empty() || options.interval_scaling[i] == "rescaled";
    begin = part.end;
    parts.push_back(std::move(part));
  }
  return std::make_unique<CompositeSchedule>(std::move(parts), IntervalOf(options, Schedule::UpdateInterval::kStep));
}

}  // namespace ssl
