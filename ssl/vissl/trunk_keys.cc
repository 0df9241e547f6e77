// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> TrunkKeys() {
  KeyTableBuilder table;
  table.NotYet("MODEL.TRUNK.RESNETS_SK", "trunk 'resnet_sk' is missing",
               {{"DEPTH", "152"}, {"WIDTH_MULTIPLIER", "3"}, {"SK_RATIO", "0.0625"}});
  table.NotYet("MODEL.TRUNK", "trunk 'efficientnet' is missing", {{"EFFICIENT_NETS", "{}"}});
  table.NotYet(
      "MODEL.TRUNK.MOBILE_NET", "trunks 'mobilenetv3_tv' and 'mobilenetv3_timm' are missing",
      {{"NAME", "mobilenetv3_large_100"}, {"TIMM_BN", "false"}, {"PRETRAINED", "false"}, {"TRUNK_ONLY", "false"}});
  table.NotYet("MODEL.TRUNK.SWIN_TRANSFORMER", "trunk 'swin_transformer' is missing",
               {{"name", "null"},
                {"IMAGE_SIZE", "224"},
                {"PATCH_SIZE", "4"},
                {"EMBED_DIM", "96"},
                {"DEPTHS", "[2, 2, 6, 2]"},
                {"NUM_HEADS", "[3, 6, 12, 24]"},
                {"WINDOW_SIZE", "7"},
                {"MLP_RATIO", "4.0"},
                {"DROPOUT_RATE", "0.0"},
                {"ATTENTION_DROPOUT_RATE", "0.0"},
                {"DROP_PATH_RATE", "0.1"},
                {"QKV_BIAS", "true"},
                {"QK_SCALE", "null"}});
  table.NotYet("MODEL.TRUNK.BEIT", "trunk 'beit' is missing",
               {{"IMAGE_SIZE", "224"},
                {"PATCH_SIZE", "16"},
                {"NUM_LAYERS", "12"},
                {"NUM_HEADS", "12"},
                {"HIDDEN_DIM", "768"},
                {"MLP_RATIO", "4.0"},
                {"DROPOUT_RATE", "0.0"},
                {"ATTENTION_DROPOUT_RATE", "0.0"},
                {"DROP_PATH_RATE", "0.0"},
                {"QKV_BIAS", "false"},
                {"QK_SCALE", "null"},
                {"USE_ABS_POS_EMB", "true"},
                {"USE_REL_POS_BIAS", "false"},
                {"USE_SHARED_REL_POS_BIAS", "false"},
                {"USE_MEAN_POOLING", "true"},
                {"INIT_VALUES", "null"}});
  table.NotYet("MODEL.TRUNK.CONVNEXT", "trunk 'convnext' is missing",
               {{"DEPTH", "[3, 3, 27, 3]"}, {"DIMS", "[96, 192, 384, 768]"}, {"DROP_PATH_RATE", "0.0"}});
  table.NotYet("MODEL.TRUNK.CONVIT", "trunk 'convit' is missing",
               {{"N_GPSA_LAYERS", "10"},
                {"CLASS_TOKEN_IN_LOCAL_LAYERS", "false"},
                {"LOCALITY_STRENGTH", "1.0"},
                {"LOCALITY_DIM", "10"},
                {"USE_LOCAL_INIT", "true"},
                {"QKV_BIAS", "false"},
                {"QK_SCALE", "null"}});
  table.NotYet("MODEL.TRUNK.VISION_TRANSFORMERS", "patches of another network's features are missing",
               {{"HYBRID", "null"}});
  table.Ignored("MODEL.TRUNK.VISION_TRANSFORMERS", "an earlier place of MODEL.TRUNK.CONVIT, not read by VISSL either",
                {{"CONVIT", "{}"}});
  return table.Take();
}

}  // namespace ssl
