// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/config/yaml.h"
#include "yaml-cpp/anchor.h"
#include "yaml-cpp/emitterstyle.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace ssl {
namespace {

// Carries an error through yaml-cpp, whose event interface cannot stop otherwise. It never
// leaves ParseYaml.
struct ParseFailure {
  int line;
  std::string message;
};

// A list or a map that is not closed yet.
struct OpenNode {
  ConfigNode node;
  YAML::anchor_t anchor = 0;
  int64_t nodes = 1;  // Itself and everything below, aliases expanded.
  int height = 1;     // Levels of lists and maps, itself included.
  // Maps only: the key whose value comes next, and where each key stands first.
  bool has_key = false;
  std::string key;
  int key_line = 0;
  std::map<std::string, size_t> index;
  std::vector<int> first_lines;
};

struct Anchored {
  ConfigNode node;
  int64_t nodes = 0;
  int height = 0;
};

// Builds the tree from events. All limits are checked here, event by event, so that yaml-cpp
// itself (which recurses once per level) never sees more than kMaxYamlDepth levels.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(absl::string_view file, std::vector<std::string>* warnings) : file_(file), warnings_(warnings) {}

  ConfigNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Fail(mark, "second document, expected one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (AwaitsKey()) Fail(mark, "null key, expected a text");
    Count(mark, 1);
    Add(mark, ConfigNode::Null(At(mark)), anchor, 1, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    CheckTag(mark, tag);
    if (AwaitsKey()) {
      TakeKey(mark, value, quoted);
      return;
    }
    Count(mark, 1);
    Add(mark, ConfigNode::Scalar(value, quoted, At(mark)), anchor, 1, 0);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Fail(mark, "alias of a value that holds it");
    if (AwaitsKey()) Fail(mark, "alias as a key, expected a text");
    const Anchored& source = found->second;
    Count(mark, source.nodes);
    CheckDepth(mark, source.height);
    Add(mark, source.node, 0, source.nodes, source.height);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigNode::List(At(mark)));
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigNode::Map(At(mark)));
  }
  void OnMapEnd() override { Close(); }

 private:
  static int Line(const YAML::Mark& mark) { return mark.line + 1; }
  SourceLocation At(const YAML::Mark& mark) const { return {file_, Line(mark)}; }

  [[noreturn]] static void Fail(const YAML::Mark& mark, std::string message) {
    throw ParseFailure{Line(mark), std::move(message)};
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "!" && tag != "?") {
      Fail(mark, absl::StrCat("tag '", tag, "', expected a value without a tag"));
    }
  }

  void Count(const YAML::Mark& mark, int64_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes) {
      Fail(mark, absl::StrCat("document has more than ", kMaxYamlNodes, " values (aliases count expanded)"));
    }
  }

  void CheckDepth(const YAML::Mark& mark, int levels) const {
    if (static_cast<int>(open_.size()) + levels > kMaxYamlDepth) {
      Fail(mark, absl::StrCat("document is nested more than ", kMaxYamlDepth, " levels deep"));
    }
  }

  bool AwaitsKey() const { return !open_.empty() && open_.back().node.is_map() && !open_.back().has_key; }

  void TakeKey(const YAML::Mark& mark, const std::string& key, bool quoted) {
    if (key.size() > static_cast<size_t>(kMaxYamlKeyBytes)) {
      Fail(mark, absl::StrCat("key of ", key.size(), " bytes, expected at most ", kMaxYamlKeyBytes));
    }
    if (key == "<<" && !quoted) Fail(mark, "merge key '<<', expected a name");
    OpenNode& map = open_.back();
    map.has_key = true;
    map.key = key;
    map.key_line = Line(mark);
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode node) {
    CheckTag(mark, tag);
    if (AwaitsKey()) {
      // yaml-cpp also takes an unclosed root list for the beginning of a key.
      Fail(mark, absl::StrCat(node.Describe(), " as a key or an unclosed bracket, expected a text"));
    }
    Count(mark, 1);
    CheckDepth(mark, 1);
    OpenNode open;
    open.node = std::move(node);
    open.anchor = anchor;
    open_.push_back(std::move(open));
  }

  void Close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    YAML::Mark mark;
    mark.line = closed.node.location().line - 1;
    Add(mark, std::move(closed.node), closed.anchor, closed.nodes, closed.height);
  }

  // Puts a finished value in its place; `nodes` and `height` describe it.
  void Add(const YAML::Mark& mark, ConfigNode node, YAML::anchor_t anchor, int64_t nodes, int height) {
    if (anchor != 0) {
      // Anchors on every level would store the same values over and over.
      anchored_nodes_ += nodes;
      if (anchored_nodes_ > kMaxYamlNodes) {
        Fail(mark, absl::StrCat("anchors hold more than ", kMaxYamlNodes, " values"));
      }
      anchors_[anchor] = {node, nodes, height};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    parent.nodes += nodes;
    parent.height = std::max(parent.height, height + 1);
    if (parent.node.is_list()) {
      parent.node.Append(std::move(node));
    } else {
      AddEntry(&parent, std::move(node));
    }
  }

  void AddEntry(OpenNode* map, ConfigNode node) {
    map->has_key = false;
    std::vector<ConfigNode::Entry>& entries = *map->node.mutable_entries();
    const auto [found, is_new] = map->index.emplace(map->key, entries.size());
    // People look for a section at its name, not at its first value one line below.
    node.set_location_line(map->key_line);
    if (is_new) {
      entries.emplace_back(std::move(map->key), std::move(node));
      map->first_lines.push_back(map->key_line);
      return;
    }
    if (warnings_ != nullptr) {
      warnings_->push_back(absl::StrCat(file_, ":", map->key_line, ": key '", map->key,
                                        "' stands twice, first in line ", map->first_lines[found->second]));
    }
    entries[found->second].second = std::move(node);
  }

  const std::string file_;
  std::vector<std::string>* const warnings_;
  int documents_ = 0;
  int64_t nodes_ = 0;
  int64_t anchored_nodes_ = 0;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  ConfigNode root_;
};

