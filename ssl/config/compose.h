// SPDX-License-Identifier: Apache-2.0
//
// From command-line tokens to one config tree: defaults, then the files in the order of their
// tokens, then the values in the order of theirs (a value wins over every file, wherever it
// stands, as in VISSL's composition). Reads files and touches nothing else; safe from any
// thread.
//
//   ComposeRequest request;
//   request.defaults = DefaultTree();  // {engine_name: train, config: {...}}
//   request.tokens = {"config=pretrain/swav/swav_8node_resnet",
//                     "+config/pretrain/swav/transforms=multicrop_2x224_4x96",
//                     "config.OPTIMIZER.num_epochs=100"};
//   SSL_ASSIGN_OR_RETURN(ComposedConfig composed, Compose(request));
#ifndef SSL_CONFIG_COMPOSE_H_
#define SSL_CONFIG_COMPOSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"

namespace ssl {

// Tokens:
//   config=FILE           the base file; at most one
//   +config/GROUP=FILE    a further file GROUP/FILE; +config=FILE one without a group
//   config.A.B=VALUE      a value for a key that the defaults or a file have
//   +config.A.NEW=VALUE   a value for a key that need not exist
//   engine_name=VALUE     the same for keys beside `config`
//   hydra.KEY=VALUE       ignored with a warning: VISSL's command lines carry them
// So is a map `hydra` beside `config` in a file. Choices (KEY=1,2) are made into command lines without any by
// ExpandSweep of sweep.h before; here they are a text.
// FILE may end in .yaml or not. It is tried as a path, then below the folders configs/config
// and configs/config/pretrain of each search directory. VALUE is null, a bare text up to the
// end of the token, or, beginning with [ { " or ', YAML; nothing is the empty string; a map
// merges, everything else replaces, with a warning where another token has given it. A number in a path is an index of
// a list.
struct ComposeRequest {
  ConfigNode defaults;  // The root: {engine_name: ..., config: {...}}.
  std::vector<std::string> tokens;
  std::vector<std::string> search_dirs;
  // Else only the first 50 of a file.
  bool lists_all_unknown_keys = false;
};

struct ComposedConfig {
  ConfigNode root;
  std::vector<std::string> warnings;  // "file:line: what", for a person.
  std::vector<std::string> files;     // As opened, in the order of merging.
};

// InvalidArgument with one line for each problem of all tokens and files: a token that is no
// override, a file that is missing or no YAML, an unknown key with the nearest right one, a key
// that stands twice in a map, a scalar where the defaults have a section. The types of values are
// checked by ReadOptions. Where the defaults have config.ALLOW_UNKNOWN_KEYS and it is set to True,
// unknown keys of files are warnings; a +config.NEW token sets it, so that the tree can be read again.
absl::StatusOr<ComposedConfig> Compose(const ComposeRequest& request);

// The same without an end at problems, for a check that goes on: what is wrong is left out of the tree, and its lines
// are added to `problems`.
ComposedConfig ComposeWithProblems(const ComposeRequest& request, std::vector<std::string>* problems);

}  // namespace ssl

#endif  // SSL_CONFIG_COMPOSE_H_
