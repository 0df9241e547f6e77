// SPDX-License-Identifier: Apache-2.0
//
// One walk over everything that must survive a restart. The same VisitState saves, loads, hashes and compares, so
// that saving and loading cannot drift apart. Nothing that training depends on may live outside this walk.
//
//   void MyHook::VisitState(StateVisitor& visitor) { visitor.Int("calls", calls_); }
#ifndef SSL_CORE_STATEFUL_H_
#define SSL_CORE_STATEFUL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/core/tensor_fwd.h"

namespace ssl {

class Stateful;

// How the values that each rank has for itself go on in a run with another number of ranks.
enum class RankValues {
  kDealRows,  // row i of rank r of N is row i * N + r of all, as samples are dealt out; so it stays
  kSum,       // rank 0 gets the sum, others zeros
  kMean,      // every rank gets the mean
  kJoin,      // rank 0 gets the rows of all, rank by rank (the bytes of a text), others none
};

// Names are relative to the enclosing scope; '/' separates scopes ("hooks/check_nan/count").
// A visitor that loads writes through the references once the whole walk is known to match: they must outlive the
// walk. (A defined tensor is a handle; a copy of it will do.)
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;

  // Loading copies into a defined tensor (same dtype and shape); an undefined one takes the loaded tensor.
  virtual void Tensor(absl::string_view name, at::Tensor& value) = 0;
  virtual void Int(absl::string_view name, int64_t& value) = 0;
  virtual void Double(absl::string_view name, double& value) = 0;
  virtual void Ints(absl::string_view name, std::vector<int64_t>& value) = 0;
  virtual void Doubles(absl::string_view name, std::vector<double>& value) = 0;
  virtual void Text(absl::string_view name, std::string& value) = 0;

  // Declares that the tensor or number `name` of this scope may be infinite or NaN by design. Everything else must be
  // finite to be saved and restored.
  virtual void MayBeNonFinite(absl::string_view name) {}

  // Calls `function` after a restore has written all values; visitors that do not load ignore it.
  virtual void OnRestored(std::function<void()> function) {}

  // Declares that a checkpoint may lack scopes that are walked next within this one, and hold others: they belong to
  // parts that come and go. What is in a scope still has to match.
  virtual void ScopesMayDiffer() {}

  // Declares that each rank has its own `name` in this scope. What is not declared so is the same on all ranks, or as
  // good as rank 0's: with another number of ranks than have saved, every rank that walks it gets rank 0's. `dimension`
  // has the rows. A name that rank 0 does not walk is state of the ranks that do, and needs no declaration: a restore
  // finds it by its name in the file of the rank that had it, whichever rank of however many walks it then.
  virtual void RanksDiffer(absl::string_view name, RankValues values, int64_t dimension = 0) {}

  // Walks `child` inside scope `name`.
  virtual void Scope(absl::string_view name, Stateful& child) = 0;
};

class Stateful {
 public:
  virtual ~Stateful() = default;

  // Visits every piece of state, in a fixed order, under a fixed name. Stateless objects keep the default.
  virtual void VisitState(StateVisitor& visitor) {}
};

}  // namespace ssl

#endif  // SSL_CORE_STATEFUL_H_
