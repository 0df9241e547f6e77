// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
// Deflate makes at most 1032 bytes of one (zlib's documentation). Images compress by a factor of two to ten: what is
// large and claims more than a hundred is no data set, but a small file that would fill the memory.
constexpr int64_t kMaxDeflateRatio = 1032;
constexpr int64_t kMaxLargeRatio = 100;
constexpr int64_t kLargeBytes = int64_t{16} << 20;

// Bytes in order, from a plain or a compressed file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `into` and returns how much was there; less than its size only at the end.
  virtual absl::StatusOr<int64_t> Read(absl::Span<uint8_t> into) = 0;
  // An error unless everything has been read and found whole.
  virtual absl::Status ExpectEnd() = 0;
  // The most that Read can give in total.
  virtual int64_t size_limit() const = 0;
};

class PlainSource : public ByteSource {
 public:
  PlainSource(absl::string_view bytes, absl::string_view name) : name_(name), size_(bytes.size()), rest_(bytes) {}

  absl::StatusOr<int64_t> Read(absl::Span<uint8_t> into) override {
    const size_t count = std::min(into.size(), rest_.size());
    if (count > 0) std::memcpy(into.data(), rest_.data(), count);
    rest_.remove_prefix(count);
    return static_cast<int64_t>(count);
  }
  absl::Status ExpectEnd() override {
    if (rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(name_, ": ", rest_.size(), " trailing bytes after the ", size_ - rest_.size(), " of the header"));
  }
  int64_t size_limit() const override { return size_; }

 private:
  absl::string_view name_;
  int64_t size_;
  absl::string_view rest_;
};

// One gzip member; its checksum and length are verified by zlib when its end is reached.
class GzipSource : public ByteSource {
 public:
  GzipSource(absl::string_view bytes, absl::string_view name) : bytes_(bytes), name_(name) {
    constexpr int kGzipFormat = 16;
    initialized_ = inflateInit2(&stream_, MAX_WBITS + kGzipFormat) == Z_OK;
  }
  ~GzipSource() override {
    if (initialized_) inflateEnd(&stream_);
  }

  absl::StatusOr<int64_t> Read(absl::Span<uint8_t> into) override {
    if (!initialized_) return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory to decompress"));
    int64_t done = 0;
    while (done < static_cast<int64_t>(into.size()) && !at_end_) {
      SSL_ASSIGN_OR_RETURN(const int64_t count, Inflate(into.subspan(done)));
      done += count;
    }
    return done;
  }
  // Going on to the end makes zlib verify checksum and length.
  absl::Status ExpectEnd() override {
    uint8_t extra;
    SSL_ASSIGN_OR_RETURN(const int64_t count, Read(absl::MakeSpan(&extra, 1)));
    if (count != 0) return absl::DataLossError(absl::StrCat(name_, ": trailing bytes after those of the header"));
    if (!complete_) return absl::DataLossError(absl::StrCat(name_, ": is truncated: the compressed data has no end"));
    return absl::OkStatus();
  }
  int64_t size_limit() const override {
    const auto size = static_cast<int64_t>(bytes_.size());
    return std::min(size * kMaxDeflateRatio, std::max(kLargeBytes, size * kMaxLargeRatio));
  }

 private:
  // One call of inflate.
  absl::StatusOr<int64_t> Inflate(absl::Span<uint8_t> into) {
    constexpr size_t kMaxChunk = std::numeric_limits<uInt>::max();
    const uInt input_size = std::min(bytes_.size() - consumed_, kMaxChunk);
    const uInt output_size = std::min(into.size(), kMaxChunk);
    // zlib's interface predates const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + consumed_));
    stream_.avail_in = input_size;
    stream_.next_out = into.data();
    stream_.avail_out = output_size;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    consumed_ += input_size - stream_.avail_in;
    const int64_t produced = output_size - stream_.avail_out;
    if (code == Z_STREAM_END) return Finish(produced);
    if (code == Z_BUF_ERROR || (code == Z_OK && consumed_ == bytes_.size() && produced == 0)) {
      at_end_ = true;  // the input ended before the gzip trailer
      return produced;
    }
    if (code != Z_OK) {
      return absl::DataLossError(absl::StrCat(name_, ": compressed data is damaged near byte ", consumed_, " of ",
                                              bytes_.size(), ": ", stream_.msg != nullptr ? stream_.msg : "unknown"));
    }
    return produced;
  }

  absl::StatusOr<int64_t> Finish(int64_t produced) {
    at_end_ = true;
    complete_ = true;
    if (consumed_ != bytes_.size()) {
      return absl::DataLossError(
          absl::StrCat(name_, ": ", bytes_.size() - consumed_, " trailing bytes after the end of the compressed data"));
    }
    return produced;
  }

