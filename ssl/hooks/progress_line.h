// SPDX-License-Identifier: Apache-2.0
//
// Text of the progress line, for people. Pure functions.
//
//   12% | epoch 3/100 | step 1,200/10,000 | loss 5.1234 | lr 0.03 | 1,234 samples/s | data 3% | 1m 05s left | 812 MiB
#ifndef SSL_HOOKS_PROGRESS_LINE_H_
#define SSL_HOOKS_PROGRESS_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ssl {

// Epochs and steps are counted from 1: the one that was just done.
struct StepProgress {
  int64_t epoch = 0;
  int64_t num_epochs = 0;
  int64_t step = 0;
  int64_t num_steps = 0;
  double loss = 0.0;
  double learning_rate = 0.0;
  double samples_per_second = 0.0;
  double data_wait_share = 0.0;  // of the time, in [0, 1]: waiting for the loader
  double seconds_left = 0.0;
  int64_t resident_bytes = 0;
  std::optional<double> batch_ms = {};           // shown after the samples when it is set
  std::optional<double> device_wait_share = {};  // likewise, after that of the data: waiting for the device
};

std::string FormatProgress(const StepProgress& progress);

// "0s", "59s", "1m 05s", "2h 03m", "4d 05h"; "unknown" for what is negative or not finite.
std::string FormatDuration(double seconds);

// "0.5 MiB", "1023.0 MiB", "1.2 GiB".
std::string FormatBytes(int64_t bytes);

// Whole number with a comma between groups of three digits.
std::string FormatCount(int64_t count);

}  // namespace ssl

#endif  // SSL_HOOKS_PROGRESS_LINE_H_
