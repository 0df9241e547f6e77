// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/pixel_table.h"

#include <algorithm>
#include <cstddef>

namespace ssl {
namespace {

PixelFormula::Factor Reciprocal(float divisor) {
  const double reciprocal = 1.0 / static_cast<double>(divisor);
  PixelFormula::Factor factor;
  factor.high = static_cast<float>(reciprocal);
  factor.low = static_cast<float>(reciprocal - static_cast<double>(factor.high));
  return factor;
}

// L*a*b* has an offset before the mean, which a formula has not.
PixelFormula FormulaFor(PixelFloats floats) {
  PixelFormula formula;
  if (floats == PixelFloats::kUnit) formula.scale = Reciprocal(255.0f);
  return formula;
}

bool IsExact(const PixelTable& table) {
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int channel = 0; channel < 4; ++channel) {
      if (table.formula(pixel, channel) != table.values[pixel][channel]) return false;
    }
  }
  return true;
}

void SetFormula(const PixelFormula& formula, PixelTable* table) {
  table->formula = formula;
  table->has_formula = IsExact(*table);
}

}  // namespace

PixelTable MakeToTensorTable() {
  PixelTable table;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel) / 255.0f;
  }
  table.mean = {0.0};
  table.std = {1.0};
  SetFormula(FormulaFor(table.floats), &table);
  return table;
}

PixelTable MakeRawTable() {
  PixelTable table;
  table.floats = PixelFloats::kRaw;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel);
  }
  SetFormula(FormulaFor(table.floats), &table);
  return table;
}

PixelTable MakeLabTable() {
  PixelTable table;
  table.floats = PixelFloats::kLab;
  table.channels = 3;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel) - 128.0f;
    table.values[pixel][0] = static_cast<float>(pixel) * static_cast<float>(100.0 / 255.0) - 50.0f;
  }
  return table;
}

PixelTable MakeFloatsTable(PixelFloats floats) {
  if (floats == PixelFloats::kRaw) return MakeRawTable();
  return floats == PixelFloats::kLab ? MakeLabTable() : MakeToTensorTable();
}

PixelTable MakeNormalizeTable(const std::vector<double>& mean, const std::vector<double>& std, PixelFloats floats) {
  PixelTable table = MakeFloatsTable(floats);
  table.channels = std::max(table.channels, static_cast<int>(mean.size()));
  table.normalized = true;
  if (floats == PixelFloats::kUnit) {
    table.mean = mean;
    table.std = std;
  }
  PixelFormula formula = FormulaFor(floats);
  for (size_t column = 0; column < 4; ++column) {
    // One rule stands for all channels.
    const size_t rule = column < mean.size() ? column : 0;
    formula.mean[column] = static_cast<float>(mean[rule]);
    formula.inverse_std[column] = Reciprocal(static_cast<float>(std[rule]));
    for (auto& values : table.values) {
      values[column] = (values[column] - static_cast<float>(mean[rule])) / static_cast<float>(std[rule]);
    }
  }
  SetFormula(formula, &table);
  return table;
}

}  // namespace ssl
