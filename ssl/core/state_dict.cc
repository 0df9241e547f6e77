// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/state_dict.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/finite_check.h"

namespace ssl {
namespace {

template <class T>
at::Tensor FromValues(const std::vector<T>& values, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, type);
  if (!values.empty()) std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(T));
  return tensor;
}

template <class T>
std::vector<T> ToValues(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const T* begin = static_cast<const T*>(flat.const_data_ptr());
  return std::vector<T>(begin, begin + flat.numel());
}

// Keeps the path of the enclosing scopes for the visitors below.
class ScopedVisitor : public StateVisitor {
 public:
  void Scope(absl::string_view name, Stateful& child) override {
    const size_t outer = prefix_.size();
    absl::StrAppend(&prefix_, name, "/");
    child.VisitState(*this);
    prefix_.resize(outer);
  }

 protected:
  std::string Path(absl::string_view name) const { return absl::StrCat(prefix_, name); }
  const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
};

class Collector : public ScopedVisitor {
 public:
  void Tensor(absl::string_view name, at::Tensor& value) override { state_.push_back({Path(name), value}); }
  void Int(absl::string_view name, int64_t& value) override { Add(name, at::full({}, value, at::kLong)); }
  void Double(absl::string_view name, double& value) override { Add(name, at::full({}, value, at::kDouble)); }
  void Ints(absl::string_view name, std::vector<int64_t>& value) override { Add(name, FromValues(value, at::kLong)); }
  void Doubles(absl::string_view name, std::vector<double>& value) override {
    Add(name, FromValues(value, at::kDouble));
  }
  void Text(absl::string_view name, std::string& value) override {
    Add(name, FromValues(std::vector<char>(value.begin(), value.end()), at::kByte));
  }

  void MayBeNonFinite(absl::string_view name) override { may_be_non_finite_.insert(Path(name)); }
  void RanksDiffer(absl::string_view name, RankValues values, int64_t dimension) override {
    differences_[Path(name)] = {values, dimension};
  }

  std::vector<NamedTensor> Take() { return std::move(state_); }
  std::map<std::string, RanksDifference> TakeDifferences() { return std::move(differences_); }
  const std::set<std::string>& may_be_non_finite() const { return may_be_non_finite_; }

 private:
  void Add(absl::string_view name, at::Tensor tensor) { state_.push_back({Path(name), std::move(tensor)}); }

  std::vector<NamedTensor> state_;
  std::set<std::string> may_be_non_finite_;
  std::map<std::string, RanksDifference> differences_;
};

