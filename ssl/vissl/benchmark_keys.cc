// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> BenchmarkKeys() {
  KeyTableBuilder table;
  table.NotYet("CLUSTERFIT", "tool 'cluster_features_and_label' is missing",
               {{"OUTPUT_DIR", "\".\""},
                {"NUM_ITER", "50"},
                {"NUM_CLUSTERS", "16000"},
                {"DATA_LIMIT", "-1"},
                {"DATA_LIMIT_SAMPLING.SEED", "0"},
                {"CLUSTER_BACKEND", "faiss"},
                {"FEATURES.EXTRACT", "false"},
                {"FEATURES.PATH", "\".\""},
                {"FEATURES.DATA_PARTITION", "TRAIN"},
                {"FEATURES.TEST_PARTITION", "TEST"},
                {"FEATURES.DATASET_NAME", "\"\""},
                {"FEATURES.LAYER_NAME", "\"\""},
                {"FEATURES.DIMENSIONALITY_REDUCTION", "0"}});
  table.NotYet("RANKING", "tool 'extract_feature_and_rank' is missing",
               {{"USE_GPU", "false"},
                {"RANKING_BACKEND", "faiss"},
                {"NORMALIZE_FEATS", "true"},
                {"APPLY_PCA", "false"},
                {"PCA_DIM", "128"},
                {"FEATURES.DATA_PARTITION", "TRAIN"},
                {"FEATURES.DATASET_NAME", "\"\""},
                {"FEATURES.LAYER_NAME", "\"\""}});
  table.NotYet("SVM", "tool 'train_svm' is missing",
               {{"normalize", "true"},
                {"cls_list", "[]"},
                {"loss", "squared_hinge"},
                {"penalty", "l2"},
                {"dual", "true"},
                {"max_iter", "2000"},
                {"cross_val_folds", "3"},
                {"costs.costs_list", "[0.1, 0.01]"},
                {"costs.base", "-1.0"},
                {"costs.power_range", "[4, 20]"},
                {"force_retrain", "false"},
                {"low_shot.dataset_name", "voc"},
                {"low_shot.sample_inds", "[1, 2, 3, 4, 5]"},
                {"low_shot.k_values", "[1, 2, 4, 8, 16, 32, 64, 96]"}});
  table.NotYet("", "tool 'train_svm' is missing", {{"SVM_FEATURES_PATH", "\"\""}});
  table.NotYet("IMG_RETRIEVAL", "tool 'instance_retrieval_test' is missing",
               {{"TRAIN_DATASET_NAME", "Oxford"},
                {"EVAL_DATASET_NAME", "Paris"},
                {"DATASET_PATH", "\"\""},
                {"WHITEN_IMG_LIST", "\"\""},
                {"EVAL_BINARY_PATH", "\"\""},
                {"DEBUG_MODE", "false"},
                {"NUM_TRAINING_SAMPLES", "-1"},
                {"NUM_QUERY_SAMPLES", "-1"},
                {"NUM_DATABASE_SAMPLES", "-1"},
                {"USE_DISTRACTORS", "false"},
                {"IMG_SCALINGS", "[1.0]"},
                {"SIMILARITY_MEASURE", "cosine_similarity"},
                {"RESIZE_IMG", "1024"},
                {"SPATIAL_LEVELS", "3"},
                {"N_PCA", "512"},
                {"TRAIN_PCA_WHITENING", "true"},
                {"FEATS_PROCESSING_TYPE", "\"\""},
                {"GEM_POOL_POWER", "4.0"},
                {"CROP_QUERY_ROI", "false"},
                {"NORMALIZE_FEATURES", "true"},
                {"CENTER_CROP", "false"},
                {"SAVE_RETRIEVAL_RANKINGS_SCORES", "true"},
                {"SAVE_FEATURES", "false"},
                {"USE_FEATURE_EXTRACTION_ENGINE", "false"},
                {"FEATURE_EXTRACTION_DIR", "\"\""}});
  table.NotYet("LOW_SHOT_BENCHMARK", "tool 'low_shot_test' is missing",
               {{"METHOD", "logistic_regression"},
                {"LOGISTIC_REGRESSION.LAMBDA", "0.025"},
                {"LOGISTIC_REGRESSION.SEEDS", "[0]"},
                {"FEATURES.PATH", "\"\""}});
  table.NotYet("GEO_LOCALIZATION", "tool 'geolocalization_test' is missing",
               {{"TRAIN_LABEL_MAPPING", "\"\""}, {"ACC_KM_THRESHOLDS", "[1.0, 25.0, 200.0, 750.0, 2500.0]"}});
  table.Ignored("NEAREST_NEIGHBOR", "the place does not change the result", {{"USE_CUDA", "true"}});
  table.Ignored("NEAREST_NEIGHBOR", "similarities are computed in blocks", {{"OPTIMIZE_MEMORY", "false"}});
  return table.Take();
}

}  // namespace ssl
