// SPDX-License-Identifier: Apache-2.0
//
// Augmentation as a kernel runs it: images of 8 bits, a plan for each view (view_plan.h), views of floats. Integers at
// each step are those of the transforms on the host (ssl/data/transforms), so that both make the same view.
//
// Two calls for each view, with the results of the first one in work memory: the first pass of the resize, whose parts
// need nothing of each other, and the rest, for which the threads of a team wait for each other after each step.
#ifndef SSL_KERNELS_AUGMENT_VIEW_H_
#define SSL_KERNELS_AUGMENT_VIEW_H_

#include <cstdint>

#include "ssl/kernels/color_arithmetic.h"
#include "ssl/kernels/host_device.h"
#include "ssl/kernels/pixel_arithmetic.h"
#include "ssl/kernels/resize_arithmetic.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

// Lines that a thread resizes with the same weights.
constexpr int kResizeLines = 8;

// One direction of a resize. A line runs in that direction; position p of its result is the weighted sum of a window.
struct ResizePass {
  ResizeAxis axis;
  bool bicubic = false;
  int lines = 0;
  bool lines_adjacent = false;  // in memory, so that it is for neighbouring threads to have neighbouring lines
  const uint8_t* source = nullptr;
  int64_t source_step = 0;  // between positions, in bytes
  int64_t source_line = 0;  // between lines
  int channels = 3;         // of the source; the result has 3
  uint8_t* result = nullptr;
  int64_t result_step = 0;
  int64_t result_line = 0;

  SSL_HOST_DEVICE int groups() const { return (lines + kResizeLines - 1) / kResizeLines; }
  SSL_HOST_DEVICE int tasks() const { return groups() * axis.out; }
};

SSL_HOST_DEVICE ResizePass RowsPass(const ViewPlan& plan, int columns) {
  ResizePass pass;
  pass.axis = plan.rows;
  pass.bicubic = plan.bicubic;
  pass.lines = columns;
  pass.lines_adjacent = true;
  pass.result_step = 3 * static_cast<int64_t>(columns);
  pass.result_line = 3;
  return pass;
}

SSL_HOST_DEVICE ResizePass ColumnsPass(const ViewPlan& plan, int rows) {
  ResizePass pass;
  pass.axis = plan.columns;
  pass.bicubic = plan.bicubic;
  pass.lines = rows;
  pass.result_step = 3;
  pass.result_line = 3 * static_cast<int64_t>(plan.columns.out);
  return pass;
}

// From the images into the beginning of the view's work.
SSL_HOST_DEVICE ResizePass FirstPass(const ViewPlan& plan, const uint8_t* images, uint8_t* work) {
  ResizePass pass = plan.rows_first ? RowsPass(plan, plan.columns.in) : ColumnsPass(plan, plan.rows.in);
  pass.source = images + plan.source_begin;
  pass.channels = plan.source_channels;
  pass.source_step = plan.rows_first ? plan.source_stride : plan.source_channels;
  pass.source_line = plan.rows_first ? plan.source_channels : plan.source_stride;
  pass.result = work;
  return pass;
}

// From there to `result`, the view's pixels.
SSL_HOST_DEVICE ResizePass SecondPass(const ViewPlan& plan, const uint8_t* work, uint8_t* result) {
  ResizePass pass = plan.rows_first ? ColumnsPass(plan, plan.rows.out) : RowsPass(plan, plan.columns.out);
  pass.source = work;
  pass.source_step = plan.rows_first ? 3 : 3 * static_cast<int64_t>(plan.columns.out);
  pass.source_line = plan.rows_first ? 3 * static_cast<int64_t>(plan.columns.in) : 3;
  pass.result = result;
  return pass;
}

// Position `position` of the lines group, group + groups, group + 2 * groups ...
SSL_TEAM_FUNCTION void ResizeAt(const ResizePass& pass, int position, int group) {
  const int groups = pass.groups();
  const ResizeWindow window = ResizeWindowAt(pass.axis, pass.bicubic, position);
  const double total = SumOfShares(window, pass.bicubic);
  int32_t sums[kResizeLines][3];
  for (auto& sum : sums) sum[0] = sum[1] = sum[2] = 1 << (kResizeWeightBits - 1);
  for (int i = window.begin; i < window.end; ++i) {
    const int32_t weight = ResizeWeight(ResizeShare(window, pass.bicubic, i) / total);
    const uint8_t* pixel = pass.source + i * pass.source_step + group * pass.source_line;
    for (int l = 0; l < kResizeLines; ++l, pixel += groups * pass.source_line) {
      if (group + l * groups >= pass.lines) break;
      for (int c = 0; c < 3; ++c) sums[l][c] += weight * pixel[pass.channels == 3 ? c : 0];
    }
  }
  uint8_t* result = pass.result + position * pass.result_step + group * pass.result_line;
  for (int l = 0; l < kResizeLines; ++l, result += groups * pass.result_line) {
    if (group + l * groups >= pass.lines) break;
    for (int c = 0; c < 3; ++c) result[c] = static_cast<uint8_t>(CutToByte(sums[l][c] >> kResizeWeightBits));
  }
}

// The part of thread `index` of `size`.
SSL_TEAM_FUNCTION void RunResizePass(const ResizePass& pass, int index, int size) {
  const int groups = pass.groups(), tasks = pass.tasks();
  for (int task = index; task < tasks; task += size) {
    if (pass.lines_adjacent) {
      ResizeAt(pass, task / groups, task % groups);
    } else {
      ResizeAt(pass, task % pass.axis.out, task / pass.axis.out);
    }
  }
}

struct ViewNormalization {
  float mean[3] = {};
  float std[3] = {1.0f, 1.0f, 1.0f};
};

