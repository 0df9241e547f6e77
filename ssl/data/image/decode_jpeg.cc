// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE and size_t without including them
// After <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// A block of 64 pixels takes a bit at least, in each of its components.
constexpr int64_t kMostPixelsPerByte = 8 * 64;
// Arithmetic coding packs many blocks into a bit where they are alike: what a plain image may have, not the most.
constexpr int64_t kMostArithmeticPixelsPerByte = int64_t{1} << 16;
// What a progressive JPEG of any size may have.
constexpr int kFewScans = 20;
// Columns beside a region that are decoded as well: at its sides smooth upsampling lacks the neighbours that it has
// within the image.
constexpr int kMarginColumns = 8;

// The library reports an error by a call that must not return. It jumps back to the setjmp of the function that called
// the library; no object with a destructor lives between the two.
struct ErrorState {
  jpeg_error_mgr manager;  // first: the library's pointer to it is one to this struct
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool too_many_scans;
};

[[noreturn]] void JumpOut(j_common_ptr decoder) {
  auto* state = reinterpret_cast<ErrorState*>(decoder->err);
  state->manager.format_message(decoder, state->message);
  std::longjmp(state->jump, 1);
}

void DropMessage(j_common_ptr) {}
// Warnings speak of spoilt pixels; Pillow does not look at them either.
void DropWarning(j_common_ptr, int) {}

// The source is the whole file, so a wish for more bytes means that it was cut off.
boolean RefuseMoreInput(j_decompress_ptr decoder) {
  ERREXIT(decoder, JERR_INPUT_EOF);
  return FALSE;
}

void SkipInput(j_decompress_ptr decoder, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > decoder->src->bytes_in_buffer) ERREXIT(decoder, JERR_INPUT_EOF);
  decoder->src->next_input_byte += count;
  decoder->src->bytes_in_buffer -= count;
}

void DoNothing(j_decompress_ptr) {}

// The library calls it between the rows of a scan. `client_data` is the number of scans that are allowed.
void RefuseMoreScans(j_common_ptr decoder) {
  const auto* state = reinterpret_cast<j_decompress_ptr>(decoder);
  auto* error = reinterpret_cast<ErrorState*>(decoder->err);
  if (state->input_scan_number <= *static_cast<const int*>(decoder->client_data)) return;
  error->too_many_scans = true;
  std::longjmp(error->jump, 1);
}

// Frees the decoder on every way out.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) {
    decoder_.err = jpeg_std_error(&error_.manager);
    error_.manager.error_exit = JumpOut;
    error_.manager.output_message = DropMessage;
    error_.manager.emit_message = DropWarning;
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = DoNothing;
    source_.fill_input_buffer = RefuseMoreInput;
    source_.skip_input_data = SkipInput;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = DoNothing;
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&decoder_); }

  // The three steps. False: error() says why.
  bool ReadHeader();
  bool Start(int max_scans, DecodeMode mode, int reduction);
  // Writes the pixels of `region`, in the coordinates of the reduced image, and maybe some beside it, into those of
  // that image, x 3.
  bool ReadRows(const CropBox& region, uint8_t* pixels);

  bool is_cmyk() const { return decoder_.jpeg_color_space == JCS_CMYK || decoder_.jpeg_color_space == JCS_YCCK; }
  int64_t height() const { return decoder_.image_height; }
  int64_t width() const { return decoder_.image_width; }
  int components() const { return decoder_.num_components; }
  int64_t most_pixels_per_byte() const {
    return decoder_.arith_code ? kMostArithmeticPixelsPerByte : kMostPixelsPerByte;
  }
  const char* error() const { return error_.message; }
  bool too_many_scans() const { return error_.too_many_scans; }
  // Whether the library says that it cannot read such a JPEG, rather than that this one is damaged.
  bool is_of_rare_kind() const;
  // After ReadHeader: what follows the header of the first scan.
  absl::string_view rest() const {
    return {reinterpret_cast<const char*>(source_.next_input_byte), source_.bytes_in_buffer};
  }
  // Whether Start has read the whole file.
  bool has_several_scans() { return jpeg_has_multiple_scans(&decoder_) != FALSE; }

 private:
  // ReadRows between errors, which jump out of it.
  [[gnu::noinline]] void ReadRegion(const CropBox& region, uint8_t* pixels);

  jpeg_decompress_struct decoder_ = {};
  jpeg_source_mgr source_ = {};
  ErrorState error_ = {};
  jpeg_progress_mgr progress_ = {};
  int max_scans_ = 0;
};

