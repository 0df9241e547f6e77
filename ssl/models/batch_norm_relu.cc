// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/batch_norm_relu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ssl/core/parallel_for.h"
#include "ssl/kernels/batch_norm_arithmetic.h"
#include "ssl/kernels/batch_norm_relu_by_kernel.h"
#include "ssl/models/channel_kernels.h"
#include "ssl/models/rank_moments.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows that are summed in float before the sum moves to double.
constexpr int64_t kRowsPerFloatSum = 64;
// Floats of a map per task of the thread pool; fixed, so that sums do not depend on the number of threads.
constexpr int64_t kTaskFloats = 1 << 17;

// A map as rows of channels. T: float, or uint16_t for the bits of bfloat16.
template <typename T>
class Rows {
 public:
  explicit Rows(const at::Tensor& map)
      : channels_(map.size(1)), rows_(map.numel() / map.size(1)), data_(static_cast<T*>(map.data_ptr())) {}

  int64_t rows() const { return rows_; }
  int64_t channels() const { return channels_; }
  T* At(int64_t row) const { return data_ + row * channels_; }

 private:
  const int64_t channels_;
  const int64_t rows_;
  T* const data_;
};

// body(T()) for the type of the map's values.
template <typename Body>
auto ForValuesOf(const at::Tensor& map, const Body& body) {
  return map.scalar_type() == at::kBFloat16 ? body(uint16_t()) : body(float());
}

using TaskBody = std::function<void(int64_t task, int64_t begin, int64_t rows)>;
using RowSum = std::function<void(int64_t begin, int64_t rows, float* first, float* second)>;

// How a map is cut into tasks: whole rows, of kTaskFloats floats at most (one row, if that is longer). Whoever keeps
// something for each task and whoever runs the tasks must agree, so both take the numbers from here.
struct Partition {
  Partition(int64_t map_rows, int64_t map_channels)
      : rows(map_rows),
        channels(map_channels),
        task_rows(std::max<int64_t>(1, kTaskFloats / channels)),
        tasks((rows + task_rows - 1) / task_rows) {}

  const int64_t rows;
  const int64_t channels;
  const int64_t task_rows;
  const int64_t tasks;
};

// Calls body for all tasks in parallel, with the task's rows.
void ForTasks(const Partition& map, const TaskBody& body) {
  ParallelFor(map.tasks, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task * map.task_rows;
      body(task, begin, std::min(map.rows - begin, map.task_rows));
    }
  });
}

// Two sums per channel over all rows, in double.
struct ChannelSums {
  std::vector<double> first;
  std::vector<double> second;
};

// add: adds rows to the float sums. Tasks are added up in their order.
ChannelSums SumRows(const Partition& map, const RowSum& add) {
  const int64_t channels = map.channels;
  std::vector<ChannelSums> parts(static_cast<size_t>(map.tasks));
  ForTasks(map, [&](int64_t task, int64_t begin, int64_t rows) {
    ChannelSums& part = parts[static_cast<size_t>(task)];
    part = {std::vector<double>(channels), std::vector<double>(channels)};
    std::vector<float> sums(2 * channels);
    for (int64_t row = 0; row < rows; row += kRowsPerFloatSum) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      add(begin + row, std::min(rows - row, kRowsPerFloatSum), sums.data(), sums.data() + channels);
      for (int64_t c = 0; c < channels; ++c) {
        part.first[c] += sums[c];
        part.second[c] += sums[channels + c];
      }
    }
  });
  ChannelSums total = {std::vector<double>(channels), std::vector<double>(channels)};
  for (const ChannelSums& part : parts) {
    for (size_t c = 0; c < part.first.size(); ++c) {
      total.first[c] += part.first[c];
      total.second[c] += part.second[c];
    }
  }
  return total;
}

