// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/vissl_names.h"

#include <algorithm>
#include <functional>
#include <map>

namespace ssl {
namespace {

using NameTable = std::map<std::string, std::vector<std::string>, std::less<>>;

const std::vector<std::string>& Trunks() {
  static const auto* const names = new std::vector<std::string>{"alexnet_bvlc",
                                                                "alexnet_colorization",
                                                                "alexnet_deepcluster",
                                                                "alexnet_jigsaw",
                                                                "alexnet_rotnet",
                                                                "beit",
                                                                "classy_vit",
                                                                "convit",
                                                                "convnext",
                                                                "efficientnet",
                                                                "mobilenetv3_timm",
                                                                "mobilenetv3_tv",
                                                                "regnet",
                                                                "regnet_fsdp",
                                                                "regnet_v2",
                                                                "resnet",
                                                                "resnet_sk",
                                                                "swin_transformer",
                                                                "swin_transformer_official",
                                                                "vision_transformer",
                                                                "vision_transformer_fsdp",
                                                                "xcit",
                                                                "xcit_fsdp"};
  return *names;
}

const std::vector<std::string>& Heads() {
  static const auto* const names = new std::vector<std::string>{"dino_head",
                                                                "dino_head_fsdp",
                                                                "eval_mlp",
                                                                "eval_mlp_fsdp",
                                                                "eval_mlp_pooled",
                                                                "ibot_distillation_head",
                                                                "ibot_head",
                                                                "identity",
                                                                "mlp",
                                                                "mlp_fsdp",
                                                                "mlp_res",
                                                                "mobilenet_v3_head",
                                                                "mobilenet_v3_head_timm",
                                                                "msn_head",
                                                                "siamese_concat_view",
                                                                "swav_head",
                                                                "swav_head_fsdp",
                                                                "vision_transformer_head"};
  return *names;
}

// VISSL's own losses, and those of torch.nn, which it takes by their class names.
const std::vector<std::string>& Losses() {
  static const auto* const names = new std::vector<std::string>{"barlow_twins_loss",
                                                                "bce_logits_multiple_output_single_target",
                                                                "cross_entropy_multiple_output_single_target",
                                                                "deepclusterv2_loss",
                                                                "dino_distillation_loss",
                                                                "dino_loss",
                                                                "distillation_loss",
                                                                "ibot_distillation_loss",
                                                                "ibot_loss",
                                                                "moco_loss",
                                                                "msn_distillation_loss",
                                                                "msn_loss",
                                                                "multicrop_simclr_info_nce_loss",
                                                                "nce_loss_with_memory",
                                                                "simclr_info_nce_loss",
                                                                "swav_distillation_loss",
                                                                "swav_loss",
                                                                "swav_momentum_loss",
                                                                "AdaptiveLogSoftmaxWithLoss",
                                                                "BCELoss",
                                                                "BCEWithLogitsLoss",
                                                                "CTCLoss",
                                                                "CosineEmbeddingLoss",
                                                                "CrossEntropyLoss",
                                                                "GaussianNLLLoss",
                                                                "HingeEmbeddingLoss",
                                                                "HuberLoss",
                                                                "KLDivLoss",
                                                                "L1Loss",
                                                                "MSELoss",
                                                                "MarginRankingLoss",
                                                                "MultiLabelMarginLoss",
                                                                "MultiLabelSoftMarginLoss",
                                                                "MultiMarginLoss",
                                                                "NLLLoss",
                                                                "PoissonNLLLoss",
                                                                "SmoothL1Loss",
                                                                "SoftMarginLoss",
                                                                "TripletMarginLoss",
                                                                "TripletMarginWithDistanceLoss"};
  return *names;
}

// VISSL's own transforms, and those of torchvision, which it takes by their class names.
const std::vector<std::string>& Transforms() {
  static const auto* const names = new std::vector<std::string>{"ImgPatchesFromTensor",
                                                                "ImgPil2LabTensor",
                                                                "ImgPilColorDistortion",
                                                                "ImgPilGaussianBlur",
                                                                "ImgPilMultiCropRandomApply",
                                                                "ImgPilRandomColorJitter",
                                                                "ImgPilRandomPhotometric",
                                                                "ImgPilRandomSolarize",
                                                                "ImgPilResizeLargerSide",
                                                                "ImgPilToMultiCrop",
                                                                "ImgPilToPatchesAndImage",
                                                                "ImgPilToRawTensor",
                                                                "ImgReplicatePil",
                                                                "ImgRotatePil",
                                                                "ImgToTensor",
                                                                "MNISTImgPil2RGB",
                                                                "MaskedImageModeling",
                                                                "OneHotEncode",
                                                                "RandAugment",
                                                                "ShuffleImgPatches",
                                                                "VisslAutoAugment",
                                                                "AugMix",
                                                                "AutoAugment",
                                                                "CenterCrop",
                                                                "ColorJitter",
                                                                "ConvertImageDtype",
                                                                "ElasticTransform",
                                                                "FiveCrop",
                                                                "GaussianBlur",
                                                                "Grayscale",
                                                                "LinearTransformation",
                                                                "Normalize",
                                                                "PILToTensor",
                                                                "Pad",
                                                                "RandomAdjustSharpness",
                                                                "RandomAffine",
                                                                "RandomAutocontrast",
                                                                "RandomCrop",
                                                                "RandomEqualize",
                                                                "RandomErasing",
                                                                "RandomGrayscale",
                                                                "RandomHorizontalFlip",
                                                                "RandomInvert",
                                                                "RandomPerspective",
                                                                "RandomPosterize",
                                                                "RandomResizedCrop",
                                                                "RandomRotation",
                                                                "RandomSolarize",
                                                                "RandomVerticalFlip",
                                                                "Resize",
                                                                "TenCrop",
                                                                "ToPILImage",
                                                                "ToTensor",
                                                                "TrivialAugmentWide"};
  return *names;
}

const NameTable& Tables() {
  static const auto* const tables = new NameTable{
      {"RegNet activation", {"relu", "silu"}},
      {"RegNet block", {"res_basic_block", "res_bottleneck_block", "res_bottleneck_linear_block", "vanilla_block"}},
      {"collator",
       {"cutmixup_collator", "default_collate", "ibot_multicrop_masking_collator", "identity_collator", "moco_collator",
        "multicrop_collator", "multicrop_mixup_collator", "patch_and_image_collator", "siamese_collator",
        "simclr_collator", "targets_one_hot_default_collator"}},
      {"data set type", {"generic_ssl"}},
      {"data source",
       {"airstore", "disk_filelist", "disk_folder", "disk_roi_annotations", "everstore", "synthetic",
        "torchvision_dataset"}},
      {"device", {"cpu", "gpu"}},
      {"engine", {"extract_cluster", "extract_features", "extract_label_predictions", "train"}},
      {"head", Heads()},
      {"label source", {"airstore", "disk_filelist", "disk_folder", "everstore", "synthetic", "torchvision_dataset"}},
      {"loss", Losses()},
      {"meter", {"accuracy_list_meter", "mean_ap_list_meter", "precision_at_k_list_meter", "recall_at_k_list_meter"}},
      {"model", {"multi_input_output_model"}},
      {"normalisation", {"BatchNorm", "GroupNorm", "LayerNorm"}},
      {"optimizer", {"adam", "adamw", "adamw_mt", "lars", "rmsprop", "rmsprop_tf", "sgd", "sgd_fsdp", "zero"}},
      {"parameter grouping", {"default", "dino", "linear_eval_heads", "lr_decay"}},
      {"schedule",
       {"composite", "constant", "cosine", "cosine_warm_restart", "inverse_sqrt", "linear", "multistep", "polynomial",
        "step", "step_with_fixed_gamma"}},
      {"target", {"label", "mask"}},
      {"task", {"self_supervision_fsdp_task", "self_supervision_sdp_task", "self_supervision_task"}},
      {"train step", {"standard_train_step"}},
      {"transform", Transforms()},
      {"trunk", Trunks()},
  };
  return *tables;
}

}  // namespace

const std::vector<std::string>& VisslNames(absl::string_view kind) {
  static const auto* const none = new std::vector<std::string>;
  const auto found = Tables().find(std::string(kind));
  return found == Tables().end() ? *none : found->second;
}

absl::string_view WhyNotHere(absl::string_view kind, absl::string_view name) {
  struct Reason {
    absl::string_view kind;
    absl::string_view name;
    absl::string_view text;
  };
  constexpr absl::string_view kNoMasks = "no trunk here takes masks";
  constexpr Reason kReasons[] = {
      {"collator", "ibot_multicrop_masking_collator", kNoMasks},
      {"target", "mask", kNoMasks},
      {"collator", "identity_collator", "a list of samples is no batch; default_collate makes one of a view each"},
      {"transform", "MaskedImageModeling", kNoMasks},
  };
  for (const Reason& reason : kReasons) {
    if (reason.kind == kind && reason.name == name) return reason.text;
  }
  return "";
}

bool IsVisslName(absl::string_view kind, absl::string_view name) {
  if (kind == "augly transform") return true;
  const std::vector<std::string>& names = VisslNames(kind);
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace ssl
