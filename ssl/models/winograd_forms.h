// SPDX-License-Identifier: Apache-2.0
//
// The matrices of Winograd's minimal filtering F(m, 3) in one dimension, from the points at which Toom and Cook
// multiply polynomials (Lavin and Gray, arXiv 1509.09308, section 5.1; Blahut, Fast Algorithms for Digital Signal
// Processing): m + 2 products for m outputs, one for each point p_i and one for infinity.
//
// With M(x) = (x - p_0) (x - p_1) ..., m outputs y of m + 2 inputs d and 3 taps g are y = A^T [(G g) * (B^T d)]:
//
//   row i of B^T: the coefficients of M(x) / (x - p_i); the last one: those of M
//   row i of G:   1, p_i, p_i^2, divided by M'(p_i); the last one: 0, 0, 1
//   row k of A^T: p_0^k, p_1^k ..., and a 1 at the end of the last row
//
// Rounding grows with the coefficients: points lie close to 0 and 1, in pairs of opposite sign. In two dimensions and
// with 64 channels the root mean square of errors is 0.6, 1.6 and 1.9 times that of oneDNN's convolution for m = 2,
// 3, 4.
#ifndef SSL_MODELS_WINOGRAD_FORMS_H_
#define SSL_MODELS_WINOGRAD_FORMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ssl {

// F(2, 3), exact in its coefficients.
struct TwoOutputs {
  static constexpr std::array<double, 3> kPoints = {0.0, 1.0, -1.0};
};

struct ThreeOutputs {
  static constexpr std::array<double, 4> kPoints = {0.0, 0.75, -0.75, 2.0};
};

struct FourOutputs {
  static constexpr std::array<double, 5> kPoints = {0.0, 0.625, -0.625, 1.5, -1.5};
};

// Both outputs of a map of 2 pixels with a pixel of padding on either side: g_1 (d_0 + d_1) is a part of both, so that
// three products are enough.
struct WholePair {};

// Of a form: taps, products of a side, outputs, inputs, how many of these lie before the first output, and how far the
// inputs of one tile lie from those of the next.
template <typename Form>
inline constexpr size_t kTapsOf = 3;
template <typename Form>
inline constexpr size_t kPositionsOf = Form::kPoints.size() + 1;
template <>
inline constexpr size_t kPositionsOf<WholePair> = 3;
template <typename Form>
inline constexpr size_t kOutputsOf = kPositionsOf<Form> + 1 - kTapsOf<Form>;
template <>
inline constexpr size_t kOutputsOf<WholePair> = 2;
template <typename Form>
inline constexpr size_t kInputsOf = kPositionsOf<Form>;
template <>
inline constexpr size_t kInputsOf<WholePair> = 2;
template <typename Form>
inline constexpr int kBeforeOf = 1;
template <>
inline constexpr int kBeforeOf<WholePair> = 0;
template <typename Form>
inline constexpr int64_t kInputStepOf = kOutputsOf<Form>;

// The coefficients of the product of (x - p) for all points, or all but the one at `left_out`.
template <size_t kCount>
constexpr std::array<double, kCount + 1> ProductOfRoots(const std::array<double, kCount>& points, size_t left_out) {
  std::array<double, kCount + 1> product = {1.0};
  for (size_t i = 0; i < kCount; ++i) {
    if (i == left_out) continue;
    for (size_t power = kCount; power > 0; --power) product[power] = product[power - 1] - points[i] * product[power];
    product[0] *= -points[i];
  }
  return product;
}

constexpr double Power(double base, size_t exponent) {
  double power = 1.0;
  for (size_t i = 0; i < exponent; ++i) power *= base;
  return power;
}

// B^T.
template <typename Form>
struct InputMatrix {
  static constexpr size_t kRows = kPositionsOf<Form>;
  static constexpr size_t kColumns = kPositionsOf<Form>;
  static constexpr double At(size_t row, size_t column) { return ProductOfRoots(Form::kPoints, row)[column]; }
};

// G.
template <typename Form>
struct KernelMatrix {
  static constexpr size_t kRows = kPositionsOf<Form>;
  static constexpr size_t kColumns = kTapsOf<Form>;
  static constexpr double At(size_t row, size_t column) {
    if (row == Form::kPoints.size()) return column + 1 == kColumns ? 1.0 : 0.0;
    double slope = 1.0;
    for (size_t i = 0; i < Form::kPoints.size(); ++i) {
      if (i != row) slope *= Form::kPoints[row] - Form::kPoints[i];
    }
    return Power(Form::kPoints[row], column) / slope;
  }
};

// A^T.
template <typename Form>
struct OutputMatrix {
  static constexpr size_t kRows = kOutputsOf<Form>;
  static constexpr size_t kColumns = kPositionsOf<Form>;
  static constexpr double At(size_t row, size_t column) {
    if (column == Form::kPoints.size()) return row + 1 == kRows ? 1.0 : 0.0;
    return Power(Form::kPoints[column], row);
  }
};

template <size_t kHeight, size_t kWidth>
using Coefficients = std::array<std::array<double, kWidth>, kHeight>;

template <>
struct InputMatrix<WholePair> {
  static constexpr size_t kRows = 3;
  static constexpr size_t kColumns = 2;
  static constexpr Coefficients<3, 2> kValues = {{{1.0, 1.0}, {0.0, 1.0}, {1.0, 0.0}}};
  static constexpr double At(size_t row, size_t column) { return kValues[row][column]; }
};

template <>
struct KernelMatrix<WholePair> {
  static constexpr size_t kRows = 3;
  static constexpr size_t kColumns = 3;
  static constexpr Coefficients<3, 3> kValues = {{{0.0, 1.0, 0.0}, {0.0, -1.0, 1.0}, {1.0, -1.0, 0.0}}};
  static constexpr double At(size_t row, size_t column) { return kValues[row][column]; }
};

template <>
struct OutputMatrix<WholePair> {
  static constexpr size_t kRows = 2;
  static constexpr size_t kColumns = 3;
  static constexpr Coefficients<2, 3> kValues = {{{1.0, 1.0, 0.0}, {1.0, 0.0, 1.0}}};
  static constexpr double At(size_t row, size_t column) { return kValues[row][column]; }
};

template <typename Matrix>
struct TransposeOf {
  static constexpr size_t kRows = Matrix::kColumns;
  static constexpr size_t kColumns = Matrix::kRows;
  static constexpr double At(size_t row, size_t column) { return Matrix::At(column, row); }
};

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_FORMS_H_