// One thread's part of all that follows the first pass.
template <typename Team>
class ViewAugmenter {
 public:
  // work: the view's, with the result of the first pass.
  SSL_TEAM_FUNCTION ViewAugmenter(const Team& team, const ViewPlan& plan, uint8_t* work)
      : team_(team), plan_(plan), work_(work), height_(plan.rows.out), width_(plan.columns.out) {
    other_ = work + ViewWorkBytes(plan) - 3 * plan.num_pixels();
    pixels_ = other_ - 3 * plan.num_pixels();
  }

  // view: [height, width, 3]
  SSL_TEAM_FUNCTION void Run(const ViewNormalization& normalization, float* view) {
    RunResizePass(SecondPass(plan_, work_, pixels_), team_.index(), team_.size());
    team_.Wait();
    for (int i = 0; i < plan_.num_steps;) {
      if (plan_.steps[i].kind == PixelStepKind::kBlur) {
        Blur(plan_.steps[i]);
        ++i;
      } else {
        const int end = EndOfRun(i);
        ApplySteps(i, end);
        i = end;
      }
    }
    WriteFloats(normalization, view);
  }

 private:
  template <typename Visit>
  SSL_TEAM_FUNCTION void ForPixels(Visit visit) const {
    for (int i = team_.index(); i < height_ * width_; i += team_.size()) visit(i);
  }

  SSL_TEAM_FUNCTION PixelColor ColorAt(int pixel) const {
    const uint8_t* color = pixels_ + 3 * static_cast<int64_t>(pixel);
    return {color[0], color[1], color[2]};
  }

  // Of the steps from `begin` on that need no more than each pixel; the first one may be a contrast.
  SSL_TEAM_FUNCTION int EndOfRun(int begin) const {
    int end = begin + 1;
    while (end < plan_.num_steps && plan_.steps[end].kind != PixelStepKind::kBlur &&
           plan_.steps[end].kind != PixelStepKind::kContrast) {
      ++end;
    }
    return end;
  }

  SSL_TEAM_FUNCTION int MeanGrey() const {
    int64_t sum = 0;
    ForPixels([&](int i) { sum += GreyLevel(ColorAt(i)); });
    sum = team_.Sum(sum);
    return static_cast<int>(static_cast<double>(sum) / static_cast<double>(plan_.num_pixels()) + 0.5);
  }

  SSL_TEAM_FUNCTION void ApplySteps(int begin, int end) {
    const int mean_grey = plan_.steps[begin].kind == PixelStepKind::kContrast ? MeanGrey() : 0;
    ForPixels([&](int i) {
      PixelColor color = ColorAt(i);
      for (int step = begin; step < end; ++step) color = AppliedStep(plan_.steps[step], mean_grey, color);
      uint8_t* pixel = pixels_ + 3 * static_cast<int64_t>(i);
      pixel[0] = static_cast<uint8_t>(color.red);
      pixel[1] = static_cast<uint8_t>(color.green);
      pixel[2] = static_cast<uint8_t>(color.blue);
    });
    team_.Wait();
  }

  // Three passes of a box along the rows and three along the columns, each rounded; borders are repeated.
  SSL_TEAM_FUNCTION void Blur(const PixelStep& box) {
    for (int pass = 0; pass < 6; ++pass) {
      const bool along_rows = pass < 3;
      ForPixels([&](int i) {
        const int y = i / width_, x = i - y * width_;
        BlurPixel(box, 3 * static_cast<int64_t>(i), along_rows ? x : y, along_rows ? width_ : height_,
                  along_rows ? 3 : 3 * static_cast<int64_t>(width_));
      });
      team_.Wait();
      uint8_t* const blurred = other_;
      other_ = pixels_;
      pixels_ = blurred;
    }
  }

  // The pixel at `offset` is number `position` of a line of `count`, `step` bytes apart.
  SSL_TEAM_FUNCTION void BlurPixel(const PixelStep& box, int64_t offset, int position, int count, int64_t step) const {
    const uint8_t* line = pixels_ + offset - position * step;
    const auto pixel_at = [&](int i) { return line + (i < 0 ? 0 : i < count ? i : count - 1) * step; };
    uint32_t inner[3] = {}, edges[3] = {};
    for (int i = position - box.amount; i <= position + box.amount; ++i) {
      for (int c = 0; c < 3; ++c) inner[c] += pixel_at(i)[c];
    }
    const uint8_t* before = pixel_at(position - box.amount - 1);
    const uint8_t* after = pixel_at(position + box.amount + 1);
    for (int c = 0; c < 3; ++c) edges[c] = before[c] + static_cast<uint32_t>(after[c]);
    for (int c = 0; c < 3; ++c) {
      other_[offset + c] =
          static_cast<uint8_t>((box.weight * inner[c] + box.edge_weight * edges[c] + (1u << 23)) >> 24);
    }
  }

  SSL_TEAM_FUNCTION void WriteFloats(const ViewNormalization& normalization, float* view) const {
    ForPixels([&](int i) {
      const int y = i / width_, x = i - y * width_;
      const int column = plan_.flipped ? width_ - 1 - x : x;
      float* values = view + 3 * (static_cast<int64_t>(y) * width_ + column);
      const uint8_t* pixel = pixels_ + 3 * static_cast<int64_t>(i);
      for (int c = 0; c < 3; ++c) values[c] = NormalizedPixel(pixel[c], normalization.mean[c], normalization.std[c]);
    });
  }

  const Team team_;
  const ViewPlan& plan_;
  const uint8_t* const work_;
  const int height_;
  const int width_;
  uint8_t* pixels_;
  uint8_t* other_;  // of the same size, for a step's result
};

}  // namespace ssl

#endif  // SSL_KERNELS_AUGMENT_VIEW_H_
