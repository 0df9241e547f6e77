// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/channel_kernels.h"

#include <algorithm>
#include <cstring>

// One version of the function per instruction set, chosen when the program is loaded, and everything that it calls
// within it.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SSL_SIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#define SSL_INLINE inline __attribute__((always_inline))
#else
#define SSL_SIMD_CLONES
#define SSL_INLINE inline
#endif

namespace ssl {
namespace {

// As many floats as a register of AVX-512 holds. Where registers are smaller, the compiler takes several.
constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));
// Groups of channels have this many registers at most: their sums stay in registers from row to row, and the additions
// of one group do not wait for each other.
constexpr int kMostRegisters = 4;

// Reading and writing one register, or one value where channels are left over. Vectors go by reference: by value their
// calling convention would depend on the instruction set.
SSL_INLINE void Load(const float* from, Floats& out) { std::memcpy(&out, from, sizeof(out)); }
SSL_INLINE void Load(const float* from, float& out) { out = *from; }
SSL_INLINE void Load(const uint16_t* from, Floats& out) {
  Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  const Words bits = __builtin_convertvector(halves, Words) << 16;
  std::memcpy(&out, &bits, sizeof(out));
}
SSL_INLINE void Load(const uint16_t* from, float& out) {
  const uint32_t bits = static_cast<uint32_t>(*from) << 16;
  std::memcpy(&out, &bits, sizeof(out));
}

// Bits: Words or uint32_t. To nearest even; a NaN keeps its high bits and a bit that says so.
template <typename Bits>
SSL_INLINE void RoundToHalf(Bits& bits) {
  const Bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const Bits quiet = bits | 0x00400000u;
  bits = ((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16;
}

SSL_INLINE void Store(const Floats& value, float* to) { std::memcpy(to, &value, sizeof(value)); }
SSL_INLINE void Store(const float& value, float* to) { *to = value; }
SSL_INLINE void Store(const Floats& value, uint16_t* to) {
  Words bits;
  std::memcpy(&bits, &value, sizeof(bits));
  RoundToHalf(bits);
  const Halves halves = __builtin_convertvector(bits, Halves);
  std::memcpy(to, &halves, sizeof(halves));
}
SSL_INLINE void Store(const float& value, uint16_t* to) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  RoundToHalf(bits);
  *to = static_cast<uint16_t>(bits);
}

template <typename Value>
constexpr int64_t kLanesOf = sizeof(Value) / sizeof(float);

// A pass has what it needs of `kCount` registers of channels, and works on them row by row. Value: Floats or float.
template <typename Value, int kCount>
struct Channels {
  SSL_INLINE explicit Channels(const float* from) {
    for (int i = 0; i < kCount; ++i) Load(from + i * kLanesOf<Value>, values[i]);
  }
  SSL_INLINE void StoreTo(float* to) const {
    for (int i = 0; i < kCount; ++i) Store(values[i], to + i * kLanesOf<Value>);
  }

  Value values[kCount];
};

// Calls Pass::Run<Value, count>(c, begin, end, channels, arguments...) for groups of channels from c on and rows
// [begin, end): all of them where a few groups are a row, and row by row where rows are long, since reading parts of
// many rows is slower than keeping sums in memory.
template <typename Pass, typename... Arguments>
SSL_INLINE void ForChannels(int64_t rows, int64_t channels, Arguments... arguments) {
  const int64_t step = channels <= kMostRegisters * kLanes ? rows : 1;
  for (int64_t begin = 0; begin < rows; begin += step) {
    int64_t c = 0;
    for (; c + kMostRegisters * kLanes <= channels; c += kMostRegisters * kLanes) {
      Pass::template Run<Floats, kMostRegisters>(c, begin, begin + step, channels, arguments...);
    }
    for (; c + 2 * kLanes <= channels; c += 2 * kLanes) {
      Pass::template Run<Floats, 2>(c, begin, begin + step, channels, arguments...);
    }
    for (; c + kLanes <= channels; c += kLanes) {
      Pass::template Run<Floats, 1>(c, begin, begin + step, channels, arguments...);
    }
    for (; c < channels; ++c) Pass::template Run<float, 1>(c, begin, begin + step, channels, arguments...);
  }
}

struct MomentsPass {
  template <typename Value, int kCount, typename T>
  SSL_INLINE static void Run(int64_t c, int64_t begin, int64_t end, int64_t channels, const T* x, const float* shift,
                             float* sum, float* squares) {
    const Channels<Value, kCount> shifts(shift + c);
    Channels<Value, kCount> sums(sum + c);
    Channels<Value, kCount> of_squares(squares + c);
    for (int64_t row = begin; row < end; ++row) {
      for (int i = 0; i < kCount; ++i) {
        Value distance;
        Load(x + row * channels + c + i * kLanesOf<Value>, distance);
        distance -= shifts.values[i];
        sums.values[i] += distance;
        of_squares.values[i] += distance * distance;
      }
    }
    sums.StoreTo(sum + c);
    of_squares.StoreTo(squares + c);
  }
};

struct ReluPass {
  template <typename Value, int kCount, typename T>
  SSL_INLINE static void Run(int64_t c, int64_t begin, int64_t end, int64_t channels, const T* x, const T* residual,
                             const float* scale, const float* offset, T* y) {
    const Channels<Value, kCount> scales(scale + c);
    const Channels<Value, kCount> offsets(offset + c);
    const Value zero = {};
    for (int64_t row = begin; row < end; ++row) {
      for (int i = 0; i < kCount; ++i) {
        const int64_t at = row * channels + c + i * kLanesOf<Value>;
        Value value;
        Load(x + at, value);
        value = value * scales.values[i] + offsets.values[i];
        if (residual != nullptr) {
          Value added;
          Load(residual + at, added);
          value += added;
        }
        value = value < zero ? zero : value;  // keeps NaN
        Store(value, y + at);
      }
    }
  }
};

struct MaskPass {
  template <typename Value, int kCount, typename T>
  SSL_INLINE static void Run(int64_t c, int64_t begin, int64_t end, int64_t channels, const T* x, const T* y,
                             const T* gradient, const float* mean, T* masked, float* sum, float* products) {
    const Channels<Value, kCount> means(mean + c);
    Channels<Value, kCount> sums(sum + c);
    Channels<Value, kCount> of_products(products + c);
    const Value zero = {};
    for (int64_t row = begin; row < end; ++row) {
      for (int i = 0; i < kCount; ++i) {
        const int64_t at = row * channels + c + i * kLanesOf<Value>;
        Value value, output, behind;
        Load(x + at, value);
        Load(y + at, output);
        Load(gradient + at, behind);
        behind = output <= zero ? zero : behind;
        Store(behind, masked + at);
        sums.values[i] += behind;
        of_products.values[i] += behind * (value - means.values[i]);
      }
    }
    sums.StoreTo(sum + c);
    of_products.StoreTo(products + c);
  }
};

struct CombinePass {
  template <typename Value, int kCount, typename T>
  SSL_INLINE static void Run(int64_t c, int64_t begin, int64_t end, int64_t channels, const T* x, const T* gradient,
                             const float* a, const float* b, const float* d, T* out) {
    const Channels<Value, kCount> as(a + c);
    const Channels<Value, kCount> bs(b + c);
    const Channels<Value, kCount> ds(d + c);
    for (int64_t row = begin; row < end; ++row) {
      for (int i = 0; i < kCount; ++i) {
        const int64_t at = row * channels + c + i * kLanesOf<Value>;
        Value value, behind;
        Load(x + at, value);
        Load(gradient + at, behind);
        Store(behind * as.values[i] + value * bs.values[i] + ds.values[i], out + at);
      }
    }
  }
};

}  // namespace

