// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/progress_line.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ssl {
namespace {

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;
constexpr double kLongestDuration = 1e12;  // beyond it a double no longer counts seconds as an integer safely

// Rounds down: 100% is for the end alone.
int64_t Percent(int64_t part, int64_t whole) { return whole > 0 ? 100 * part / whole : 0; }

// Whole samples; tenths of a slow run.
std::string FormatSpeed(double per_second) {
  constexpr double kSlow = 9.95;
  return per_second > 0.0 && per_second < kSlow ? absl::StrFormat("%.1f", per_second)
                                                : FormatCount(std::llround(per_second));
}

}  // namespace

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > kLongestDuration) return "unknown";
  const int64_t total = std::llround(seconds);
  if (total < kMinute) return absl::StrCat(total, "s");
  if (total < kHour) return absl::StrFormat("%dm %02ds", total / kMinute, total % kMinute);
  if (total < kDay) return absl::StrFormat("%dh %02dm", total / kHour, total % kHour / kMinute);
  return absl::StrFormat("%dd %02dh", total / kDay, total % kDay / kHour);
}

std::string FormatBytes(int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / kBytesPerMebibyte;
  return mebibytes < 1024.0 ? absl::StrFormat("%.1f MiB", mebibytes) : absl::StrFormat("%.1f GiB", mebibytes / 1024.0);
}

std::string FormatCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const int64_t first_digit = count < 0 ? 1 : 0;
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > first_digit; i -= 3) digits.insert(i, ",");
  return digits;
}

std::string FormatProgress(const StepProgress& progress) {
  const std::string batch =
      progress.batch_ms.has_value() ? absl::StrFormat(" | %.1f ms/batch", *progress.batch_ms) : "";
  const std::string device = progress.device_wait_share.has_value()
                                 ? absl::StrFormat(" | device %.0f%%", 100.0 * *progress.device_wait_share)
                                 : "";
  return absl::StrFormat(
      "%3d%% | epoch %d/%d | step %s/%s | loss %.4f | lr %.4g | %s samples/s%s | data %.0f%%%s | %s left | %s MiB",
      Percent(progress.step, progress.num_steps), progress.epoch, progress.num_epochs, FormatCount(progress.step),
      FormatCount(progress.num_steps), progress.loss, progress.learning_rate, FormatSpeed(progress.samples_per_second),
      batch, 100.0 * progress.data_wait_share, device, FormatDuration(progress.seconds_left),
      FormatCount(std::llround(static_cast<double>(progress.resident_bytes) / kBytesPerMebibyte)));
}

}  // namespace ssl
