// SPDX-License-Identifier: Apache-2.0
//
// The instructions of a Python pickle (protocols 2 to 5) and their operands. Private to ssl/io. Texts are views of the
// bytes. Not thread-safe; errors are kDataLoss.

#ifndef SSL_IO_PICKLE_INPUT_H_
#define SSL_IO_PICKLE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {

// The instructions that are understood, with the names of Python's pickletools.
enum PickleOpcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinString = 'T',
  kShortBinString = 'U',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kGlobalName = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObject = 0x81,
  kNewObjectWithNames = 0x92,
  kBuild = 'b',
  kBinPersId = 'Q',
  kProto = 0x80,
  kFrame = 0x95,
};

inline absl::Status DamagedPickle(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the pickle ", what));
}

class PickleInput {
 public:
  explicit PickleInput(absl::string_view bytes) : rest_(bytes) {}

  // What has not been taken.
  absl::string_view rest() const { return rest_; }

  // Little endian.
  template <class T>
  absl::Status Take(T* value) {
    if (rest_.size() < sizeof(T)) return DamagedPickle("ends too early");
    std::memcpy(value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return absl::OkStatus();
  }

  template <class T>
  absl::Status Skip() {
    T ignored = 0;
    return Take(&ignored);
  }

  // A text behind its length.
  template <class Length>
  absl::StatusOr<absl::string_view> TakeText() {
    Length length = 0;
    SSL_RETURN_IF_ERROR(Take(&length));
    if (length > rest_.size()) {
      return DamagedPickle(absl::StrCat("claims ", length, " bytes where ", rest_.size(), " are left"));
    }
    const absl::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }

  absl::StatusOr<absl::string_view> TakeLine() {
    const size_t end = rest_.find('\n');
    if (end == absl::string_view::npos) return DamagedPickle("ends inside a line");
    const absl::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

 private:
  absl::string_view rest_;
};

}  // namespace ssl

#endif  // SSL_IO_PICKLE_INPUT_H_