// Of this rank's batch.
//
// With the distances u = x - s from a sample s of the channel: mean = s + E[u], variance = E[u^2] - E[u]^2. For s = 0
// the second difference would lose all digits of a channel whose mean is large against its spread.
template <typename T>
ChannelMoments MomentsOfRows(const Rows<T>& x) {
  const int64_t channels = x.channels();
  std::vector<float> first_row(channels);  // sums of distances from a sample stay exact when the mean is large
  Widen(x.At(0), channels, first_row.data());
  const ChannelSums sums = SumRows({x.rows(), channels}, [&](int64_t begin, int64_t rows, float* sum, float* squares) {
    AddMoments(x.At(begin), rows, channels, first_row.data(), sum, squares);
  });
  const double n = static_cast<double>(x.rows());
  const ChannelMoments moments = {at::empty({channels}, at::kDouble), at::empty({channels}, at::kDouble),
                                  at::full({}, n, at::kDouble)};
  for (int64_t c = 0; c < channels; ++c) {
    const double distance = sums.first[c] / n;
    moments.mean.data_ptr<double>()[c] = first_row[c] + distance;
    moments.variance.data_ptr<double>()[c] = std::max(0.0, sums.second[c] / n - distance * distance);
  }
  return moments;
}

struct Statistics {
  at::Tensor mean;            // [C] float
  at::Tensor invstd;          // [C] float
  std::vector<float> scale;   // of the output, by channel
  std::vector<float> offset;  // likewise
  double count;               // values per channel that they are of
};

// Of the batch, on this rank or on all of the layer's group; kTraining also moves the running statistics.
template <typename T>
Statistics BatchStatistics(const BatchNormLayer& layer, const Rows<T>& x, NormMode mode) {
  const int64_t channels = x.channels();
  const auto own = [&x] { return MomentsOfRows(x); };
  const ChannelMoments moments = layer.group == nullptr ? own() : MomentsOfPass(mode, own, *layer.group);
  const double n = *moments.count.data_ptr<double>();
  Statistics statistics = {at::empty({channels}, at::kFloat), at::empty({channels}, at::kFloat),
                           std::vector<float>(channels), std::vector<float>(channels), n};
  float* running_mean = layer.running_mean.data_ptr<float>();
  float* running_var = layer.running_var.data_ptr<float>();
  for (int64_t c = 0; c < channels; ++c) {
    const double variance = moments.variance.data_ptr<double>()[c];
    const ChannelNorm norm = NormOf(moments.mean.data_ptr<double>()[c], variance, layer.eps,
                                    layer.weight.data_ptr<float>()[c], layer.bias.data_ptr<float>()[c]);
    statistics.mean.data_ptr<float>()[c] = norm.mean;
    statistics.invstd.data_ptr<float>()[c] = norm.invstd;
    statistics.scale[c] = norm.scale;
    statistics.offset[c] = norm.offset;
    if (mode != NormMode::kTraining) continue;
    running_mean[c] = MovedStatistic(running_mean[c], layer.momentum, norm.mean);
    running_var[c] = MovedStatistic(running_var[c], layer.momentum, UnbiasedVariance(variance, n));
  }
  return statistics;
}

// Backward (batch_norm_arithmetic.h). ReLU enters before all this, as a mask on g. Where ranks share the batch, n and
// the sums in the input's gradient are over all of them.
struct InputGradient {
  at::Tensor weight;
  at::Tensor bias;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> d;
};

// Of the batch that statistics are of.
ChannelSums SumsOfRanks(const ChannelSums& own, Communicator& group) {
  const auto channels = static_cast<int64_t>(own.first.size());
  const at::Tensor sums = at::empty({2, channels}, at::kDouble);
  std::copy(own.first.begin(), own.first.end(), sums.data_ptr<double>());
  std::copy(own.second.begin(), own.second.end(), sums.data_ptr<double>() + channels);
  const at::Tensor all = SumOverRanks(sums, group);
  const double* const values = all.data_ptr<double>();
  return {std::vector<double>(values, values + channels),
          std::vector<double>(values + channels, values + 2 * channels)};
}

