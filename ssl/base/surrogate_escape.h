// SPDX-License-Identifier: Apache-2.0
//
// Text that may be any bytes, as names of files may, in JSON. It stands there as it is, but for bytes that are no
// UTF-8: the byte 0xFF is "\udcff", as Python's "surrogateescape" has it, so that os.fsencode of what json.load gives
// is the name of the file. A JSON library takes UTF-8 alone; such bytes go through it as marks, which are characters
// that Unicode leaves to private use:
//
//   EscapeMarks(Json(MarkBytes(name)).dump())
//   UnmarkBytes(Json::parse(MarkEscapes(text)))
//
// A name that holds such characters has their bytes marked, so that each name is read back as it was. Pure functions.
#ifndef SSL_BASE_SURROGATE_ESCAPE_H_
#define SSL_BASE_SURROGATE_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// UTF-8, with a mark for each byte of `text` that is none.
std::string MarkBytes(absl::string_view text);

// The bytes that were marked, in a text or in a whole file.
std::string UnmarkBytes(absl::string_view text);

// JSON text with escapes for marks, and the other way round.
std::string EscapeMarks(absl::string_view json);
std::string MarkEscapes(absl::string_view json);

}  // namespace ssl

#endif  // SSL_BASE_SURROGATE_ESCAPE_H_
