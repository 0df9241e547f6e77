// SPDX-License-Identifier: Apache-2.0
//
// The one declaration of an option: name, default, range and a line of documentation. An
// options struct names its fields once in VisitFields; reading, errors, the resolved dump and
// the help text all walk that declaration. The name is the key in the config file. Defaults
// are the values that a fresh struct holds. Thread-compatible.
//
//   struct SwavLossOptions : public Options {
//     double temperature = 0.1;
//     void VisitFields(FieldVisitor& visitor) override {
//       visitor.Field("temperature", &temperature, Doc("Divides the scores.").Above(0));
//     }
//   };
#ifndef SSL_CONFIG_FIELDS_H_
#define SSL_CONFIG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// What a user may read and write about one field. Ranges and names hold for each element of
// a list.
class Doc {
 public:
  explicit Doc(absl::string_view text) : text_(text) {}

  Doc& Between(double low, double high);  // Both inclusive.
  Doc& AtLeast(double low);
  Doc& Above(double low);  // Exclusive.
  Doc& OneOf(std::vector<std::string> names);
  Doc& Unit(absl::string_view unit);  // "ms", "images", "epochs": shown in help and errors.
  // The value may differ between the start of a run and its resume, because training does not depend on it. Of a
  // section: all that is in it.
  Doc& MayChange();

  // Of a list of strings: one string stands for the list of it alone.
  Doc& MayBeOne();

  const std::string& text() const { return text_; }
  const std::string& unit() const { return unit_; }
  const std::vector<std::string>& names() const { return names_; }
  bool may_change() const { return may_change_; }
  bool may_be_one() const { return may_be_one_; }

  bool Allows(double value) const;
  bool Allows(absl::string_view value) const;

  // "between 0 and 1", "at least 1 (ms)", "above 0", "one of 'a', 'b'", "(epochs)" for a unit alone; "" without either.
  std::string Range() const;

  // What a value has to be, for a message: "an integer of at least 1 (epochs)" for the noun "an integer".
  std::string Expected(absl::string_view noun) const;

 private:
  std::string text_;
  std::string unit_;
  std::optional<double> low_;
  std::optional<double> high_;
  bool low_is_exclusive_ = false;
  std::vector<std::string> names_;
  bool may_change_ = false;
  bool may_be_one_ = false;
};

class Options;

// Sees every field of an Options in the order of declaration.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void Field(absl::string_view name, bool* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, int64_t* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, double* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, std::string* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, std::vector<int64_t>* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, std::vector<double>* value, const Doc& doc) = 0;
  virtual void Field(absl::string_view name, std::vector<std::string>* value, const Doc& doc) = 0;
  // Free form: any value, whose keys nobody checks. Where the default is a list or a map, the value is one, too.
  virtual void Field(absl::string_view name, ConfigNode* value, const Doc& doc) = 0;
  // A map of its own below `name`.
  virtual void Section(absl::string_view name, Options* nested, const Doc& doc) = 0;
};

// Base of every options struct.
class Options {
 public:
  virtual ~Options() = default;

  // Calls the visitor once per field. Names within one struct are unique.
  virtual void VisitFields(FieldVisitor& visitor) = 0;
};

}  // namespace ssl

#endif  // SSL_CONFIG_FIELDS_H_
