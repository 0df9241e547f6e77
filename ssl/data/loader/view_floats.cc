// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/view_floats.h"

#include <algorithm>
#include <cstdint>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "ssl/data/image/pixel_avx512.h"
#include "ssl/data/image/vectorize.h"
#include "ssl/data/loader/pixel_order.h"

namespace ssl {
namespace {

// A row is written in pieces whose bytes and floats stay in the processor's first cache.
constexpr int kPiecePixels = 512;
constexpr int kPieceValues = 3 * kPiecePixels;

// Views of so many floats go to memory past the caches, which they would only sweep.
constexpr int64_t kStreamedFloats = 1 << 14;

// Grey pixels into kChannels equal or differently normalised channels.
template <int kChannels>
void LookUpGrey(const uint8_t* pixels, int step, int count, const PixelTable& table, float* floats) {
  for (int i = 0; i < count; ++i, pixels += step, floats += kChannels) {
    for (int c = 0; c < kChannels; ++c) floats[c] = table.values[*pixels][c];
  }
}

void LookUpColour(const uint8_t* pixels, int count, const PixelTable& table, float* floats) {
  for (int i = 0; i < count; ++i, pixels += 3, floats += 3) {
    for (int c = 0; c < 3; ++c) floats[c] = table.values[pixels[c]][c];
  }
}

// The factors of so many values in turn, whole pixels and whole vectors.
struct Factors {
  static constexpr int kValues = 48;

  explicit Factors(const PixelFormula& formula) : scale(formula.scale) {
    for (int i = 0; i < kValues; ++i) {
      mean[i] = formula.mean[i % 3];
      high[i] = formula.inverse_std[i % 3].high;
      low[i] = formula.inverse_std[i % 3].low;
    }
  }
  PixelFormula::Factor scale;
  float mean[kValues];
  float high[kValues];  // of 1 / std
  float low[kValues];
};

// PixelFormula.
SSL_PIXEL_FUNCTION float ToFloat(uint8_t value, const Factors& factors, int i) {
  const float pixel = value;
  const float difference = __builtin_fmaf(pixel, factors.scale.high, pixel * factors.scale.low) - factors.mean[i];
  return __builtin_fmaf(difference, factors.high[i], difference * factors.low[i]);
}

SSL_PIXEL_FUNCTION void ComputeBlock(const uint8_t* values, const Factors& factors, float* __restrict floats) {
  for (int i = 0; i < Factors::kValues; ++i) floats[i] = ToFloat(values[i], factors, i);
}

// count: a multiple of 3.
SSL_VECTORIZE_FUSED
void ComputeColour(const uint8_t* values, int count, const Factors& factors, float* __restrict floats) {
  if (count < Factors::kValues) {
    for (int i = 0; i < count; ++i) floats[i] = ToFloat(values[i], factors, i);
    return;
  }
  // The last block overlaps the one before it.
  const int last = count - Factors::kValues;
  for (int first = 0; first < last; first += Factors::kValues) ComputeBlock(values + first, factors, floats + first);
  ComputeBlock(values + last, factors, floats + last);
}

#ifdef __SSE2__
constexpr int kVectorFloats = 4;

bool CanStream(const View& view, int channels, const float* output) {
  return view.image.width() * channels % kVectorFloats == 0 && reinterpret_cast<uintptr_t>(output) % 16 == 0 &&
         static_cast<int64_t>(view.image.height()) * view.image.width() * channels >= kStreamedFloats;
}

void Stream(const float* floats, int64_t count, float* output) {
  for (int64_t i = 0; i < count; i += kVectorFloats) _mm_stream_ps(output + i, _mm_loadu_ps(floats + i));
}

// What was streamed is seen by other threads before what follows.
void EndStream() { _mm_sfence(); }
#else
bool CanStream(const View&, int, const float*) { return false; }
void Stream(const float* floats, int64_t count, float* output) { std::copy_n(floats, count, output); }
void EndStream() {}
#endif

#ifdef SSL_PIXEL_AVX512
SSL_PIXEL_AVX512 inline __m512 Times(__m512 value, __m512 high, __m512 low) {
  return _mm512_fmadd_ps(value, high, _mm512_mul_ps(value, low));
}

// ComputeColour and Stream at once. count: a multiple of Factors::kValues; output: at a multiple of 64 bytes.
SSL_PIXEL_AVX512
void StreamColour(const uint8_t* values, int count, const Factors& factors, float* output) {
  constexpr int kLanes = 16;
  const __m512 scale_high = _mm512_set1_ps(factors.scale.high), scale_low = _mm512_set1_ps(factors.scale.low);
  for (int first = 0; first < count; first += Factors::kValues) {
    for (int i = 0; i < Factors::kValues; i += kLanes) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + first + i));
      const __m512 pixels = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
      const __m512 difference = _mm512_sub_ps(Times(pixels, scale_high, scale_low), _mm512_loadu_ps(factors.mean + i));
      _mm512_stream_ps(output + first + i,
                       Times(difference, _mm512_loadu_ps(factors.high + i), _mm512_loadu_ps(factors.low + i)));
    }
  }
}