// a * b / 255, rounded, as Pillow computes it.
int MultiplyScaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// stored: `width` pixels of inverted C, M, Y, K.
void CmykToRgb(const uint8_t* stored, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x, stored += 4, rgb += 3) {
    const int light = stored[3];
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(light - MultiplyScaled(255 - stored[c], light));
  }
}

bool Decoder::ReadHeader() {
  if (setjmp(error_.jump) != 0) return false;
  jpeg_create_decompress(&decoder_);
  decoder_.src = &source_;
  jpeg_read_header(&decoder_, TRUE);
  return true;
}

// Reads all scans of a progressive JPEG.
bool Decoder::Start(int max_scans, DecodeMode mode, int reduction) {
  max_scans_ = max_scans;
  progress_.progress_monitor = RefuseMoreScans;
  decoder_.progress = &progress_;
  decoder_.client_data = &max_scans_;
  if (setjmp(error_.jump) != 0) return false;
  decoder_.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
  decoder_.do_fancy_upsampling = mode == DecodeMode::kExact ? TRUE : FALSE;
  decoder_.scale_num = 1;
  decoder_.scale_denom = static_cast<unsigned>(reduction);
  jpeg_start_decompress(&decoder_);
  return true;
}

bool Decoder::ReadRows(const CropBox& region, uint8_t* pixels) {
  if (setjmp(error_.jump) != 0) return false;
  ReadRegion(region, pixels);
  return true;
}

void Decoder::ReadRegion(const CropBox& region, uint8_t* pixels) {
  const size_t stride = static_cast<size_t>(decoder_.output_width) * 3;
  JDIMENSION first_column = 0;
  // Where colours have a quarter of the columns, libjpeg-turbo's columns of a part of a reduced image are not those of
  // the whole (decode_region_test).
  const bool cuts_columns = decoder_.scale_denom == 1 || decoder_.max_h_samp_factor <= 2;
  if (cuts_columns && region.width < static_cast<int>(decoder_.output_width)) {
    const int end = std::min<int>(region.left + region.width + kMarginColumns, decoder_.output_width);
    first_column = std::max(region.left - kMarginColumns, 0);
    JDIMENSION columns = end - first_column;
    jpeg_crop_scanline(&decoder_, &first_column, &columns);  // begins at a whole block, no later
  }
  JSAMPROW cmyk = nullptr;
  if (is_cmyk()) {
    auto* common = reinterpret_cast<j_common_ptr>(&decoder_);
    cmyk = decoder_.mem->alloc_sarray(common, JPOOL_IMAGE, decoder_.output_width * 4, 1)[0];
  }
  if (region.top > 0) jpeg_skip_scanlines(&decoder_, region.top);
  const auto end_row = static_cast<JDIMENSION>(region.top + region.height);
  while (decoder_.output_scanline < end_row) {
    uint8_t* output = pixels + decoder_.output_scanline * stride + first_column * 3;
    // Without smooth upsampling two rows are made at once, and a second one that does not fit here is copied.
    JSAMPROW rows[] = {cmyk != nullptr ? cmyk : output, output + stride};
    const JDIMENSION count = cmyk != nullptr ? 1 : std::min<JDIMENSION>(2, end_row - decoder_.output_scanline);
    if (jpeg_read_scanlines(&decoder_, rows, count) == 0) ERREXIT(&decoder_, JERR_INPUT_EOF);
    if (cmyk != nullptr) CmykToRgb(cmyk, decoder_.output_width, output);
  }
  if (end_row == decoder_.output_height) jpeg_finish_decompress(&decoder_);
}

