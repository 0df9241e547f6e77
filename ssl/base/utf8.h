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

// `text` itself where it is UTF-8; else with C's escapes for backslashes, quotes and all that is no printable ASCII,
// which absl::CUnescape (or Python's "unicode_escape" and "latin-1") takes back: two names stay two.
std::string EscapeUnlessUtf8(absl::string_view text);

// The same for a message, which is a line: control characters, such as a line feed, are escaped as well.
std::string EscapeForMessage(absl::string_view text);

}  // namespace ssl

#endif  // SSL_BASE_UTF8_H_
