// SPDX-License-Identifier: Apache-2.0
//
// Tells in the log how far the scan of a large list or folder is. Used by one thread.
#ifndef SSL_DATA_DATASETS_SCAN_PROGRESS_H_
#define SSL_DATA_DATASETS_SCAN_PROGRESS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/base/clock.h"

namespace ssl {

// How such a line ends: it is news while the scan goes on, and none afterwards.
inline constexpr absl::string_view kSoFar = " so far";

class ScanProgress {
 public:
  // The clock outlives it.
  ScanProgress(std::string path, Clock& clock);

  // Logs "<path>: <what is done> so far", where two seconds have gone since the last line or the beginning.
  void Report(absl::FunctionRef<std::string()> done);

 private:
  const std::string path_;
  Clock& clock_;
  absl::Time last_;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_SCAN_PROGRESS_H_
