// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

// What is expected in the place of `node`: a text most likely lacks its brackets.
std::string ListLike(const ConfigNode& node) {
  const bool is_text = node.is_scalar() && !node.text().empty();
  return is_text ? absl::StrCat("a list, as [", node.text(), "]") : "a list";
}

// One map of the tree against one Options; adds a line to `problems` for whatever is wrong.
class OptionReader : public FieldVisitor {
 public:
  OptionReader(const ConfigNode& node, absl::string_view path, UnknownKeys unknown,
               std::vector<ConfigProblem>* problems)
      : node_(node), path_(path), unknown_(unknown), problems_(*problems) {}

  void Read(Options* options) {
    if (node_.is_null()) return;
    if (!node_.is_map()) {
      Report(node_, path_, "a map");
      return;
    }
    options->VisitFields(*this);
    if (unknown_ == UnknownKeys::kError) ReportUnknownKeys();
  }

  void Field(absl::string_view name, bool* value, const Doc& doc) override { ReadField(name, value, doc); }
  void Field(absl::string_view name, int64_t* value, const Doc& doc) override { ReadField(name, value, doc); }
  void Field(absl::string_view name, double* value, const Doc& doc) override { ReadField(name, value, doc); }
  void Field(absl::string_view name, std::string* value, const Doc& doc) override { ReadField(name, value, doc); }
  void Field(absl::string_view name, std::vector<int64_t>* value, const Doc& doc) override {
    ReadField(name, value, doc);
  }
  void Field(absl::string_view name, std::vector<double>* value, const Doc& doc) override {
    ReadField(name, value, doc);
  }
  void Field(absl::string_view name, std::vector<std::string>* value, const Doc& doc) override {
    ReadField(name, value, doc);
  }
  void Field(absl::string_view name, ConfigNode* value, const Doc&) override {
    if (const ConfigNode* node = FindField(name)) ReadTree(*node, JoinPath(path_, name), value);
  }
  void Section(absl::string_view name, Options* nested, const Doc&) override {
    if (const ConfigNode* node = FindField(name)) {
      OptionReader(*node, JoinPath(path_, name), unknown_, &problems_).Read(nested);
    }
  }

 private:
  const ConfigNode* FindField(absl::string_view name) {
    known_.emplace_back(name);
    return node_.Find(name);
  }

  // A list or map by default is one always: nobody looks for items in a text that stands for a list.
  void ReadTree(const ConfigNode& node, const std::string& path, ConfigNode* value) {
    if (value->is_list() && !node.is_list() && !node.is_null()) {
      Report(node, path, ListLike(node));
    } else if (value->is_map() && !node.is_map() && !node.is_null()) {
      Report(node, path, "a map");
    } else {
      *value = node;
    }
  }

  template <class T>
  void ReadField(absl::string_view name, T* value, const Doc& doc) {
    if (const ConfigNode* node = FindField(name)) {
      ReadValue(*node, JoinPath(path_, name), doc, value);
    }
  }

  bool ReadValue(const ConfigNode& node, const std::string& path, const Doc&, bool* value) {
    const absl::StatusOr<bool> read = node.AsBool();
    if (!read.ok()) return Report(node, path, "true or false");
    *value = *read;
    return true;
  }

  bool ReadValue(const ConfigNode& node, const std::string& path, const Doc& doc, int64_t* value) {
    const absl::StatusOr<int64_t> read = node.AsInt();
    if (!read.ok() || !doc.Allows(static_cast<double>(*read))) {
      return Report(node, path, doc.Expected("an integer"));
    }
    *value = *read;
    return true;
  }

  bool ReadValue(const ConfigNode& node, const std::string& path, const Doc& doc, double* value) {
    const absl::StatusOr<double> read = node.AsDouble();
    if (!read.ok() || !doc.Allows(*read)) {
      return Report(node, path, doc.Expected("a number"));
    }
    *value = *read;
    return true;
  }

  bool ReadValue(const ConfigNode& node, const std::string& path, const Doc& doc, std::string* value) {
    const bool is_text = node.is_scalar() || node.is_null();
    if (!is_text || !doc.Allows(absl::string_view(node.text()))) {
      return Report(node, path, doc.Expected("a string") + DidYouMean(node.text(), doc.names()));
    }
    *value = node.text();
    return true;
  }

  // A list with a wrong element leaves the field alone, after reporting each wrong one.
  template <class T>
  bool ReadValue(const ConfigNode& node, const std::string& path, const Doc& doc, std::vector<T>* value) {
    if (doc.may_be_one() && node.is_scalar() && !node.text().empty()) {
      T item{};
      if (!ReadValue(node, path, doc, &item)) return false;
      *value = {item};
      return true;
    }
    if (!node.is_list() && !node.is_null()) return Report(node, path, ListLike(node));
    std::vector<T> items;
    bool all_right = true;
    for (size_t i = 0; i < node.items().size(); ++i) {
      T item{};
      all_right &= ReadValue(node.items()[i], JoinPath(path, absl::StrCat(i)), doc, &item);
      items.push_back(std::move(item));
    }
    if (all_right) *value = std::move(items);
    return all_right;
  }

  // Returns false, for callers that hand the failure on.
  bool Report(const ConfigNode& node, absl::string_view path, absl::string_view expected) {
    problems_.push_back(WrongValue(node, path, expected));
    return false;
  }

  void ReportUnknownKeys() {
    for (const auto& [key, value] : node_.entries()) {
      bool is_known = false;
      for (const std::string& name : known_) is_known |= name == key;
      if (is_known) continue;
      problems_.push_back(
          {value.location(), absl::StrCat("unknown key '", JoinPath(path_, key), "'", DidYouMean(key, known_))});
    }
  }

  const ConfigNode& node_;
  const std::string path_;
  const UnknownKeys unknown_;
  std::vector<ConfigProblem>& problems_;
  std::vector<std::string> known_;
};

}  // namespace

std::vector<ConfigProblem> ReadProblems(const ConfigNode& node, absl::string_view path, UnknownKeys unknown,
                                        Options* options) {
  std::vector<ConfigProblem> problems;
  OptionReader(node, path, unknown, &problems).Read(options);
  return problems;
}

absl::Status ReadOptions(const ConfigNode& node, absl::string_view path, UnknownKeys unknown, Options* options) {
  return ProblemsInOrder(ReadProblems(node, path, unknown, options));
}

}  // namespace ssl
