// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model_factory.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"
#include "ssl/models/activation_checkpointing.h"
#include "ssl/models/batch_norm_group.h"
#include "ssl/models/feature_pool.h"
#include "ssl/models/fsdp_config.h"
#include "ssl/models/head_list.h"
#include "ssl/models/head_section.h"
#include "ssl/models/input_mapping.h"
#include "ssl/models/model_section.h"
#include "ssl/models/ssl_model.h"

namespace ssl {
namespace {

constexpr char kEvalPath[] = "config.MODEL.FEATURE_EVAL_SETTINGS";

template <class Section>
absl::StatusOr<Section> ReadSection(const ConfigNode& model, const std::string& name) {
  Section section;
  const std::string path = absl::StrCat("config.MODEL", name.empty() ? "" : ".", name);
  SSL_RETURN_IF_ERROR(ReadOptions(model.Section(name), path, UnknownKeys::kIgnore, &section));
  return section;
}

InputChannelOrder ChannelOrderOf(const std::string& input_type) {
  static const auto* const orders = new std::map<std::string, InputChannelOrder>{
      {"rgb", InputChannelOrder::kRgb}, {"bgr", InputChannelOrder::kBgr}, {"lab", InputChannelOrder::kLab}};
  return orders->at(input_type);
}

// Trunks know values, not places: what they refuse begins with its key.
absl::Status WithPlace(const absl::Status& refusal, const ConfigNode& config) {
  absl::string_view key = refusal.message();
  if (!absl::ConsumePrefix(&key, "config.")) return refusal;
  const ConfigNode* node = config.FindPath(key.substr(0, key.find(' ')));
  if (node == nullptr || node->location().file.empty()) return refusal;
  return Annotate(refusal, node->location().ToString());
}

absl::StatusOr<std::unique_ptr<Trunk>> BuildTrunk(const ConfigNode& model, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const TrunkSection section, ReadSection<TrunkSection>(model, "TRUNK"));
  const ConfigNode* const node = model.Find("TRUNK");
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = context.registries.trunks.Make(
      section.name, node != nullptr ? *node : ConfigNode::Map(model.location()), context);
  if (!trunk.ok()) return WithPlace(trunk.status(), context.config);
  return trunk;
}

// Sets what is frozen and which features the heads get.
absl::Status ReadEvaluation(const ConfigNode& model, const FeatureEvalSection& section, const Trunk& trunk,
                            SslModelOptions* options) {
  if (section.eval_mode_on && section.freeze_trunk_only && section.freeze_trunk_and_head) {
    return absl::InvalidArgumentError(absl::StrCat(model.Section("FEATURE_EVAL_SETTINGS").location().ToString(), ": ",
                                                   kEvalPath,
                                                   " has FREEZE_TRUNK_ONLY and FREEZE_TRUNK_AND_HEAD true, "
                                                   "expected one of them"));
  }
  options->freeze_heads = section.eval_mode_on && section.freeze_trunk_and_head;
  options->freeze_trunk = section.eval_mode_on && (section.freeze_trunk_only || section.freeze_trunk_and_head);
  SSL_ASSIGN_OR_RETURN(options->features, ReadFeaturePools(section.linear_eval_feat_pool_ops_map,
                                                           absl::StrCat(kEvalPath, ".LINEAR_EVAL_FEAT_POOL_OPS_MAP"),
                                                           section.should_flatten_feats, trunk.feature_names()));
  return absl::OkStatus();
}

// Widths that are known before the first image, of heads that run one after the other.
absl::Status CheckChain(const std::vector<std::unique_ptr<Head>>& heads, int64_t given, const ConfigNode& params) {
  for (size_t i = 0; i < heads.size(); ++i) {
    SSL_RETURN_IF_ERROR(
        CheckHeadTakes(*heads[i], given, i == 0 ? "the trunk" : "the head before it", params.items()[i], HeadPath(i)));
    given = heads[i]->OutputDim(given);
  }
  return absl::OkStatus();
}

absl::Status CheckHeads(const std::vector<std::unique_ptr<Head>>& heads, const Trunk& trunk,
                        const SslModelOptions& options, const ConfigNode& params) {
  for (const MappedInput& input : options.inputs) {
    if (heads.empty() || !input.stage.empty()) continue;
    SSL_RETURN_IF_ERROR(CheckHeadTakes(*heads[input.head], trunk.output_dim(), "the trunk", params.items()[input.head],
                                       HeadPath(input.head)));
  }
  if (!options.inputs.empty()) return absl::OkStatus();
  if (!options.freeze_trunk || options.features.empty()) return CheckChain(heads, trunk.output_dim(), params);
  const size_t num_features = options.features.size();
  if (num_features == 1 && heads.size() > 1) return CheckChain(heads, /*given=*/0, params);
  if (heads.empty() || heads.size() == num_features) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      params.location().ToString(), ": config.MODEL.HEAD.PARAMS has ", heads.size(), " heads, ", kEvalPath,
      ".LINEAR_EVAL_FEAT_POOL_OPS_MAP ", num_features, " features, expected a head for each feature, or one feature"));
}

