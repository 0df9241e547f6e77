// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/recompute.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

#include "ssl/base/default_generators.h"
#include "ssl/core/autocast.h"
#include "ssl/core/generator_scope.h"
#include "ssl/models/rank_moments.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the second pass needs besides tensors.
struct Replay : public torch::CustomClassHolder {
  Replay(const Recomputable& recomputable, Autocast autocast_format, at::Tensor generator)
      : part(recomputable), autocast(autocast_format), generator_state(std::move(generator)) {}

  const Recomputable part;
  const Autocast autocast;
  const at::Tensor generator_state;  // before the first pass
  MomentsRecord moments;             // of the first pass
};

// The second pass: a graph of its own from `input` and the parameters on.
at::Tensor RunAgain(Replay& replay, const at::Tensor& input) {
  const at::AutoGradMode with_gradients(true);
  const GeneratorScope generator(replay.generator_state);
  const AutocastScope autocast(replay.autocast);
  replay.moments.Rewind();
  return replay.part.run(input, NormMode(NormMode::kRecompute, &replay.moments));
}

struct RecomputeFunction : public torch::autograd::Function<RecomputeFunction> {
  // parameters: those of the part that need a gradient; their nodes become inputs of this one.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, at::TensorList parameters,
                            const c10::intrusive_ptr<Replay>& replay) {
    variable_list saved = parameters.vec();
    saved.push_back(input);
    context->save_for_backward(std::move(saved));
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    // A short copy of a weight that autocast kept here would have no gradient where it is found again.
    const AutocastScope own_cache(replay->autocast);
    return replay->part.run(input, NormMode(NormMode::kTraining, &replay->moments));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list inputs = context->get_saved_variables();
    const at::Tensor given = inputs.back();
    const auto replay = c10::static_intrusive_pointer_cast<Replay>(context->saved_data["replay"].toCapsule());
    const bool input_needs_gradient = context->needs_input_grad(0);
    const at::Tensor input = given.detach().requires_grad_(input_needs_gradient);
    inputs.back() = input;
    if (!input_needs_gradient) inputs.pop_back();
    variable_list found = torch::autograd::grad({RunAgain(*replay, input)}, inputs, {gradients[0]},
                                                /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                                /*allow_unused=*/true);
    if (replay->part.after_gradients) replay->part.after_gradients();
    // In the order of forward's arguments.
    variable_list result = {input_needs_gradient ? found.back() : at::Tensor()};
    if (input_needs_gradient) found.pop_back();
    result.insert(result.end(), found.begin(), found.end());
    result.emplace_back();
    return result;
  }
};

}  // namespace

at::Tensor RunAndRecompute(const Recomputable& part, const at::Tensor& input) {
  if (!at::GradMode::is_enabled()) return part.run(input, NormMode::kTraining);
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : part.parameters) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  auto replay = c10::make_intrusive<Replay>(part, CurrentAutocast(), GeneratorState());
  return RecomputeFunction::apply(input, at::TensorList(trained), replay);
}

}  // namespace ssl