bool Decoder::is_of_rare_kind() const {
  const int code = error_.manager.msg_code;
  return code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION || code == JERR_ARITH_NOTIMPL;
}

// Whether `scan`, from its data on, runs to the end mark with no other marks than those of restarts. The library has
// nothing to refuse behind a region then.
bool RunsToTheEnd(absl::string_view scan) {
  constexpr uint8_t kStuffed = 0, kFill = 0xFF, kEnd = 0xD9, kFirstRestart = 0xD0, kLastRestart = 0xD7;
  size_t at = 0;
  while ((at = scan.find('\xFF', at)) != absl::string_view::npos && at + 1 < scan.size()) {
    const auto mark = static_cast<uint8_t>(scan[at + 1]);
    if (mark == kEnd) return true;
    if (mark != kStuffed && mark != kFill && (mark < kFirstRestart || mark > kLastRestart)) return false;
    at += mark == kFill ? 1 : 2;
  }
  return false;
}

int MaxScans(int64_t pixels, const DecodeLimits& limits) {
  return static_cast<int>(pixels * limits.max_scans <= limits.max_scan_pixels
                              ? limits.max_scans
                              : std::clamp<int64_t>(limits.max_scan_pixels / pixels, kFewScans, limits.max_scans));
}

absl::Status StepError(const Decoder& decoder, int max_scans) {
  if (decoder.is_of_rare_kind()) {
    return absl::UnimplementedError(absl::StrCat("JPEG is of a rare kind: ", decoder.error()));
  }
  if (!decoder.too_many_scans()) return absl::DataLossError(absl::StrCat("JPEG is damaged: ", decoder.error()));
  return absl::ResourceExhaustedError(absl::StrCat("JPEG has more than ", max_scans, " scans, the most at its size"));
}

}  // namespace

absl::Status DecodeJpeg(absl::string_view bytes, const DecodeLimits& limits, DecodeMode mode, NeededRegion needed,
                        Image* image) {
  Decoder decoder(bytes);
  if (!decoder.ReadHeader()) return StepError(decoder, 0);
  SSL_RETURN_IF_ERROR(CheckImageSize(decoder.height(), decoder.width(), limits));
  const int64_t pixels = decoder.height() * decoder.width();
  SSL_RETURN_IF_ERROR(CheckClaim(pixels, decoder.most_pixels_per_byte(), static_cast<int64_t>(bytes.size()), "pixels"));
  const int components = decoder.components();
  if (components != 1 && components != 3 && components != 4) {
    return absl::UnimplementedError(absl::StrCat("JPEG has ", components, " components, expected 1, 3 or 4"));
  }
  const int max_scans = MaxScans(pixels, limits);
  const auto height = static_cast<int>(decoder.height()), width = static_cast<int>(decoder.width());
  NeededPixels pixels_needed = needed(height, width);
  const absl::string_view scan = decoder.rest();
  const int reduction = mode == DecodeMode::kFast ? pixels_needed.reduction : 1;
  if (!decoder.Start(max_scans, mode, reduction)) return StepError(decoder, max_scans);
  // What is wrong behind the region is an error all the same: whether an image counts as broken does not depend on its
  // crops.
  if (!decoder.has_several_scans() && !RunsToTheEnd(scan)) pixels_needed.box = WholeImage(height, width).box;
  uint8_t* output = image->Allocate(height, width, 3, reduction);
  if (!decoder.ReadRows(ReducedBox(pixels_needed.box, reduction), output)) return StepError(decoder, max_scans);
  return absl::OkStatus();
}

}  // namespace ssl
