// SPDX-License-Identifier: Apache-2.0
//
// Every key that a program knows, with its place in the config tree: the options structs that it reads, and the keys of
// VISSL that it does not read. The source of the defaults that Compose checks keys against, of the help text, and of a
// check of all values at once. A plain value that the program fills; const use is safe from any thread as far as the
// factories are. Paths are relative to `config` throughout: "LOSS.swav_loss", "" for `config` itself.
//
//   OptionCatalog catalog;
//   SSL_RETURN_IF_ERROR(catalog.Add("LOSS.swav_loss",
//                                   [] { return std::make_unique<SwavLossOptions>(); }));
//   request.defaults.Set("config", catalog.Defaults());
#ifndef SSL_CONFIG_OPTION_CATALOG_H_
#define SSL_CONFIG_OPTION_CATALOG_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/compatibility_keys.h"
#include "ssl/config/fields.h"
#include "ssl/config/help.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"

namespace ssl {

// One key for a table of what is supported.
struct CatalogEntry {
  enum class Status { kWorks, kIgnored, kNotYet };

  std::string path;
  std::string type;           // "bool", "list of int", "any".
  std::string default_value;  // As people write it in a file, whatever its length.
  std::string doc;            // The documentation of a field, the note of a key that is not read.
  Status status = Status::kWorks;
};

// What a struct's values are to a run that resumes: Doc::MayChange decides for each field, or all may change because
// the struct does not concern training (an evaluation's section).
enum class AtResume { kAsDeclared, kMayChange };

class OptionCatalog {
 public:
  using Factory = std::function<std::unique_ptr<Options>()>;

  // Several structs may share a map as long as no key is declared twice: AlreadyExists names each such key, one line
  // each. InvalidArgument for a path with an empty part or a factory that makes nothing. A refused struct leaves the
  // catalog as it was.
  absl::Status Add(std::string path, Factory make, AtResume at_resume = AtResume::kAsDeclared);

  // Keys that are known and not read. AlreadyExists names each key that a struct declares or that stands twice;
  // InvalidArgument those with an empty part or a default that is no flow value. Refused keys leave the catalog as it
  // was.
  absl::Status AddKeys(std::vector<CompatibilityKey> keys);

  // The tree under `config`: every key with its default.
  ConfigNode Defaults() const { return defaults_; }

  // InvalidArgument with every value of `config` (the tree under "config") that is of a wrong type or out of its range,
  // one line each, once each, sorted by file and line. Unknown keys are Compose's business: files may hold them.
  absl::Status Check(const ConfigNode& config) const;

  // The same as single problems.
  std::vector<ConfigProblem> Problems(const ConfigNode& config) const;

  // Whether the value at `path`, or at a section above it, may differ between the start of a run and its resume. Keys
  // that are not read may; unknown ones may not.
  bool MayChange(absl::string_view path) const;

  // The settings of `config` that would change the run, and do not: see compatibility_keys.h.
  std::vector<UnsupportedKey> Unsupported(const ConfigNode& config) const;

  // Every key, sorted by path. A free-form field is one key; a section is none.
  std::vector<CatalogEntry> Entries() const;

  // The table of FormatHelpRows for every key at or below `prefix` ("" for all; a leading
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

  // Those of the structs in order of registration, then the keys that are not read; full paths, "config." included.
  std::vector<HelpRow> Rows() const;

  std::vector<Section> sections_;
  CompatibilityKeys unread_keys_;
  std::set<std::string, std::less<>> may_change_;  // paths of fields and sections
  ConfigNode defaults_ = ConfigNode::Map();
};

}  // namespace ssl

#endif  // SSL_CONFIG_OPTION_CATALOG_H_
