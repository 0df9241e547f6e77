// SPDX-License-Identifier: Apache-2.0
//
// The matrices of a convolution of 3 taps with stride 2 in one dimension, and of the gradient of its input:
//
//   y_i = g_0 d_(2i-1) + g_1 d_2i + g_2 d_(2i+1)
//   dd_2i = g_1 dy_i,  dd_(2i+1) = g_2 dy_i + g_0 dy_(i+1)
//
// Odd inputs meet two taps: m outputs of theirs are F(m, 2), with m + 1 products (winograd_forms.h). Even ones meet one
// tap, with a product for each output. Together 2 m + 1 instead of 3 m, in this order.
#ifndef SSL_MODELS_WINOGRAD_STRIDED_FORMS_H_
#define SSL_MODELS_WINOGRAD_STRIDED_FORMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "ssl/models/winograd_forms.h"

namespace ssl {

// F(2, 2) and F(3, 2): with these points their coefficients are exact or halves.
struct TwoOutputsOfPairs {
  static constexpr std::array<double, 2> kPoints = {0.0, 1.0};
};

struct ThreeOutputsOfPairs {
  static constexpr std::array<double, 3> kPoints = {0.0, 1.0, -1.0};
};

template <>
inline constexpr size_t kTapsOf<TwoOutputsOfPairs> = 2;
template <>
inline constexpr size_t kTapsOf<ThreeOutputsOfPairs> = 2;

// From input to output. Pairs: the form of the odd inputs.
template <typename Pairs>
struct Strided {};

// From the gradient of the output to that of the input, with the taps in reverse order.
template <typename Pairs>
struct StridedGradient {};

template <typename Pairs>
inline constexpr size_t kPositionsOf<Strided<Pairs>> = kPositionsOf<Pairs> + kOutputsOf<Pairs>;
template <typename Pairs>
inline constexpr size_t kOutputsOf<Strided<Pairs>> = kOutputsOf<Pairs>;
template <typename Pairs>
inline constexpr int64_t kInputStepOf<Strided<Pairs>> = 2 * kOutputsOf<Pairs>;

template <typename Pairs>
inline constexpr size_t kPositionsOf<StridedGradient<Pairs>> = kPositionsOf<Strided<Pairs>>;
template <typename Pairs>
inline constexpr size_t kOutputsOf<StridedGradient<Pairs>> = 2 * kOutputsOf<Pairs>;
template <typename Pairs>
inline constexpr size_t kInputsOf<StridedGradient<Pairs>> = kPositionsOf<Pairs>;
template <typename Pairs>
inline constexpr int kBeforeOf<StridedGradient<Pairs>> = 0;
template <typename Pairs>
inline constexpr int64_t kInputStepOf<StridedGradient<Pairs>> = kOutputsOf<Pairs>;

// B^T. The first column is an odd input.
template <typename Pairs>
struct InputMatrix<Strided<Pairs>> {
  static constexpr size_t kRows = kPositionsOf<Strided<Pairs>>;
  static constexpr size_t kColumns = kInputsOf<Strided<Pairs>>;
  static constexpr double At(size_t row, size_t column) {
    constexpr size_t kOfPairs = kPositionsOf<Pairs>;
    if (row >= kOfPairs) return column == 2 * (row - kOfPairs) + 1 ? 1.0 : 0.0;
    return column % 2 == 0 ? InputMatrix<Pairs>::At(row, column / 2) : 0.0;
  }
};

template <typename Pairs>
struct InputMatrix<StridedGradient<Pairs>> {
  static constexpr size_t kRows = kPositionsOf<StridedGradient<Pairs>>;
  static constexpr size_t kColumns = kInputsOf<StridedGradient<Pairs>>;
  static constexpr double At(size_t row, size_t column) {
    constexpr size_t kOfPairs = kPositionsOf<Pairs>;
    if (row >= kOfPairs) return column == row - kOfPairs ? 1.0 : 0.0;
    return InputMatrix<Pairs>::At(row, column);
  }
};

// G.
template <typename Pairs>
struct KernelMatrix<Strided<Pairs>> {
  static constexpr size_t kRows = kPositionsOf<Strided<Pairs>>;
  static constexpr size_t kColumns = 3;
  static constexpr double At(size_t row, size_t column) {
    if (row >= kPositionsOf<Pairs>) return column == 1 ? 1.0 : 0.0;
    return column == 1 ? 0.0 : KernelMatrix<Pairs>::At(row, column / 2);
  }
};

template <typename Pairs>
struct KernelMatrix<StridedGradient<Pairs>> : KernelMatrix<Strided<Pairs>> {};

// A^T.
template <typename Pairs>
struct OutputMatrix<Strided<Pairs>> {
  static constexpr size_t kRows = kOutputsOf<Strided<Pairs>>;
  static constexpr size_t kColumns = kPositionsOf<Strided<Pairs>>;
  static constexpr double At(size_t row, size_t column) {
    constexpr size_t kOfPairs = kPositionsOf<Pairs>;
    if (column >= kOfPairs) return column - kOfPairs == row ? 1.0 : 0.0;
    return OutputMatrix<Pairs>::At(row, column);
  }
};

// The first row is an even input's.
template <typename Pairs>
struct OutputMatrix<StridedGradient<Pairs>> {
  static constexpr size_t kRows = kOutputsOf<StridedGradient<Pairs>>;
  static constexpr size_t kColumns = kPositionsOf<StridedGradient<Pairs>>;
  static constexpr double At(size_t row, size_t column) {
    constexpr size_t kOfPairs = kPositionsOf<Pairs>;
    if (column >= kOfPairs) return row == 2 * (column - kOfPairs) ? 1.0 : 0.0;
    return row % 2 == 1 ? OutputMatrix<Pairs>::At(row / 2, column) : 0.0;
  }
};

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_STRIDED_FORMS_H_
