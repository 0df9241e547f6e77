// SPDX-License-Identifier: Apache-2.0
//
// A part of a run that its own keys of the configuration turn on: a hook, a metric sink. Its options struct is the one
// place that says where these keys stand, their defaults, ranges and meaning, and which values turn the part on.
//
//   struct EmaHookOptions : public ComponentOptions {
//     bool save_ema_model = false;
//     absl::string_view section() const override { return "HOOKS.EMA_MODEL"; }
//     bool enabled() const override { return save_ema_model; }
//     void VisitFields(FieldVisitor& visitor) override { ... }
//   };
#ifndef SSL_CORE_COMPONENT_H_
#define SSL_CORE_COMPONENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"

namespace ssl {

// Keys that a part reads and another struct declares; `options` is a member of the part's own options.
struct SharedOptions {
  absl::string_view section;  // relative to "config"
  Options* options;
};

// VisitFields visits the keys that the part itself declares, none for a part without. All names, the shared ones
// included, differ: they are the parameters of the part.
class ComponentOptions : public Options {
 public:
  // Where the keys stand, relative to "config"; "" is the root.
  virtual absl::string_view section() const = 0;
  // Whether a run with these values has the part.
  virtual bool enabled() const = 0;
  virtual std::vector<SharedOptions> shared() { return {}; }
  // What the part leaves in the run's directory, beside checkpoints, as paths relative to it. A '*' at the end of one
  // in a folder ("profile/rank*") stands for any rest of a name: others may keep files of their own there. With the
  // defaults of all parts, this is what goes when a run starts anew.
  virtual std::vector<std::string> leaves() const { return {}; }

  void VisitFields(FieldVisitor& visitor) override {}
};

// What is known of a part before it is made.
struct Component {
  std::string name;
  std::string summary;  // what it does, in one line for people
  // Hooks of one stage run in the order of their ranks, those of one rank in that of their names.
  int rank = 0;
  std::function<std::unique_ptr<ComponentOptions>()> make_options = {};  // with defaults
};

}  // namespace ssl

#endif  // SSL_CORE_COMPONENT_H_
