// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/gather_with_gradient.h"

#include <torch/csrc/autograd/custom_function.h>

#include "ssl/base/collective_check.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr char kCommunicator[] = "communicator";

// Carries a communicator through the graph.
struct CommunicatorHolder : public torch::CustomClassHolder {
  explicit CommunicatorHolder(Communicator* communicator) : communicator(communicator) {}
  Communicator* const communicator;
};

struct Gathered {
  at::Tensor rows;  // [size, ...]
  Communicator* communicator;
};

// Gives what was gathered already its place in the graph.
struct GatherFunction : public torch::autograd::Function<GatherFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const Gathered& gathered) {
    context->saved_data[kCommunicator] =
        c10::IValue::make_capsule(c10::make_intrusive<CommunicatorHolder>(gathered.communicator));
    return gathered.rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data[kCommunicator].toCapsule();
    Communicator& communicator = *static_cast<const CommunicatorHolder&>(*capsule).communicator;
    // A copy: other parts of the graph may read the gradient that they share with us.
    at::Tensor gradient = gradients[0].clone(at::MemoryFormat::Contiguous);
    CheckCollective(communicator.AllReduce(gradient, ReduceOp::kSum), "gradient of gathered rows");
    return {gradient.select(0, communicator.rank()), at::Tensor()};
  }
};

}  // namespace

absl::StatusOr<at::Tensor> GatherWithGradient(const at::Tensor& rows, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(rows.detach()));
  return GatherFunction::apply(rows, Gathered{all, &communicator});
}

}  // namespace ssl
