// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/lists_in_full.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ssl {
namespace {

class ListCompleter : public FieldVisitor {
 public:
  explicit ListCompleter(ConfigNode* map) : map_(*map) {}

  void Field(absl::string_view name, std::vector<std::string>*, const Doc& doc) override {
    ConfigNode* value = map_.FindMutable(name);
    if (!doc.may_be_one() || value == nullptr || !value->is_scalar() || value->text().empty()) return;
    ConfigNode list = ConfigNode::List(value->location());
    list.Append(*value);
    *value = std::move(list);
  }
  void Section(absl::string_view name, Options* nested, const Doc&) override {
    if (ConfigNode* section = map_.FindMutable(name)) WriteListsInFull(*nested, section);
  }

  void Field(absl::string_view, bool*, const Doc&) override {}
  void Field(absl::string_view, int64_t*, const Doc&) override {}
  void Field(absl::string_view, double*, const Doc&) override {}
  void Field(absl::string_view, std::string*, const Doc&) override {}
  void Field(absl::string_view, std::vector<int64_t>*, const Doc&) override {}
  void Field(absl::string_view, std::vector<double>*, const Doc&) override {}
  void Field(absl::string_view, ConfigNode*, const Doc&) override {}

 private:
  ConfigNode& map_;
};

}  // namespace

void WriteListsInFull(Options& options, ConfigNode* map) {
  if (!map->is_map()) return;
  ListCompleter completer(map);
  options.VisitFields(completer);
}

}  // namespace ssl
