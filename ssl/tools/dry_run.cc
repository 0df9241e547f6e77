// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/dry_run.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/check/named_components.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/session.h"
#include "ssl/core/start_refusal.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "CHECKPOINT.DIR";

absl::Status PrintStart(const ConfigNode& config, const Registries& registries, Communicator& communicator,
                        std::ostream& out) {
  SSL_ASSIGN_OR_RETURN(const ResumePlan plan, CheckWholeResume(config, registries, PosixFileSystem(), communicator));
  if (plan.removes_earlier) out << "the run that is there is removed; a start begins anew\n";
  if (plan.iteration < 0) return absl::OkStatus();
  out << "a run is there: a start goes on after iteration " << plan.iteration << ", of the whole run below\n";
  return absl::OkStatus();
}

absl::Status PrintSinks(const ConfigNode& config, const Registries& registries, Communicator& communicator,
                        std::ostream& out) {
  const BuildContext context{config, registries, communicator};
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfConfiguredSinks(context));
  out << "files of metric sinks:\n  " << (files.empty() ? "none" : absl::StrJoin(files, ", ")) << "\n";
  return absl::OkStatus();
}

absl::Status PrintTraining(const ConfigNode& config, int64_t ranks, const Registries& registries, std::ostream& out) {
  const std::unique_ptr<Communicator> communicator = MakePreviewCommunicator(ranks);
  SSL_RETURN_IF_ERROR(PrintStart(config, registries, *communicator, out));
  SessionOptions options;
  options.communicator = communicator.get();
  options.only_preview = true;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
  const RunPreview preview = session->Preview();
  out << preview.text
      << "files of the training itself:\n  train_config.yaml, log.txt, results.json, checkpoints/LATEST, "
      << "checkpoints/FINISHED\n";
  SSL_RETURN_IF_ERROR(PrintSinks(config, registries, *communicator, out));
  for (const std::string& warning : preview.warnings) SSL_LOG(WARNING) << warning;
  return absl::OkStatus();
}

}  // namespace

absl::Status DryRun(const ConfigNode& root, const RunWorld& world, const Registries& registries, std::ostream& out) {
  const ConfigNode& config = *root.Find("config");
  SSL_ASSIGN_OR_RETURN(const int64_t virtual_ranks, ReadVirtualRanks(config));
  out << "ranks: " << Describe(world) << "\n";
  if (virtual_ranks > 0) out << "       " << DescribeVirtualRanks(virtual_ranks, world.place.size) << "\n";
  if (world.place.rank != 0) {
    out << "the rest is as rank 0 says it\n";
    return absl::OkStatus();
  }
  out << "engines: " << absl::StrJoin(EngineNames(root), ", ")
      << "\nrun directory: " << config.FindPath(kDirectory)->text() << "\n";
  if (!Trains(root)) return absl::OkStatus();
  return PrintTraining(config, virtual_ranks > 0 ? virtual_ranks : world.place.size, registries, out);
}

}  // namespace ssl