// Sums of g, and of g (x - mean): `own` over this rank's rows, `all` over the batch.
InputGradient SolveGradient(const ChannelSums& own, const ChannelSums& all, const at::Tensor& weight,
                            const Statistics& statistics) {
  const int64_t channels = weight.numel();
  InputGradient gradient = {at::empty({channels}, at::kFloat), at::empty({channels}, at::kFloat),
                            std::vector<float>(channels), std::vector<float>(channels), std::vector<float>(channels)};
  for (int64_t c = 0; c < channels; ++c) {
    const ChannelGradient solved = GradientOf(
        {own.first[c], own.second[c]}, {all.first[c], all.second[c]}, statistics.count, weight.data_ptr<float>()[c],
        statistics.mean.data_ptr<float>()[c], statistics.invstd.data_ptr<float>()[c]);
    gradient.a[c] = solved.a;
    gradient.b[c] = solved.b;
    gradient.d[c] = solved.d;
    gradient.weight.data_ptr<float>()[c] = solved.weight;
    gradient.bias.data_ptr<float>()[c] = solved.bias;
  }
  return gradient;
}

// Who shares the batch, for backward.
struct Batch : public torch::CustomClassHolder {
  Batch(std::shared_ptr<Communicator> ranks, double values) : group(std::move(ranks)), count(values) {}

  const std::shared_ptr<Communicator> group;  // null: nobody
  const double count;                         // values per channel
};

// y = max(0, x * scale + offset + residual); residual may be undefined.
template <typename T>
void WriteOutput(const at::Tensor& input, const at::Tensor& residual, const float* scale, const float* offset,
                 const at::Tensor& output) {
  const Rows<T> x(input);
  const Rows<T> y(output);
  ForTasks({x.rows(), x.channels()}, [&](int64_t, int64_t begin, int64_t rows) {
    const T* const added = residual.defined() ? Rows<T>(residual).At(begin) : nullptr;
    ScaleAddRelu(x.At(begin), added, rows, x.channels(), scale, offset, y.At(begin));
  });
}

// Writes the gradient behind ReLU.
template <typename T>
ChannelSums MaskGradient(const at::Tensor& input, const at::Tensor& output, const at::Tensor& gradient,
                         const float* mean, const at::Tensor& masked) {
  const Rows<T> x(input);
  const Rows<T> y(output);
  const Rows<T> given(gradient);
  const Rows<T> behind(masked);
  return SumRows({x.rows(), x.channels()}, [&](int64_t begin, int64_t rows, float* sum, float* products) {
    MaskAndAddProducts(x.At(begin), y.At(begin), given.At(begin), rows, x.channels(), mean, behind.At(begin), sum,
                       products);
  });
}

// input_gradient may be `masked`.
template <typename T>
void WriteInputGradient(const at::Tensor& input, const at::Tensor& masked, const InputGradient& solved,
                        const at::Tensor& input_gradient) {
  const Rows<T> x(input);
  const Rows<T> behind(masked);
  const Rows<T> out(input_gradient);
  ForTasks({x.rows(), x.channels()}, [&](int64_t, int64_t begin, int64_t rows) {
    CombineGradient(x.At(begin), behind.At(begin), rows, x.channels(), solved.a.data(), solved.b.data(),
                    solved.d.data(), out.At(begin));
  });
}

