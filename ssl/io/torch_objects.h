// SPDX-License-Identifier: Apache-2.0
//
// What the pickle of a torch.save file may make besides plain data: tensors, from a short table of functions that are
// imitated, storages, and objects of which nothing is known but the name. Private to ssl/io, used by torch_pickle.h and
// torch_file.h. Not thread-safe. Errors are kDataLoss for what contradicts itself and kUnimplemented for what is beyond
// a limit; they name no file.

#ifndef SSL_IO_TORCH_OBJECTS_H_
#define SSL_IO_TORCH_OBJECTS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/torch_value.h"

namespace ssl {

// The memory that one or several tensors are views of.
struct TorchStorage {
  std::string key;  // its name in the file
  TorchDtype dtype = TorchDtype::kFloat32;
  int64_t size = 0;         // values
  absl::string_view bytes;  // all of them; set when the pickle was read
};

// Everything that the pickles of one file make. Objects never move.
struct TorchObjects {
  // Where a tensor lies in its storage, in values.
  struct Place {
    TorchTensor* tensor = nullptr;
    const TorchStorage* storage = nullptr;
    int64_t begin = 0;
    int64_t extent = 0;
  };

  std::deque<TorchValue> values;
  std::deque<TorchTensor> tensors;
  std::vector<Place> places;  // one for each tensor
  std::deque<TorchStorage> storages;
  std::map<std::string, int64_t, std::less<>> storage_of_key;
  int64_t instructions = 0;                    // executed so far
  int64_t copied_pairs = 0;                    // by OrderedDict so far
  std::set<std::string, std::less<>> unknown;  // names of functions and classes that are not imitated

  TorchValue* New(TorchValue::Kind kind);
};

// True for what may be the key of a dict.
inline bool IsTorchScalar(const TorchValue& value) { return value.kind <= TorchValue::Kind::kString; }

// A module-level name that a pickle may use. `call` is null for the classes of storages.
struct TorchGlobal {
  absl::string_view name;
  absl::StatusOr<TorchValue*> (*call)(const TorchValue& arguments, TorchObjects* objects) = nullptr;
  TorchDtype dtype = TorchDtype::kFloat32;
};

// A kObject, "module.name". kUnimplemented "refuses global 'module.name'" for what makes tensors in a way that is not
// imitated: without it, weights would be missing.
absl::StatusOr<TorchValue*> MakeTorchGlobal(absl::string_view module, absl::string_view name, TorchObjects* objects);
// What it is in the table; null when it is not there.
const TorchGlobal* FindTorchGlobal(const TorchValue& value);
// An object of which nothing is known but that `name`, which `objects` or the file holds, made it.
TorchValue* MakeUnknownObject(absl::string_view name, TorchObjects* objects);

// The storage that a persistent id names: ("storage", class, key, device, size[, None]).
absl::StatusOr<TorchValue*> LoadTorchStorage(const TorchValue& id, TorchObjects* objects);

// Refuses what torch_file.h promises not to return: values inside themselves, nesting of more than 100, trees of more
// than 2 million values, storages.
absl::Status CheckTorchTree(const TorchValue& root);

// Gives every tensor its part of its storage, whose bytes are set now. kDataLoss for a bool that is neither 0 nor 1.
absl::Status BindTorchTensors(TorchObjects* objects);

// Text from a file for a message: short and printable.
std::string PrintableTorchText(absl::string_view text);

}  // namespace ssl

#endif  // SSL_IO_TORCH_OBJECTS_H_
