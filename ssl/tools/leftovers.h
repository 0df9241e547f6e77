// SPDX-License-Identifier: Apache-2.0
//
// What earlier trainings have left in a run directory and no later one would replace.
#ifndef SSL_TOOLS_LEFTOVERS_H_
#define SSL_TOOLS_LEFTOVERS_H_

#include <cstdint>
#include <string>

#include "ssl/io/file_system.h"

namespace ssl {

// ": process 17 on host a": the end of the line of a log in which a rank, or a process of virtual ranks, says who it
// is. RemoveLeftovers knows by it who has written the log.
std::string IntroductionOfThisProcess();

// Removes
// - marks by which ranks have found the directory (shared_directory.h);
// - of ranks from `ranks` on, which this run does not have: failure reports of trainings (logs/rank<r>_failure.json),
//   and logs (logs/rank<r>.txt) of processes of this host that have ended. Others may be those of an evaluation that
//   runs beside the training.
// For who holds the directory's lock, so that no other training is there. What cannot be removed stays, with a warning.
void RemoveLeftovers(const std::string& run_directory, int64_t ranks, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_TOOLS_LEFTOVERS_H_
