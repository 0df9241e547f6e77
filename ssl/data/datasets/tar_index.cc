// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/tar_index.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/utf8.h"
#include "ssl/data/datasets/tar_reader.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

constexpr int64_t kMaxLabelBytes = int64_t{1} << 20;

// "train/0001.seg.png": the sample "train/0001", and what its member is, "seg.png". A name without a dot, or that
// begins with one ("._0001.jpg", which macOS adds), is of no sample.
struct MemberName {
  explicit MemberName(absl::string_view name) {
    const size_t slash = name.rfind('/');
    const size_t begin = slash == absl::string_view::npos ? 0 : slash + 1;
    const size_t dot = std::min(name.find('.', begin), name.size());
    key = name.substr(0, dot);
    is_of_sample = dot > begin && dot < name.size();
    ending = absl::AsciiStrToLower(name.substr(std::min(dot + 1, name.size())));
  }
  absl::string_view key;
  std::string ending;
  bool is_of_sample = false;
};

// By precedence, where a sample has several.
constexpr absl::string_view kImageEndings[] = {"jpg", "jpeg", "png", "webp"};

// Position among them; their number for what is no image.
size_t ImageRank(absl::string_view ending) {
  return std::find(std::begin(kImageEndings), std::end(kImageEndings), ending) - std::begin(kImageEndings);
}

bool IsImage(absl::string_view ending) { return ImageRank(ending) < std::size(kImageEndings); }

std::string Quoted(absl::string_view name) { return absl::StrCat("'", EscapeForMessage(name), "'"); }

class IndexBuilder {
 public:
  IndexBuilder(const ReadableFile& file, const std::string& path) : reader_(file, path), path_(path) {}

