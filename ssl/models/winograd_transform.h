// SPDX-License-Identifier: Apache-2.0
//
// Small matrices of constants times vectors of 16 floats, unrolled, for winograd_kernels.cc. All of it becomes a part
// of the function that calls it, in its instruction set.
#ifndef SSL_MODELS_WINOGRAD_TRANSFORM_H_
#define SSL_MODELS_WINOGRAD_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define SSL_INLINE inline __attribute__((always_inline))

namespace ssl {

inline constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

// Vectors go by reference: by value their calling convention would depend on the instruction set.
SSL_INLINE void Load(const float* from, Floats& out) { std::memcpy(&out, from, sizeof(out)); }
SSL_INLINE void Store(const Floats& value, float* to) { std::memcpy(to, &value, sizeof(value)); }

// The first column of a row that is not zero.
template <typename Matrix>
constexpr size_t FirstColumn(size_t row) {
  size_t column = 0;
  while (column < Matrix::kColumns && Matrix::At(row, column) == 0.0) ++column;
  return column;
}

template <typename Matrix, size_t kRow, size_t kColumn>
SSL_INLINE void AddTerm(const Floats* in, Floats& sum) {
  constexpr double kExact = Matrix::At(kRow, kColumn);
  constexpr float kFactor = static_cast<float>(kExact);
  if constexpr (kColumn == FirstColumn<Matrix>(kRow)) {
    sum = in[kColumn];
    if constexpr (kFactor == -1.0f) sum = -sum;
    if constexpr (kFactor != 1.0f && kFactor != -1.0f) sum *= kFactor;
  } else if constexpr (kFactor == 1.0f) {
    sum += in[kColumn];
  } else if constexpr (kFactor == -1.0f) {
    sum -= in[kColumn];
  } else if constexpr (kFactor != 0.0f) {
    sum += in[kColumn] * kFactor;
  }
}

template <typename Matrix, size_t kRow, size_t... kColumn>
SSL_INLINE void ApplyRow(const Floats* in, Floats& out, std::index_sequence<kColumn...>) {
  (AddTerm<Matrix, kRow, kColumn>(in, out), ...);
}

template <typename Matrix, size_t... kRow>
SSL_INLINE void ApplyRows(const Floats* in, Floats* out, std::index_sequence<kRow...>) {
  (ApplyRow<Matrix, kRow>(in, out[kRow], std::make_index_sequence<Matrix::kColumns>()), ...);
}

// out = matrix in.
template <typename Matrix>
SSL_INLINE void Apply(const Floats* in, Floats* out) {
  ApplyRows<Matrix>(in, out, std::make_index_sequence<Matrix::kRows>());
}

// Where the values of a small square matrix are. Pixels may be null: those are not written.
template <typename Float>
struct AtPixels {
  Float* const* pixels;
  int64_t channel;

  SSL_INLINE void Read(size_t i, Floats& value) const { Load(pixels[i] + channel, value); }
  SSL_INLINE void Write(size_t i, const Floats& value) const {
    if (pixels[i] != nullptr) Store(value, pixels[i] + channel);
  }
};

template <typename Float>
struct AtStride {
  Float* first;
  int64_t stride;

  SSL_INLINE void Read(size_t i, Floats& value) const { Load(first + static_cast<int64_t>(i) * stride, value); }
  SSL_INLINE void Write(size_t i, const Floats& value) const { Store(value, first + static_cast<int64_t>(i) * stride); }
};

// to = matrix from matrix^T.
template <typename Matrix, typename Source, typename Target>
SSL_INLINE void Transform(const Source& from, const Target& to) {
  constexpr size_t kIn = Matrix::kColumns;
  constexpr size_t kOut = Matrix::kRows;
  Floats columns[kIn][kOut];
#pragma GCC unroll 7
  for (size_t j = 0; j < kIn; ++j) {
    Floats column[kIn];
#pragma GCC unroll 7
    for (size_t i = 0; i < kIn; ++i) from.Read(i * kIn + j, column[i]);
    Apply<Matrix>(column, columns[j]);
  }
#pragma GCC unroll 7
  for (size_t i = 0; i < kOut; ++i) {
    Floats row[kIn];
    Floats result[kOut];
#pragma GCC unroll 7
    for (size_t j = 0; j < kIn; ++j) row[j] = columns[j][i];
    Apply<Matrix>(row, result);
#pragma GCC unroll 7
    for (size_t j = 0; j < kOut; ++j) to.Write(i * kOut + j, result[j]);
  }
}

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_TRANSFORM_H_
