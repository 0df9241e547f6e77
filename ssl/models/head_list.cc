// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/head_list.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/core/registries.h"

namespace ssl {
namespace {

class HeadChain : public Head {
 public:
  explicit HeadChain(std::vector<std::unique_ptr<Head>> heads) : heads_(std::move(heads)) {}

  std::vector<at::Tensor> Forward(const at::Tensor& features) override {
    std::vector<at::Tensor> outputs = {features};
    for (const std::unique_ptr<Head>& head : heads_) outputs = head->Forward(outputs.front());
    return outputs;
  }

  int64_t input_dim() const override { return heads_.front()->input_dim(); }
  int64_t OutputDim(int64_t given) const override {
    for (const std::unique_ptr<Head>& head : heads_) given = head->OutputDim(given);
    return given;
  }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    for (size_t i = 0; i < heads_.size(); ++i) {
      for (ModelTensor& entry : heads_[i]->Tensors()) {
        tensors.push_back({absl::StrCat(i, ".", entry.name), std::move(entry.value), entry.role});
      }
    }
    return tensors;
  }

  void SetTraining(bool training) override {
    for (const std::unique_ptr<Head>& head : heads_) head->SetTraining(training);
  }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    for (const std::unique_ptr<Head>& head : heads_) head->SynchronizeBatchNorm(group);
  }

 private:
  std::vector<std::unique_ptr<Head>> heads_;
};

absl::StatusOr<std::unique_ptr<Head>> BuildHead(const ConfigNode& entry, const std::string& path,
                                                const BuildContext& context) {
  const std::vector<ConfigNode>& items = entry.items();
  if (items.empty() || items.size() > 2 || !items[0].is_scalar() || (items.size() == 2 && !items[1].is_map())) {
    return absl::InvalidArgumentError(absl::StrCat(entry.location().ToString(), ": ", path, " is ", entry.Describe(),
                                                   ", expected [name, {arguments}]"));
  }
  const ConfigNode arguments = items.size() == 2 ? items[1] : ConfigNode::Map(entry.location());
  absl::StatusOr<std::unique_ptr<Head>> head = context.registries.heads.Make(items[0].text(), arguments, context);
  const bool has_place = absl::StrContains(head.status().message(), entry.location().file);
  if (!absl::IsInvalidArgument(head.status()) || has_place) return head;
  return Annotate(head.status(), absl::StrCat(entry.location().ToString(), ": ", path));
}

// The argument of the first head of `entry` that is the width of its input.
std::string WidthArgument(const ConfigNode& entry) {
  const bool is_chain = !entry.items().empty() && entry.items()[0].is_list();
  const std::vector<ConfigNode>& head = is_chain ? entry.items()[0].items() : entry.items();
  for (const auto& [key, value] : head.back().entries()) {
    if (absl::StartsWith(key, "in_")) return key;  // in_dim, in_channels
  }
  return "dims[0]";
}

absl::StatusOr<std::unique_ptr<Head>> BuildChain(const ConfigNode& entry, const std::string& path,
                                                 const BuildContext& context) {
  std::vector<std::unique_ptr<Head>> heads;
  int64_t given = 0;
  for (size_t i = 0; i < entry.items().size(); ++i) {
    const std::string item_path = absl::StrCat(path, "[", i, "]");
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Head> head, BuildHead(entry.items()[i], item_path, context));
    SSL_RETURN_IF_ERROR(CheckHeadTakes(*head, given, "the head before it", entry.items()[i], item_path));
    given = head->OutputDim(head->input_dim() == 0 ? given : head->input_dim());
    heads.push_back(std::move(head));
  }
  return std::make_unique<HeadChain>(std::move(heads));
}

}  // namespace

std::string HeadPath(size_t index) { return absl::StrCat("config.MODEL.HEAD.PARAMS[", index, "]"); }

absl::StatusOr<std::vector<std::unique_ptr<Head>>> BuildHeads(const ConfigNode& params, const BuildContext& context) {
  std::vector<std::unique_ptr<Head>> heads;
  for (size_t i = 0; i < params.items().size(); ++i) {
    const ConfigNode& entry = params.items()[i];
    const bool is_chain = !entry.items().empty() && entry.items()[0].is_list();
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Head> head,
                         is_chain ? BuildChain(entry, HeadPath(i), context) : BuildHead(entry, HeadPath(i), context));
    heads.push_back(std::move(head));
  }
  return heads;
}

absl::Status CheckHeadTakes(const Head& head, int64_t given, const std::string& giver, const ConfigNode& entry,
                            const std::string& path) {
  if (given == 0 || head.input_dim() == 0 || head.input_dim() == given) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(entry.location().ToString(), ": ", path, " takes ", head.input_dim(),
                                                 " features (", WidthArgument(entry), "), ", giver, " gives ", given));
}

}  // namespace ssl