// yaml-cpp takes byte 4 for the end of the text and bytes 0 for UTF-16: both would cut or
// change a file silently.
absl::Status CheckBytes(absl::string_view text, absl::string_view file) {
  int line = 1;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte == '\n') ++line;
    if (byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t') continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s:%d: byte 0x%02x is no text, expected UTF-8", file, line, byte));
  }
  return absl::OkStatus();
}

constexpr char kTabHint[] = "; the line begins with a tab, expected spaces";

// line: from 0.
bool BeginsWithTab(absl::string_view text, int line) {
  size_t begin = 0;
  for (int i = 0; i < line && begin != absl::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != absl::string_view::npos) ++begin;
  }
  if (begin == absl::string_view::npos) return false;
  const size_t first = text.find_first_not_of(' ', begin);
  return first != absl::string_view::npos && text[first] == '\t';
}

constexpr char kRangeHint[] = "; a pattern with braces needs quotes: [\"train-{000..146}.tar\"]";

// Whether there is something like {000..146}, which is a map to YAML where no quotes are around it.
bool HasRange(absl::string_view text) {
  for (size_t open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
    const size_t end = text.find_first_not_of("0123456789", open + 1);
    if (end != text.npos && end > open + 1 && text.substr(end, 2) == "..") return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ConfigNode> ParseYaml(absl::string_view text, absl::string_view file_name,
                                     std::vector<std::string>* warnings) {
  if (text.size() > static_cast<size_t>(kMaxYamlBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": text has ", text.size(), " bytes, expected at most ", kMaxYamlBytes));
  }
  if (absl::Status status = CheckBytes(text, file_name); !status.ok()) return status;
  TreeBuilder builder(file_name, warnings);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const ParseFailure& failure) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ":", failure.line, ": ", failure.message));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ":", error.mark.line + 1, ": no valid YAML: ", error.msg,
                                                   BeginsWithTab(text, error.mark.line) ? kTabHint
                                                   : HasRange(text)                     ? kRangeHint
                                                                                        : ""));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": no valid YAML: ", error.what()));
  }
  return builder.TakeRoot();
}

}  // namespace ssl
