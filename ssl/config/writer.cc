// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/writer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {
namespace {

class OptionWriter : public FieldVisitor {
 public:
  void Field(absl::string_view name, bool* value, const Doc&) override { map_.Set(name, ConfigNode::FromBool(*value)); }
  void Field(absl::string_view name, int64_t* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromInt(*value));
  }
  void Field(absl::string_view name, double* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromDouble(*value));
  }
  void Field(absl::string_view name, std::string* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromString(*value));
  }
  void Field(absl::string_view name, std::vector<int64_t>* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromInts(*value));
  }
  void Field(absl::string_view name, std::vector<double>* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromDoubles(*value));
  }
  void Field(absl::string_view name, std::vector<std::string>* value, const Doc&) override {
    map_.Set(name, ConfigNode::FromStrings(*value));
  }
  void Field(absl::string_view name, ConfigNode* value, const Doc&) override {
    ConfigNode copy = *value;
    copy.set_free_form(true);
    map_.Set(name, std::move(copy));
  }
  void Section(absl::string_view name, Options* nested, const Doc&) override { map_.Set(name, WriteOptions(*nested)); }

  ConfigNode Take() { return std::move(map_); }

 private:
  ConfigNode map_ = ConfigNode::Map();
};

}  // namespace

ConfigNode WriteOptions(Options& options) {
  OptionWriter writer;
  options.VisitFields(writer);
  return writer.Take();
}

}  // namespace ssl