// With batch norm of this rank alone. Calls no collective operation.
absl::StatusOr<std::unique_ptr<SslModel>> BuildOfThisRank(const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const ModelSection section, ReadSection<ModelSection>(params, ""));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Trunk> trunk, BuildTrunk(params, context));
  SSL_ASSIGN_OR_RETURN(const FeatureEvalSection evaluation,
                       ReadSection<FeatureEvalSection>(params, "FEATURE_EVAL_SETTINGS"));
  SSL_ASSIGN_OR_RETURN(const ActivationCheckpointingSection checkpointing,
                       ReadSection<ActivationCheckpointingSection>(params, "ACTIVATION_CHECKPOINTING"));
  SslModelOptions options;
  SSL_ASSIGN_OR_RETURN(options.recompute, PlanActivationCheckpointing(checkpointing, *trunk));
  options.single_pass_every_crop = section.single_pass_every_crop;
  options.channels = ChannelOrderOf(section.input_type);
  SSL_RETURN_IF_ERROR(ReadEvaluation(params, evaluation, *trunk, &options));

  SSL_ASSIGN_OR_RETURN(const HeadSection head_section, ReadHeadSection(context.config));
  const bool trunk_only = evaluation.eval_mode_on && evaluation.extract_trunk_features_only;
  std::vector<std::unique_ptr<Head>> heads;
  if (!trunk_only) {
    SSL_ASSIGN_OR_RETURN(heads, BuildHeads(head_section.params, context));
  }
  SSL_ASSIGN_OR_RETURN(options.inputs, ReadInputMapping(section.multi_input_head_mapping,
                                                        head_section.params.items().size(), trunk->feature_names()));
  SSL_RETURN_IF_ERROR(CheckHeads(heads, *trunk, options, head_section.params));
  auto model = std::make_unique<SslModel>(std::move(trunk), std::move(heads), std::move(options));
  SSL_RETURN_IF_ERROR(model->Freeze(section.non_trainable_params));
  SSL_RETURN_IF_ERROR(BatchNormGroupSize(context.config, context.communicator.size()).status());
  return model;
}

absl::StatusOr<std::unique_ptr<Model>> SslModelFactory(const ConfigNode& params, const BuildContext& context) {
  absl::StatusOr<std::unique_ptr<SslModel>> model = BuildOfThisRank(params, context);
  // A trunk's file may be missing on one host alone, where the others would wait in the making of the group.
  SSL_RETURN_IF_ERROR(AgreeOnStatus(model.status(), "building the model", context.communicator));
  SSL_ASSIGN_OR_RETURN(const std::shared_ptr<Communicator> group,
                       MakeBatchNormGroup(context.config, context.communicator));
  if (group != nullptr) (*model)->SynchronizeBatchNorm(group);
  return *std::move(model);
}

}  // namespace

absl::Status RegisterSslModel(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->models.Register("multi_input_output_model", &SslModelFactory));
  OptionCatalog& options = registries->options;
  SSL_RETURN_IF_ERROR(options.Add("MODEL", [] { return std::make_unique<ModelSection>(); }));
  SSL_RETURN_IF_ERROR(
      options.Add("MODEL.ACTIVATION_CHECKPOINTING", [] { return std::make_unique<ActivationCheckpointingSection>(); }));
  SSL_RETURN_IF_ERROR(
      options.Add("MODEL.FEATURE_EVAL_SETTINGS", [] { return std::make_unique<FeatureEvalSection>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.HEAD", [] { return std::make_unique<HeadSection>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.SYNC_BN_CONFIG", [] { return std::make_unique<SyncBatchNormSection>(); }));
  SSL_RETURN_IF_ERROR(options.Add("MODEL.FSDP_CONFIG", [] { return std::make_unique<FsdpSection>(); }));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveFsdp(config); });
  return options.Add("MODEL.TRUNK", [] { return std::make_unique<TrunkSection>(); });
}

}  // namespace ssl
