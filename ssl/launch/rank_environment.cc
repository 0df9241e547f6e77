// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/rank_environment.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ssl {

std::vector<std::string> RankEnvironment(const std::vector<std::string>& inherited, const WorldPlace& first,
                                         int64_t local_rank, int64_t max_restarts, int64_t cores) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : inherited) variables.insert(absl::StrSplit(entry, absl::MaxSplits('=', 1)));
  variables["RANK"] = absl::StrCat(first.rank + local_rank);
  variables["WORLD_SIZE"] = absl::StrCat(first.size);
  variables["LOCAL_RANK"] = absl::StrCat(local_rank);
  variables["LOCAL_WORLD_SIZE"] = absl::StrCat(first.local_size);
  variables["GROUP_RANK"] = absl::StrCat(first.rank / first.local_size);
  for (const char* place : {"MASTER_ADDR", "MASTER_PORT", "SSL_STORE_FILE"}) variables.erase(place);
  if (first.store_file.empty()) {
    variables["MASTER_ADDR"] = first.host;
    variables["MASTER_PORT"] = absl::StrCat(first.port);
  } else {
    variables["SSL_STORE_FILE"] = first.store_file;
  }
  variables["TORCHELASTIC_RESTART_COUNT"] = absl::StrCat(first.restart_count);
  variables["TORCHELASTIC_MAX_RESTARTS"] = absl::StrCat(max_restarts);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  variables["SSL_LAUNCHER"] = "1";
  variables.erase("SSL_LISTENING_SOCKET");
  if (first.rank + local_rank == 0 && first.listening_socket >= 0) {
    variables["SSL_LISTENING_SOCKET"] = absl::StrCat(first.listening_socket);
  }
  std::string& threads = variables["OMP_NUM_THREADS"];
  if (threads.empty()) threads = absl::StrCat(std::max<int64_t>(1, cores / first.local_size));
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

}  // namespace ssl
