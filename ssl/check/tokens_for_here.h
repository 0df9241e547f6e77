// SPDX-License-Identifier: Apache-2.0
//
// What to put on top of a configuration that was written for another machine. Stateless; safe from any thread.
#ifndef SSL_CHECK_TOKENS_FOR_HERE_H_
#define SSL_CHECK_TOKENS_FOR_HERE_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"

namespace ssl {

// Tokens of the command line that leave one process on one host, on the CPU. config: the resolved tree under "config".
std::vector<std::string> TokensForThisMachine(const ConfigNode& config);

// Further ones, with synthetic images in the place of all data.
std::vector<std::string> TokensForSyntheticData(const ConfigNode& config);

// On one line, to be pasted into a shell.
std::string ForShell(const std::vector<std::string>& tokens);

}  // namespace ssl

#endif  // SSL_CHECK_TOKENS_FOR_HERE_H_