// "" when all is finite; else the first names, with counts.
std::string DescribeNonFinite(const std::vector<NamedTensor>& state, const std::set<std::string>& exempt) {
  constexpr size_t kMostNamed = 5;
  std::vector<std::string> found;
  size_t more = 0;
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& entry : state) tensors.push_back(entry.tensor);
  const std::vector<bool> not_finite = HaveNonFinite(tensors);
  for (size_t i = 0; i < state.size(); ++i) {
    const NamedTensor& entry = state[i];
    const int64_t count = exempt.count(entry.name) > 0 || !not_finite[i] ? 0 : CountNonFinite(entry.tensor);
    if (count == 0) continue;
    if (found.size() == kMostNamed) {
      ++more;
    } else {
      found.push_back(absl::StrCat(entry.name, " (", count, " of ", entry.tensor.numel(), " values)"));
    }
  }
  return absl::StrCat(absl::StrJoin(found, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::StatusOr<std::vector<NamedTensor>> Unique(std::vector<NamedTensor> state) {
  std::set<absl::string_view> names;
  for (const NamedTensor& entry : state) {
    if (names.insert(entry.name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("state '", entry.name, "' is visited twice"));
  }
  return state;
}

// First pass of a restore: finds every difference and prepares the assignments, without changing anything.
class Matcher : public ScopedVisitor {
 public:
  explicit Matcher(const std::vector<NamedTensor>& state) {
    for (const NamedTensor& entry : state) unclaimed_.emplace(entry.name, entry.tensor);
  }

  void Tensor(absl::string_view name, at::Tensor& value) override {
    const at::Tensor loaded = Claim(name);
    if (!loaded.defined()) return;
    if (!value.defined()) {
      assignments_.push_back([&value, loaded] { value = loaded.clone(); });
    } else if (value.scalar_type() != loaded.scalar_type() || value.sizes() != loaded.sizes()) {
      problems_.push_back(absl::StrCat(Path(name), " is ", Describe(loaded), ", expected ", Describe(value)));
    } else {
      assignments_.push_back([target = value, loaded] { target.copy_(loaded); });
    }
  }
  void Int(absl::string_view name, int64_t& value) override { Scalar<int64_t>(name, at::kLong, value); }
  void Double(absl::string_view name, double& value) override { Scalar<double>(name, at::kDouble, value); }
  void Ints(absl::string_view name, std::vector<int64_t>& value) override { List<int64_t>(name, at::kLong, value); }
  void Doubles(absl::string_view name, std::vector<double>& value) override { List<double>(name, at::kDouble, value); }
  void Text(absl::string_view name, std::string& value) override {
    const at::Tensor loaded = ClaimAs(name, at::kByte, 1);
    if (!loaded.defined()) return;
    const std::vector<char> bytes = ToValues<char>(loaded);
    assignments_.push_back([&value, text = std::string(bytes.begin(), bytes.end())] { value = text; });
  }

  void MayBeNonFinite(absl::string_view name) override { may_be_non_finite_.insert(Path(name)); }

  const std::set<std::string>& may_be_non_finite() const { return may_be_non_finite_; }

  void OnRestored(std::function<void()> function) override {
    if (!within_absent_scope_) finishers_.push_back(std::move(function));
  }

  void ScopesMayDiffer() override { open_scopes_.insert(prefix()); }

  void Scope(absl::string_view name, Stateful& child) override {
    const bool is_optional = open_scopes_.count(prefix()) > 0;
    const bool is_absent = is_optional && !within_absent_scope_ && !HoldsScope(Path(name));
    const bool outer_is_absent = within_absent_scope_;
    const int64_t visited_before = visited_;
    // An absent one is walked all the same, to learn whether it has any state.
    within_absent_scope_ = outer_is_absent || is_absent;
    ScopedVisitor::Scope(name, child);
    within_absent_scope_ = outer_is_absent;
    if (!is_optional || visited_ == visited_before) return;
    optional_scopes_.insert(Path(name));
    if (is_absent) absent_scopes_.insert(Path(name));
  }

  // Whether the state's `name` belongs to a part that this run does not have, and need not have.
  bool IsOfAnotherPart(absl::string_view name) const { return !OtherPartOf(name).empty(); }

  // After the walk; "" when the state has the scopes of this run.
  std::string DescribeDifferentScopes() const {
    std::set<std::string> others;
    for (const auto& entry : unclaimed_) {
      if (IsOfAnotherPart(entry.first)) others.insert(OtherPartOf(entry.first));
    }
    std::vector<std::string> parts;
    if (!absent_scopes_.empty()) {
      parts.push_back(absl::StrCat("has no state of ", absl::StrJoin(absent_scopes_, ", "), ", which start anew"));
    }
    if (!others.empty()) {
      parts.push_back(absl::StrCat("the state of ", absl::StrJoin(others, ", "), " is of no part of this run"));
    }
    return absl::StrJoin(parts, "; ");
  }

  std::vector<std::string> Problems() {
    std::set<std::string> left_over;
    for (const auto& entry : unclaimed_) {
      if (!IsOfAnotherPart(entry.first)) left_over.insert(entry.first);
    }
    for (const std::string& name : left_over) problems_.push_back(absl::StrCat(name, " has no place in this run"));
    // Another optimizer differs in every parameter; the first few tell as much.
    constexpr size_t kMostNamed = 6;
    if (problems_.size() > kMostNamed) {
      const size_t more = problems_.size() - kMostNamed;
      problems_.resize(kMostNamed);
      problems_.push_back(absl::StrCat("and ", more, " more differences"));
    }
    return problems_;
  }

  void Apply() const {
    for (const auto& assign : assignments_) assign();
    for (const auto& finish : finishers_) finish();
  }

 private:
  static std::string Describe(const at::Tensor& tensor) {
    return absl::StrCat(at::toString(tensor.scalar_type()), " [", absl::StrJoin(tensor.sizes(), ", "), "]");
  }

  // Whether the state has anything in the scope `path`.
  bool HoldsScope(const std::string& path) const {
    const std::string begin = absl::StrCat(path, "/");
    return std::any_of(unclaimed_.begin(), unclaimed_.end(),
                       [&begin](const auto& entry) { return absl::StartsWith(entry.first, begin); });
  }

  // "hooks/ema" for "hooks/ema/names" when the scopes of "hooks/" may differ and this run has no state of ema; "" for
  // what is in no such scope. Open scopes may lie in one another; the outermost comes first in the order of names.
  std::string OtherPartOf(absl::string_view name) const {
    for (const std::string& outer : open_scopes_) {
      const size_t end = absl::StartsWith(name, outer) ? name.find('/', outer.size()) : absl::string_view::npos;
      if (end == absl::string_view::npos) continue;
      std::string scope(name.substr(0, end));
      if (optional_scopes_.count(scope) == 0) return scope;
    }
    return "";
  }

  // The tensor of that name, which no other name can claim then; undefined, with a problem noted, when missing.
  at::Tensor Claim(absl::string_view name) {
    ++visited_;
    if (within_absent_scope_) return at::Tensor();
    const auto found = unclaimed_.find(Path(name));
    if (found == unclaimed_.end()) {
      problems_.push_back(absl::StrCat(Path(name), " is missing"));
      return at::Tensor();
    }
    at::Tensor tensor = found->second;
    unclaimed_.erase(found);
    return tensor;
  }

  at::Tensor ClaimAs(absl::string_view name, at::ScalarType type, int64_t dimensions) {
    at::Tensor loaded = Claim(name);
    if (!loaded.defined() || (loaded.scalar_type() == type && loaded.dim() == dimensions)) return loaded;
    problems_.push_back(absl::StrCat(Path(name), " is ", Describe(loaded), ", expected ", at::toString(type), " with ",
                                     dimensions, " dimensions"));
    return at::Tensor();
  }

  template <class T>
  void Scalar(absl::string_view name, at::ScalarType type, T& value) {
    const at::Tensor loaded = ClaimAs(name, type, 0);
    if (loaded.defined()) assignments_.push_back([&value, item = loaded.item<T>()] { value = item; });
  }

  template <class T>
  void List(absl::string_view name, at::ScalarType type, std::vector<T>& value) {
    const at::Tensor loaded = ClaimAs(name, type, 1);
    if (loaded.defined()) assignments_.push_back([&value, items = ToValues<T>(loaded)] { value = items; });
  }

  std::unordered_map<std::string, at::Tensor> unclaimed_;
  std::vector<std::function<void()>> assignments_;
  std::vector<std::function<void()>> finishers_;
  std::vector<std::string> problems_;
  std::set<std::string> may_be_non_finite_;
  std::set<std::string> open_scopes_;      // whose scopes may differ; each ends with '/'
  std::set<std::string> optional_scopes_;  // walked within those, with state
  std::set<std::string> absent_scopes_;    // of these, those that the state lacks; the outermost ones
  bool within_absent_scope_ = false;
  int64_t visited_ = 0;  // tensors and numbers
};

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> CollectState(Stateful& root) {
  Collector collector;
  root.VisitState(collector);
  return Unique(collector.Take());
}

absl::StatusOr<WalkedState> WalkState(Stateful& root) {
  Collector collector;
  root.VisitState(collector);
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, Unique(collector.Take()));
  return WalkedState{std::move(tensors), collector.TakeDifferences()};
}

absl::StatusOr<std::vector<NamedTensor>> CollectFiniteState(Stateful& root) {
  Collector collector;
  root.VisitState(collector);
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, Unique(collector.Take()));
  const std::string found = DescribeNonFinite(state, collector.may_be_non_finite());
  if (found.empty()) return state;
  return absl::OutOfRangeError(absl::StrCat("the state of the run is not finite: ", found));
}

absl::Status RestoreState(Stateful& root, const std::vector<NamedTensor>& state, const std::string& origin) {
  Matcher matcher(state);
  root.VisitState(matcher);
  const std::vector<std::string> problems = matcher.Problems();
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": saved by another model, optimizer or configuration: ", absl::StrJoin(problems, "; ")));
  }
  std::vector<NamedTensor> used = state;
  used.erase(std::remove_if(used.begin(), used.end(),
                            [&matcher](const NamedTensor& entry) { return matcher.IsOfAnotherPart(entry.name); }),
             used.end());
  const std::string not_finite = DescribeNonFinite(used, matcher.may_be_non_finite());
  if (!not_finite.empty()) {
    return absl::DataLossError(absl::StrCat(origin, ": holds infinite values or NaN: ", not_finite));
  }
  const c10::AutoGradMode no_gradients(false);
  matcher.Apply();
  const std::string different = matcher.DescribeDifferentScopes();
  if (!different.empty()) SSL_LOG(WARNING) << origin << ": " << different;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> HashState(Stateful& root) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(root));
  uint32_t hash = 0;
  for (const NamedTensor& entry : state) {
    hash = ExtendCrc32c(hash, entry.name);
    if (!entry.tensor.defined()) continue;
    const at::Tensor bytes = entry.tensor.detach().contiguous();
    hash = ExtendCrc32c(hash, {static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
  return hash;
}

}  // namespace ssl
