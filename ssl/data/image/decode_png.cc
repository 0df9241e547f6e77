// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_png.h"

#include <png.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// What the library's callbacks may touch.
struct Input {
  const char* next;
  size_t left;
  char message[256];
};

// The library expects that this does not return: it jumps back to the setjmp of the function that called the library;
// no object with a destructor lives between the two.
[[noreturn]] void JumpOut(png_structp png, png_const_charp message) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::snprintf(input->message, sizeof(input->message), "%s", message);
  png_longjmp(png, 1);
}

void DropWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep output, size_t count) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (count > input->left) png_error(png, "the file ends before the image does");
  std::memcpy(output, input->next, count);
  input->next += count;
  input->left -= count;
}

// Chunks that say nothing about the pixels that we ask for. Texts and profiles are compressed: a thousand of them, 8 kB
// each, would be 8 GB of memory and half a minute if the library were to read them.
constexpr png_byte kIgnoredChunks[] =
    "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";
constexpr int kBytesPerName = 5;
// Deflate makes at most 1032 bytes of one (zlib's documentation).
constexpr int64_t kMostBytesPerByte = 1032;

// Frees the decoder on every way out.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : input_{bytes.data(), bytes.size(), ""} {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // The three steps. False: error() says why.
  bool ReadHeader();
  // Asks for 8-bit RGB; with `keeps_grey16`, 16-bit grey stays what it is.
  bool Start(bool keeps_grey16);
  // first: of the first row; the others follow it, `stride` bytes apart.
  bool ReadRows(uint8_t* first, size_t stride);

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  bool is_grey16() const {
    return png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) == 16;
  }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  const char* error() const { return input_.message; }

 private:
  Input input_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;  // over the rows: several of an interlaced image
};

bool Decoder::ReadHeader() {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, JumpOut, DropWarning);
  if (png_ == nullptr) return false;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  info_ = png_create_info_struct(png_);
  if (info_ == nullptr) return false;
  png_set_read_fn(png_, &input_, ReadBytes);
  // Its own limits say "damaged"; ours come before memory is taken.
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kIgnoredChunks, sizeof(kIgnoredChunks) / kBytesPerName);
  png_read_info(png_, info_);
  return true;
}

bool Decoder::Start(bool keeps_grey16) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  if (!keeps_grey16 || !is_grey16()) {
    const int type = png_get_color_type(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if ((type & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
  }
  passes_ = png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool Decoder::ReadRows(uint8_t* first, size_t stride) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  const png_uint_32 height = png_get_image_height(png_, info_);
  for (int pass = 0; pass < passes_; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png_, first + y * stride, nullptr);
  }
  return true;
}

absl::Status DamagedError(const Decoder& decoder) {
  return absl::DataLossError(absl::StrCat("PNG is damaged: ", decoder.error()));
}

// values: `width` of them, big-endian, at the end of the row of RGB that they become: none is overwritten before it was
// read.
void ClipGrey16(const uint8_t* values, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x, values += 2, rgb += 3) {
    std::fill(rgb, rgb + 3, values[0] == 0 ? values[1] : uint8_t{255});
  }
}

}  // namespace

absl::Status DecodePng(absl::string_view bytes, const DecodeLimits& limits, Image* image, Grey16 grey16) {
  Decoder decoder(bytes);
  if (!decoder.ReadHeader()) return DamagedError(decoder);
  const int64_t height = decoder.height();
  const int64_t width = decoder.width();
  SSL_RETURN_IF_ERROR(CheckImageSize(height, width, limits));
  SSL_RETURN_IF_ERROR(CheckClaim(height * static_cast<int64_t>(decoder.row_bytes()), kMostBytesPerByte,
                                 static_cast<int64_t>(bytes.size()), "bytes of pixels"));
  const bool clips = grey16 == Grey16::kClip && decoder.is_grey16();
  if (!decoder.Start(clips)) return DamagedError(decoder);
  const size_t rgb_bytes = static_cast<size_t>(width) * 3;
  const size_t row_bytes = clips ? static_cast<size_t>(width) * 2 : rgb_bytes;
  if (decoder.row_bytes() != row_bytes) {
    return absl::InternalError(
        absl::StrCat("PNG decoder makes rows of ", decoder.row_bytes(), " bytes, expected ", row_bytes));
  }
  uint8_t* pixels = image->Allocate(static_cast<int>(height), static_cast<int>(width), 3);
  const size_t first = rgb_bytes - row_bytes;
  if (!decoder.ReadRows(pixels + first, rgb_bytes)) return DamagedError(decoder);
  for (int64_t y = 0; clips && y < height; ++y, pixels += rgb_bytes) ClipGrey16(pixels + first, width, pixels);
  return absl::OkStatus();
}

bool IsPngOf16Bits(absl::string_view bytes) {
  constexpr size_t kSignatureBytes = 8, kBitDepth = 24;
  return bytes.size() > kBitDepth && bytes[kBitDepth] == 16 &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, kSignatureBytes) == 0;
}

}  // namespace ssl