struct BatchNormReluFunction : public torch::autograd::Function<BatchNormReluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& /*bias*/, const std::optional<at::Tensor>& residual,
                            const BatchNormLayer& layer, NormMode mode) {
    RECORD_FUNCTION("ssl::batch_norm_relu", std::vector<c10::IValue>());
    const Statistics statistics =
        ForValuesOf(input, [&](auto value) { return BatchStatistics(layer, Rows<decltype(value)>(input), mode); });
    const at::Tensor output = at::empty_like(input);
    ForValuesOf(input, [&](auto value) {
      WriteOutput<decltype(value)>(input, residual.value_or(at::Tensor()), statistics.scale.data(),
                                   statistics.offset.data(), output);
    });
    context->save_for_backward({input, output, weight, statistics.mean, statistics.invstd});
    context->saved_data["has_residual"] = residual.has_value();
    context->saved_data["batch"] = c10::IValue::make_capsule(c10::make_intrusive<Batch>(layer.group, statistics.count));
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor given = gradients[0].to(input.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
    // The gradient behind ReLU: also the residual's, and the input of the second pass.
    const at::Tensor masked = at::empty_like(input);
    const ChannelSums sums = ForValuesOf(input, [&](auto value) {
      return MaskGradient<decltype(value)>(input, saved[1], given, saved[3].data_ptr<float>(), masked);
    });
    const auto batch = c10::static_intrusive_pointer_cast<Batch>(context->saved_data["batch"].toCapsule());
    const InputGradient solved = SolveGradient(sums, batch->group == nullptr ? sums : SumsOfRanks(sums, *batch->group),
                                               saved[2], {saved[3], saved[4], {}, {}, batch->count});
    const bool has_residual = context->saved_data["has_residual"].toBool();
    // Without a residual nobody else reads `masked`: it becomes the input's gradient in place.
    const at::Tensor input_gradient = has_residual ? at::empty_like(masked) : masked;
    ForValuesOf(input, [&](auto value) { WriteInputGradient<decltype(value)>(input, masked, solved, input_gradient); });
    return {input_gradient, solved.weight, solved.bias, has_residual ? masked : at::Tensor(),
            at::Tensor(),   at::Tensor()};
  }
};

bool IsFusableMap(const at::Tensor& map) {
  return map.is_cpu() && map.dim() == 4 && map.numel() > 0 && map.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         (map.scalar_type() == at::kFloat || map.scalar_type() == at::kBFloat16);
}

// The sums over ranks are between the kernel's two passes.
bool TakesKernel(const BatchNormLayer& layer, const at::Tensor& map) {
  return layer.group == nullptr && HasBatchNormReluKernel(map);
}

BatchNormTensors TensorsOf(const BatchNormLayer& layer, NormMode mode) {
  BatchNormTensors tensors;
  tensors.weight = layer.weight;
  tensors.bias = layer.bias;
  if (mode == NormMode::kTraining) {
    tensors.running_mean = layer.running_mean;
    tensors.running_variance = layer.running_var;
    tensors.num_batches = layer.num_batches_tracked;
  }
  tensors.momentum = layer.momentum;
  tensors.epsilon = layer.eps;
  return tensors;
}

}  // namespace

bool CanFuseBatchNormRelu(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual) {
  if (input.numel() == input.size(1)) return false;  // one value per channel: the layer says that it cannot be trained
  const auto is_fusable = [&](const at::Tensor& map) { return IsFusableMap(map) || TakesKernel(layer, map); };
  if (!is_fusable(input) || layer.weight.scalar_type() != at::kFloat || layer.weight.device() != input.device()) {
    return false;
  }
  return !residual.defined() || (is_fusable(residual) && residual.sizes() == input.sizes() &&
                                 residual.device() == input.device() && residual.scalar_type() == input.scalar_type());
}

at::Tensor BatchNormRelu(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual,
                         NormMode mode) {
  if (!input.is_cpu()) return BatchNormReluByKernel(input, residual, TensorsOf(layer, mode));
  if (mode == NormMode::kTraining) layer.num_batches_tracked.add_(1);
  const std::optional<at::Tensor> added = residual.defined() ? std::make_optional(residual) : std::nullopt;
  return BatchNormReluFunction::apply(input, layer.weight, layer.bias, added, layer, mode);
}

}  // namespace ssl