bool CanStreamColour(int count, const float* output) {
  return HasPixelAvx512() && count % Factors::kValues == 0 && reinterpret_cast<uintptr_t>(output) % kVectorBytes == 0;
}
#else
bool CanStreamColour(int, const float*) { return false; }
void StreamColour(const uint8_t*, int, const Factors&, float*) {}
#endif

// Writes parts of the rows of one view, in the order of writing, from pixels where they lie in the image.
class PieceWriter {
 public:
  PieceWriter(const View& view, int channels, bool streams)
      : table_(*view.table),
        image_channels_(view.image.channels()),
        channels_(channels),
        flipped_(view.flipped),
        computes_(view.table->has_formula && FusesFast() && channels == 3),
        streams_(streams),
        factors_(view.table->formula) {}

  void Write(const uint8_t* pixels, int count, float* output) {
    if (!computes_ && image_channels_ == 1) {
      WriteGrey(pixels, count, streams_ ? floats_ : output);
    } else {
      pixels = ColourOf(pixels, count);
      if (streams_ && computes_ && CanStreamColour(3 * count, output)) {
        return StreamColour(pixels, 3 * count, factors_, output);
      }
      WriteColour(pixels, count, streams_ ? floats_ : output);
    }
    if (streams_) Stream(floats_, count * channels_, output);
  }

 private:
  // Pixels of three channels in the order of writing.
  const uint8_t* ColourOf(const uint8_t* pixels, int count) {
    if (image_channels_ == 1) {
      RepeatGrey(pixels, count, repeated_);
      pixels = repeated_;
    }
    if (!flipped_) return pixels;
    MirrorColour(pixels, count, mirrored_);
    return mirrored_;
  }

  void WriteColour(const uint8_t* pixels, int count, float* floats) const {
    if (computes_) {
      ComputeColour(pixels, 3 * count, factors_, floats);
    } else {
      LookUpColour(pixels, count, table_, floats);
    }
  }

  void WriteGrey(const uint8_t* pixels, int count, float* floats) const {
    const int step = flipped_ ? -1 : 1;
    if (flipped_) pixels += count - 1;
    if (channels_ == 3) {
      LookUpGrey<3>(pixels, step, count, table_, floats);
    } else {
      LookUpGrey<1>(pixels, step, count, table_, floats);
    }
  }

  const PixelTable& table_;
  const int image_channels_;
  const int channels_;
  const bool flipped_;
  const bool computes_;
  const bool streams_;
  const Factors factors_;
  uint8_t repeated_[kPieceValues];
  uint8_t mirrored_[kPieceValues];
  float floats_[kPieceValues];  // on their way past the caches
};

}  // namespace

void WriteViewFloats(const View& view, int channels, float* output) {
  const bool streams = CanStream(view, channels, output);
  PieceWriter writer(view, channels, streams);
  const int width = view.image.width();
  for (int y = 0; y < view.image.height(); ++y) {
    for (int first = 0; first < width; first += kPiecePixels) {
      const int count = std::min(width - first, kPiecePixels);
      const int begin = view.flipped ? width - first - count : first;
      writer.Write(view.image.row(y) + static_cast<int64_t>(begin) * view.image.channels(), count, output);
      output += count * channels;
    }
  }
  if (streams) EndStream();
}

}  // namespace ssl
