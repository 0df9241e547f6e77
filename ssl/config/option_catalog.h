// SPDX-License-Identifier: Apache-2.0
//
// Every options struct that a program knows, with its place in the config tree: the source of
// the defaults that Compose checks keys against, and of the help text. A plain value that the
// program fills; const use is safe from any thread as far as the factories are.
//
//   OptionCatalog catalog;
//   SSL_RETURN_IF_ERROR(catalog.Add("LOSS.swav_loss",
//                                   [] { return std::make_unique<SwavLossOptions>(); }));
//   request.defaults.Set("config", catalog.Defaults());
#ifndef SSL_CONFIG_OPTION_CATALOG_H_
#define SSL_CONFIG_OPTION_CATALOG_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

class OptionCatalog {
 public:
  using Factory = std::function<std::unique_ptr<Options>()>;

  // `path` is relative to `config`, "LOSS.swav_loss"; "" is `config` itself. Several structs
  // may share a map as long as no key is declared twice: AlreadyExists names the key then.
  // InvalidArgument for a path with an empty part or a factory that makes nothing. A refused
  // struct leaves the catalog as it was.
  absl::Status Add(std::string path, Factory make);

  // The tree under `config`: every key with its default.
  ConfigNode Defaults() const { return defaults_; }

  // The table of FormatHelp for every key at or below `prefix` ("" for all; a leading
  // "config." may stand or not). The last part may be the beginning of a name. A prefix
  // without keys gives one line that says so and names the nearest key.
  std::string Help(absl::string_view prefix) const;

  // The paths given to Add, in that order.
  std::vector<std::string> Paths() const;

 private:
  struct Section {
    std::string path;
    Factory make;
  };

  std::vector<Section> sections_;
  ConfigNode defaults_ = ConfigNode::Map();
};

}  // namespace ssl

#endif  // SSL_CONFIG_OPTION_CATALOG_H_
