// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_CHECK_TESTING_CHECK_TOKENS_H_
#define SSL_CHECK_TESTING_CHECK_TOKENS_H_

#include <string>
#include <vector>

#include "ssl/check/check_config.h"

namespace ssl {

// What --check_config finds of these tokens of a command line, in this program and with the shipped configurations,
// which a test has as data ("//configs").
ConfigReport CheckTokens(std::vector<std::string> tokens);

}  // namespace ssl

#endif  // SSL_CHECK_TESTING_CHECK_TOKENS_H_
