// SPDX-License-Identifier: Apache-2.0
//
// Text that may be any bytes, as names of files may, where UTF-8 is needed. Pure functions.
#ifndef SSL_BASE_UTF8_H_
#define SSL_BASE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// By RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(absl::string_view text);

// `text` for people, as part of one line: letters of any script stay as they are. Control characters (a line feed too),
// characters that turn the direction of writing, and bytes that are no UTF-8 are escaped: "\n", "\x1b", "\u202e",
// "\xff". What is escaped reads the same when it is escaped again; backslashes and quotes stay, so that two texts may
// become one.
std::string EscapeForMessage(absl::string_view text);

// The same for a whole message, which may have several lines: its line feeds stay.
std::string EscapeForTerminal(absl::string_view text);

}  // namespace ssl

#endif  // SSL_BASE_UTF8_H_
