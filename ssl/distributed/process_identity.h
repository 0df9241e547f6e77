// SPDX-License-Identifier: Apache-2.0
//
// By what the processes of a run know each other, on one machine or several. Thread-safe.
#ifndef SSL_DISTRIBUTED_PROCESS_IDENTITY_H_
#define SSL_DISTRIBUTED_PROCESS_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// Key of an error's detail (ssl/base/error_detail.h): the processes that this rank has waited for in vain, for as long
// as an operation may take, by their names, with ", " between them.
inline constexpr char kDetailSilent[] = "ssl/silent";

struct ProcessIdentity {
  int64_t pid = 0;
  std::string scope;  // within which pid is unique: a start of a machine's system, and a name space of processes in it
  std::string host;

  static ProcessIdentity OfThisProcess();

  // The text has no line breaks. What is not such a text gives an identity of no process.
  static ProcessIdentity FromText(absl::string_view text);
  std::string ToText() const;

  // "process 17 on node3"
  std::string Name() const;

  // True when it is certain: of a process of another machine or container nothing is known. A process that has ended
  // and that its parent has not asked for (a zombie) has ended.
  bool HasEnded() const;

  // Likewise: it is stopped, by SIGSTOP or a debugger.
  bool IsStopped() const;

  // Likewise: it has not ended.
  bool IsRunning() const;

 private:
  // The letter of /proc/PID/stat, 'X' for a process that is not there; '?' when nothing is known.
  char State() const;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_PROCESS_IDENTITY_H_