  absl::string_view bytes_;
  absl::string_view name_;
  z_stream stream_ = {};
  bool initialized_ = false;
  bool at_end_ = false;    // no more bytes will come
  bool complete_ = false;  // the end was where it should be
  size_t consumed_ = 0;
};

struct Header {
  std::vector<int64_t> shape;
  int64_t value_bytes = 0;  // product of the shape
};

absl::Status Truncated(absl::string_view name, absl::string_view what, int64_t expected, int64_t found) {
  return absl::DataLossError(
      absl::StrCat(name, ": is truncated: expected ", expected, " bytes of ", what, ", found ", found));
}

absl::Status CheckMagic(const uint8_t* magic, absl::string_view name, int num_dimensions) {
  const std::string found = absl::StrCat(absl::Hex(magic[0], absl::kZeroPad2), absl::Hex(magic[1], absl::kZeroPad2),
                                         absl::Hex(magic[2], absl::kZeroPad2), absl::Hex(magic[3], absl::kZeroPad2));
  if (magic[0] == 0 && magic[1] == 0 && magic[2] == kUnsignedByte && magic[3] == num_dimensions) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(name, ": magic number is ", found, ", expected 0000080",
                                                 num_dimensions, " (IDX, unsigned bytes, ", num_dimensions,
                                                 num_dimensions == 1 ? " dimension)" : " dimensions)"));
}

// The product of the dimensions, checked against what the file can hold.
absl::StatusOr<int64_t> CheckedSize(const std::vector<int64_t>& shape, int64_t limit, absl::string_view name) {
  int64_t size = 1;
  for (int64_t dimension : shape) {
    // `limit` is at most the size of a file times 1032, and a dimension has 32 bits: no overflow here.
    if (dimension != 0 && size > limit / dimension) {
      return absl::DataLossError(absl::StrCat(name, ": header promises ", absl::StrJoin(shape, " x "),
                                              " bytes, but the file can hold at most ", limit));
    }
    size *= dimension;
  }
  return size;
}

absl::StatusOr<Header> ReadHeader(ByteSource& source, absl::string_view name, int num_dimensions) {
  uint8_t magic[4];
  SSL_ASSIGN_OR_RETURN(const int64_t magic_bytes, source.Read(absl::MakeSpan(magic)));
  if (magic_bytes < 4) return Truncated(name, "magic number", 4, magic_bytes);
  SSL_RETURN_IF_ERROR(CheckMagic(magic, name, num_dimensions));

  std::vector<uint8_t> dimensions(4 * num_dimensions);
  SSL_ASSIGN_OR_RETURN(const int64_t found, source.Read(absl::MakeSpan(dimensions)));
  if (found < static_cast<int64_t>(dimensions.size())) return Truncated(name, "dimensions", dimensions.size(), found);

  Header header;
  for (int i = 0; i < num_dimensions; ++i) {
    const uint8_t* byte = &dimensions[4 * i];
    header.shape.push_back((uint32_t{byte[0]} << 24) | (uint32_t{byte[1]} << 16) | (uint32_t{byte[2]} << 8) | byte[3]);
  }
  SSL_ASSIGN_OR_RETURN(header.value_bytes, CheckedSize(header.shape, source.size_limit(), name));
  return header;
}

absl::StatusOr<IdxArray> ReadArray(ByteSource& source, absl::string_view name, int num_dimensions) {
  SSL_ASSIGN_OR_RETURN(Header header, ReadHeader(source, name, num_dimensions));
  IdxArray array;
  array.shape = std::move(header.shape);
  array.values.resize(header.value_bytes);
  SSL_ASSIGN_OR_RETURN(const int64_t found, source.Read(absl::MakeSpan(array.values)));
  if (found < header.value_bytes) return Truncated(name, "values", header.value_bytes, found);
  SSL_RETURN_IF_ERROR(source.ExpectEnd());
  return array;
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view bytes, absl::string_view name, int num_dimensions) {
  constexpr absl::string_view kGzipMagic("\x1f\x8b", 2);
  if (absl::StartsWith(bytes, kGzipMagic)) {
    GzipSource source(bytes, name);
    return ReadArray(source, name, num_dimensions);
  }
  PlainSource source(bytes, name);
  return ReadArray(source, name, num_dimensions);
}

absl::StatusOr<IdxArray> ReadIdx(FileSystem& file_system, const std::string& path, int num_dimensions) {
  SSL_ASSIGN_OR_RETURN(const std::string bytes, file_system.Read(path));
  return ParseIdx(bytes, path, num_dimensions);
}

}  // namespace ssl
