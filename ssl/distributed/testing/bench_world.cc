// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/bench_world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ssl {

int RunForkedRanks(int64_t size, const std::function<absl::Status(const GlooOptions& options)>& rank_main) {
  char directory[] = "/tmp/bench_world_XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  GlooOptions options;
  options.interface = "lo";
  options.rendezvous.size = size;
  options.rendezvous.file = absl::StrCat(directory, "/store");
  while (options.rendezvous.rank < size && fork() != 0) ++options.rendezvous.rank;
  if (options.rendezvous.rank < size) {
    const absl::Status status = rank_main(options);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return status.ok() ? 0 : 1;
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  unlink(options.rendezvous.file.c_str());
  rmdir(directory);
  return failed == 0 ? 0 : 1;
}

}  // namespace ssl