void Widen(const float* values, int64_t count, float* out) { std::copy_n(values, count, out); }

void Widen(const uint16_t* values, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) Load(values + i, out[i]);
}

SSL_SIMD_CLONES void AddMoments(const float* x, int64_t rows, int64_t channels, const float* shift, float* sum,
                                float* squares) {
  ForChannels<MomentsPass>(rows, channels, x, shift, sum, squares);
}

SSL_SIMD_CLONES void AddMoments(const uint16_t* x, int64_t rows, int64_t channels, const float* shift, float* sum,
                                float* squares) {
  ForChannels<MomentsPass>(rows, channels, x, shift, sum, squares);
}

SSL_SIMD_CLONES void ScaleAddRelu(const float* x, const float* residual, int64_t rows, int64_t channels,
                                  const float* scale, const float* offset, float* y) {
  ForChannels<ReluPass>(rows, channels, x, residual, scale, offset, y);
}

SSL_SIMD_CLONES void ScaleAddRelu(const uint16_t* x, const uint16_t* residual, int64_t rows, int64_t channels,
                                  const float* scale, const float* offset, uint16_t* y) {
  ForChannels<ReluPass>(rows, channels, x, residual, scale, offset, y);
}

SSL_SIMD_CLONES void MaskAndAddProducts(const float* x, const float* y, const float* gradient, int64_t rows,
                                        int64_t channels, const float* mean, float* masked, float* sum,
                                        float* products) {
  ForChannels<MaskPass>(rows, channels, x, y, gradient, mean, masked, sum, products);
}

SSL_SIMD_CLONES void MaskAndAddProducts(const uint16_t* x, const uint16_t* y, const uint16_t* gradient, int64_t rows,
                                        int64_t channels, const float* mean, uint16_t* masked, float* sum,
                                        float* products) {
  ForChannels<MaskPass>(rows, channels, x, y, gradient, mean, masked, sum, products);
}

SSL_SIMD_CLONES void CombineGradient(const float* x, const float* gradient, int64_t rows, int64_t channels,
                                     const float* a, const float* b, const float* d, float* out) {
  ForChannels<CombinePass>(rows, channels, x, gradient, a, b, d, out);
}

SSL_SIMD_CLONES void CombineGradient(const uint16_t* x, const uint16_t* gradient, int64_t rows, int64_t channels,
                                     const float* a, const float* b, const float* d, uint16_t* out) {
  ForChannels<CombinePass>(rows, channels, x, gradient, a, b, d, out);
}

}  // namespace ssl
