// SPDX-License-Identifier: Apache-2.0
//
// A command as it is typed.
#ifndef SSL_TOOLS_COMMAND_TEXT_H_
#define SSL_TOOLS_COMMAND_TEXT_H_

#include <string>
#include <vector>

namespace ssl {

// One line that a POSIX shell takes apart into `arguments` again; control characters of them are escaped, and are not.
std::string CommandText(const std::vector<std::string>& arguments);

// That of this process; "" when the system does not tell.
std::string CommandOfThisProcess();

}  // namespace ssl

#endif  // SSL_TOOLS_COMMAND_TEXT_H_