  absl::StatusOr<TarIndex> Build(const StopToken* stop) {
    TarMember member;
    while (true) {
      if (stop != nullptr && stop->requested()) {
        return absl::CancelledError(absl::StrCat("reading the index of ", path_, " was stopped"));
      }
      SSL_ASSIGN_OR_RETURN(const bool found, reader_.Next(&member));
      if (!found) break;
      SSL_RETURN_IF_ERROR(Add(member));
    }
    EndSample();
    if (!reader_.IsFollowed()) return std::move(index_);
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": another tar file follows its end mark, as `cat` joins them, and would not be read; keep ",
        "them apart, or join them by tar --concatenate"));
  }

 private:
  absl::Status Add(const TarMember& member) {
    if (!member.is_file) {
      ++index_.other_members;
      return absl::OkStatus();
    }
    const MemberName name(member.name);
    if (!name.is_of_sample) {
      ++index_.unknown_members;
      return absl::OkStatus();
    }
    if (!has_sample_ || name.key != key_) SSL_RETURN_IF_ERROR(BeginSample(name.key));
    const auto [first, is_new] = members_.emplace(name.ending, member);
    if (!is_new) return Repeated(first->second, member);
    if (IsImage(name.ending)) {
      TakeImage(member, ImageRank(name.ending));
      return absl::OkStatus();
    }
    if (name.ending == "cls") return TakeLabel(member);
    if (name.ending == "json") return TakeJson(member);
    ++index_.unknown_members;
    const bool ends_like_image = IsImage(name.ending.substr(name.ending.rfind('.') + 1));
    if (ends_like_image && !IsImage(name.ending) && index_.first_dotted.empty()) index_.first_dotted = member.name;
    return absl::OkStatus();
  }

  absl::Status BeginSample(absl::string_view key) {
    EndSample();
    key_ = std::string(key);
    has_sample_ = true;
    if (keys_.insert(key_).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": the members of sample ", Quoted(key_),
        " do not follow one another, or two samples have this name; write the tar file sorted by name, each once"));
  }

  // The image of one would get the label of the other.
  absl::Status Repeated(const TarMember& first, const TarMember& second) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": sample ", Quoted(key_), " has ", Quoted(first.name), " at byte ", first.offset, " and ",
                     Quoted(second.name), " at byte ", second.offset,
                     ", expected one member of each ending; where these are two samples, give each a name of its own"));
  }

  void EndSample() {
    if (has_sample_ && sample_.name.empty()) ++index_.samples_without_image;
    if (!sample_.name.empty()) index_.samples.push_back(std::move(sample_));
    sample_ = {};
    image_rank_ = std::size(kImageEndings);
    members_.clear();
    label_member_.clear();
  }

  void TakeImage(const TarMember& member, size_t rank) {
    const bool is_second = !sample_.name.empty();
    const bool is_taken = rank < image_rank_;
    if (is_second && ++index_.second_images == 1) {
      index_.first_second_image = absl::StrCat(Quoted(is_taken ? sample_.name : member.name), " beside ",
                                               Quoted(is_taken ? member.name : sample_.name));
    }
    if (!is_taken) return;
    sample_.offset = member.offset;
    sample_.size = member.size;
    sample_.name = member.name;
    image_rank_ = rank;
  }

  absl::Status TakeLabel(const TarMember& member) {
    if (member.size > kMaxLabelBytes) return TooLong(member);
    SSL_ASSIGN_OR_RETURN(const std::string text, reader_.Read(member));
    return SetLabel(member, absl::StripAsciiWhitespace(text));
  }

  absl::Status TakeJson(const TarMember& member) {
    if (member.size > kMaxLabelBytes) return NoteUnread(TooLong(member));
    SSL_ASSIGN_OR_RETURN(const std::string text, reader_.Read(member));
    const absl::StatusOr<JsonTree> json = ParseJson(text);
    if (!json.ok()) return NoteUnread(LabelError(member, absl::StrCat("is no JSON map: ", json.status().message())));
    if (json->kind != JsonTree::Kind::kObject) return NoteUnread(LabelError(member, "is no JSON map"));
    bool has_label = false;
    for (const char* key : {"label", "cls"}) {
      const JsonTree* label = json->Find(key);
      if (label == nullptr || label->kind == JsonTree::Kind::kNull) continue;
      // Beside a label, cls may be something else, such as a name.
      if (has_label && label->kind != JsonTree::Kind::kCount) continue;
      const bool is_text = label->kind == JsonTree::Kind::kString;
      const std::string text = is_text ? label->text : WriteJson(*label);
      SSL_RETURN_IF_ERROR(SetLabel(member, is_text ? text : absl::StripAsciiWhitespace(text)));
      has_label = true;
    }
    return absl::OkStatus();
  }

  absl::Status TooLong(const TarMember& member) const {
    return LabelError(member, absl::StrCat("has ", member.size, " bytes, expected at most ", kMaxLabelBytes));
  }

  // Captions and the like lie there where no label is wanted. Where one is, the sample lacks it.
  absl::Status NoteUnread(const absl::Status& reason) {
    if (++index_.unread_json == 1) index_.first_unread_json = std::string(reason.message());
    return absl::OkStatus();
  }

  absl::Status SetLabel(const TarMember& member, absl::string_view text) {
    int64_t label = 0;
    if (!absl::SimpleAtoi(text, &label) || label < 0) {
      return LabelError(member,
                        absl::StrCat("holds the label ", Quoted(text.substr(0, 80)), ", expected a class from 0 on"));
    }
    if (!label_member_.empty() && label != sample_.label) {
      return LabelError(member,
                        absl::StrCat("holds the label ", label, ", but ", Quoted(label_member_), " of the same ",
                                     "sample holds ", sample_.label, ", expected one label for a sample"));
    }
    sample_.label = label;
    label_member_ = member.name;
    return absl::OkStatus();
  }

  absl::Status LabelError(const TarMember& member, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": member ", Quoted(member.name), " ", what));
  }

  TarReader reader_;
  const std::string& path_;
  TarIndex index_;
  TarSample sample_;  // begun
  bool has_sample_ = false;
  std::string key_;                               // of sample_
  size_t image_rank_ = std::size(kImageEndings);  // of its image
  std::map<std::string, TarMember> members_;      // of sample_, by ending
  std::string label_member_;                      // the one that its label is from; "": it has none
  std::unordered_set<std::string> keys_;
};

}  // namespace

absl::StatusOr<TarIndex> ReadTarIndex(const ReadableFile& file, const std::string& path, const StopToken* stop) {
  return IndexBuilder(file, path).Build(stop);
}

}  // namespace ssl
