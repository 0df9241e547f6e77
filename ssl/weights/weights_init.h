// SPDX-License-Identifier: Apache-2.0
//
// MODEL.WEIGHTS_INIT: fills a new model from a file of weights, ours or another program's (ssl/weights/weights_file.h).
//
// A name of the file that is a name of the model stays as it is: weights of our own runs need no prefixes, whatever
// they are set to. Other names become names of the model in three steps: REMOVE_PREFIX is taken off where a name begins
// with it, APPEND_PREFIX is put before the name, then the rules of ssl/weights/weight_names.h. Every tensor of the
// model whose name holds none of SKIP_LAYERS is then taken from the file; dtypes are converted, values are copied once.
// Nothing of the model is changed when there is an error.
//
// - The trunk is always loaded. Less than half of its tensors in the file is an error: a run that quietly starts from
//   random weights is the mistake that this section exists to prevent. Less than all is a warning.
// - Heads are loaded unless MODEL.FEATURE_EVAL_SETTINGS has EVAL_MODE_ON without EVAL_TRUNK_AND_HEAD; those that the
//   file lacks keep their weights.
// - A shape that differs is an error. A head's is left out with a warning when ASSERT_HEAD_LAYER_SHAPE_INIT is False.
// - A value that is not finite is an error, DataLoss, in any tensor that would be loaded.

#ifndef SSL_WEIGHTS_WEIGHTS_INIT_H_
#define SSL_WEIGHTS_WEIGHTS_INIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"
#include "ssl/weights/weights_file.h"

namespace ssl {

struct BuildContext;
struct Registries;

// The section MODEL.WEIGHTS_INIT.
struct WeightsInitOptions : Options {
  std::string params_file;
  ConfigNode state_dict_key_name = ConfigNode::FromString(kClassyStateDictKey);  // text, or a list of texts
  std::vector<std::string> skip_layers = {"num_batches_tracked"};
  std::string remove_prefix;
  std::string append_prefix;
  void VisitFields(FieldVisitor& visitor) override;
};

// How heads are treated; the keys are described above.
struct HeadWeightRules {
  bool load = true;
  bool shapes_must_match = true;
};

// What became of the weights. Names are the model's, those of `unexpected` the file's.
struct WeightsReport {
  std::string origin;
  std::vector<std::string> loaded;
  std::vector<std::string> missing;           // in the model, not in the file; skipped ones are not listed
  std::vector<std::string> unexpected;        // in the file, not in the model
  std::vector<std::string> shape_mismatches;  // of heads: left as they were
  std::vector<std::string> passed_over;       // as in WeightsFile

  // A few lines for the log: counts, and the first names of each kind.
  std::string ToString() const;
};

// Copies `weights` into `model`. InvalidArgument names the tensor with both shapes, or, when too little of the trunk is
// there, the nearest names of both sides and the setting that would help. May throw LibTorch exceptions.
absl::StatusOr<WeightsReport> LoadWeights(const WeightsFile& weights, const WeightsInitOptions& options,
                                          const HeadWeightRules& heads, Model* model);

// What Registries::initialize_weights does: reads the sections of `context.config`, loads, and logs the report on rank
// 0. OK without effect when PARAMS_FILE is empty. A relative path is relative to the working directory; every rank
// reads the file. Errors name the key with its file:line.
absl::Status InitializeWeights(Model& model, const BuildContext& context);

// Adds the section MODEL.WEIGHTS_INIT and sets registries->initialize_weights.
absl::Status RegisterWeights(Registries* registries);

}  // namespace ssl

#endif  // SSL_WEIGHTS_WEIGHTS_INIT_H_
