// SPDX-License-Identifier: Apache-2.0
//
// This tells a user why a run may not go on from a checkpoint: all that differs, and what can be done, at once.
#ifndef SSL_CORE_RESUME_REFUSAL_H_
#define SSL_CORE_RESUME_REFUSAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ssl {

// In the place of a value that a run did not have.
inline constexpr char kNotSet[] = "(not set)";

// One thing is not as the checkpoint has it.
struct SettingDifference {
  std::string key;
  std::string saved;
  std::string now;
  std::string location;   // of the new value, or of what was counted; "" when it stands nowhere
  std::string hint = {};  // behind the location
  std::string told = {};  // instead of both values
  // The name of it where that is no key: "the 300 samples"
  std::string counted = {};

  // One line.
  std::string ToString() const;
};

// References outlive the object.
struct ResumeRefusal {
  std::string origin;                            // the checkpoint's config.json
  std::vector<const SettingDifference*> others;  // what is another run's and not allowed to differ
  const std::vector<std::string>& allowed;       // keys that are
  bool tests_only = false;                       // TEST_ONLY
  // The reasons why the run cannot go on whatever is allowed, and what helps.
  std::vector<std::string> obstacles = {};
  std::vector<std::string> remedies = {};
  // Those of `others` and `accepted` help when they are put back.
  std::vector<const SettingDifference*> to_put_back = {};
  std::vector<const SettingDifference*> accepted = {};  // what is allowed to differ

  // OK without others and obstacles, else InvalidArgument. What cannot be done is said first; advice names what was
  // allowed already as well.
  absl::Status ToStatus() const;
};

// `value`, or of a long one the part that begins a little before the place where it differs from `other`.
std::string QuotedDifference(const std::string& value, const std::string& other);

}  // namespace ssl

#endif  // SSL_CORE_RESUME_REFUSAL_H_
