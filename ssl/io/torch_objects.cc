// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_objects.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

using Kind = TorchValue::Kind;

constexpr size_t kMaxTensors = 65'536;
constexpr size_t kMaxRank = 16;
constexpr int64_t kMaxCopiedPairs = 400'000;
constexpr int kMaxDepth = 100;
constexpr int64_t kMaxWalk = 2'000'000;
constexpr size_t kMaxQuotedBytes = 80;
constexpr size_t kMaxNameBytes = 1'000;
constexpr size_t kMaxUnknownNames = 1'000;
constexpr int64_t kNotInTable = -1;

// The argument at `position`; null when there are fewer, or it is of another kind.
const TorchValue* Argument(const TorchValue& arguments, size_t position, Kind kind) {
  if (position >= arguments.items.size() || arguments.items[position]->kind != kind) return nullptr;
  return arguments.items[position];
}

absl::Status WrongArguments(absl::string_view function) {
  return absl::DataLossError(absl::StrCat(function, " has unexpected arguments"));
}

// OrderedDict(), or OrderedDict([[key, value], ...]) as Python 2 wrote it.
absl::StatusOr<TorchValue*> CallOrderedDict(const TorchValue& arguments, TorchObjects* objects) {
  TorchValue* dict = objects->New(Kind::kDict);
  if (arguments.items.empty()) return dict;
  const TorchValue* pairs = Argument(arguments, 0, Kind::kList);
  if (pairs == nullptr) return WrongArguments("OrderedDict");
  objects->copied_pairs += static_cast<int64_t>(pairs->items.size());
  if (objects->copied_pairs > kMaxCopiedPairs) return absl::UnimplementedError("more than 400,000 values in all dicts");
  for (const TorchValue* pair : pairs->items) {
    if (pair->kind != Kind::kList || pair->items.size() != 2) return WrongArguments("OrderedDict");
    if (IsTorchScalar(*pair->items[0])) dict->items.insert(dict->items.end(), pair->items.begin(), pair->items.end());
  }
  return dict;
}

// defaultdict(factory); the pairs follow.
absl::StatusOr<TorchValue*> CallDefaultDict(const TorchValue& /*arguments*/, TorchObjects* objects) {
  return objects->New(Kind::kDict);
}

// torch.Size((2, 3)) is the list itself. `objects` owns what it refers to, so it may hand it on as it made it.
absl::StatusOr<TorchValue*> CallSize(const TorchValue& arguments, TorchObjects* objects) {
  const TorchValue* sizes = Argument(arguments, 0, Kind::kList);
  if (sizes == nullptr) return WrongArguments("torch.Size");
  return const_cast<TorchValue*>(sizes);
}

bool ToSizes(const TorchValue* list, std::vector<int64_t>* sizes) {
  if (list == nullptr || list->items.size() > kMaxRank) return false;
  for (const TorchValue* item : list->items) {
    if (item->kind != Kind::kInt || item->integer < 0) return false;
    sizes->push_back(item->integer);
  }
  return true;
}

// Values from the first to the last that the tensor reaches, or false: on overflow, or when it has more values than
// its storage, which a stride of 0 allows and which nobody could hold.
bool Extent(const TorchTensor& tensor, int64_t storage_size, int64_t* extent) {
  int64_t values = 1;
  *extent = 1;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t reach = 0;
    const int64_t size = tensor.shape[i];
    if (size == 0) {
      *extent = 0;
      return true;
    }
    if (__builtin_mul_overflow(values, size, &values) || __builtin_mul_overflow(size - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(*extent, reach, extent)) {
      return false;
    }
  }
  return values <= storage_size;
}

// _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks); the older one lacks the last two.
absl::StatusOr<TorchValue*> CallRebuildTensor(const TorchValue& arguments, TorchObjects* objects) {
  const TorchValue* storage_value = Argument(arguments, 0, Kind::kStorage);
  const TorchValue* offset = Argument(arguments, 1, Kind::kInt);
  TorchTensor tensor;
  if (storage_value == nullptr || offset == nullptr || !ToSizes(Argument(arguments, 2, Kind::kList), &tensor.shape) ||
      !ToSizes(Argument(arguments, 3, Kind::kList), &tensor.strides) || tensor.shape.size() != tensor.strides.size()) {
    return WrongArguments("_rebuild_tensor");
  }
  const TorchStorage& storage = objects->storages[storage_value->integer];
  TorchObjects::Place place;
  place.storage = &storage;
  place.begin = offset->integer;
  if (!Extent(tensor, storage.size, &place.extent) || place.begin < 0 || place.begin > storage.size ||
      place.extent > storage.size - place.begin) {
    return absl::DataLossError(absl::StrCat("a tensor of shape [", absl::StrJoin(tensor.shape, ", "), "], strides [",
                                            absl::StrJoin(tensor.strides, ", "), "] at offset ", place.begin,
                                            " does not fit into storage '", PrintableTorchText(storage.key), "' of ",
                                            storage.size, " values"));
  }
  if (objects->tensors.size() == kMaxTensors) {
    return absl::UnimplementedError(absl::StrCat("more than ", kMaxTensors, " tensors"));
  }
  tensor.dtype = storage.dtype;
  objects->tensors.push_back(std::move(tensor));
  place.tensor = &objects->tensors.back();
  objects->places.push_back(place);
  TorchValue* value = objects->New(Kind::kTensor);
  value->tensor = place.tensor;
  return value;
}

// _rebuild_parameter(data, requires_grad, hooks) is its data, likewise.
absl::StatusOr<TorchValue*> CallRebuildParameter(const TorchValue& arguments, TorchObjects* objects) {
  const TorchValue* data = Argument(arguments, 0, Kind::kTensor);
  if (data == nullptr) return WrongArguments("_rebuild_parameter");
  return const_cast<TorchValue*>(data);
}

constexpr std::array<TorchGlobal, 16> kGlobals = {{
    {"collections.OrderedDict", &CallOrderedDict},
    {"collections.defaultdict", &CallDefaultDict},
    {"torch.Size", &CallSize},
    {"torch._utils._rebuild_tensor", &CallRebuildTensor},
    {"torch._utils._rebuild_tensor_v2", &CallRebuildTensor},
    {"torch._utils._rebuild_parameter", &CallRebuildParameter},
    {"torch.DoubleStorage", nullptr, TorchDtype::kFloat64},
    {"torch.FloatStorage", nullptr, TorchDtype::kFloat32},
    {"torch.HalfStorage", nullptr, TorchDtype::kFloat16},
    {"torch.BFloat16Storage", nullptr, TorchDtype::kBfloat16},
    {"torch.LongStorage", nullptr, TorchDtype::kInt64},
    {"torch.IntStorage", nullptr, TorchDtype::kInt32},
    {"torch.ShortStorage", nullptr, TorchDtype::kInt16},
    {"torch.CharStorage", nullptr, TorchDtype::kInt8},
    {"torch.ByteStorage", nullptr, TorchDtype::kUint8},
    {"torch.BoolStorage", nullptr, TorchDtype::kBool},
}};

// Walks every value once; shared ones are counted each time, as a reader meets them.
class TreeCheck {
 public:
  absl::Status Visit(const TorchValue& value, int depth) {
    if (value.kind == Kind::kStorage) return absl::UnimplementedError("refuses a storage as a value");
    if (value.items.empty()) return absl::OkStatus();
    const auto known = measures_.find(&value);
    const int height = known == measures_.end() ? 1 : known->second.height;
    if (depth + height > kMaxDepth) {
      return absl::UnimplementedError(
          absl::StrCat("values are nested more than ", kMaxDepth, " deep, or inside themselves"));
    }
    if (known != measures_.end()) return absl::OkStatus();
    Measure measure;
    for (const TorchValue* item : value.items) {
      SSL_RETURN_IF_ERROR(Visit(*item, depth + 1));
      const auto measured = measures_.find(item);
      const Measure part = measured == measures_.end() ? Measure() : measured->second;
      measure.height = std::max(measure.height, part.height + 1);
      measure.walk += part.walk;
      if (measure.walk > kMaxWalk) return absl::UnimplementedError("shared values add up to more than 2,000,000");
    }
    measures_.emplace(&value, measure);
    return absl::OkStatus();
  }

 private:
  struct Measure {
    int height = 0;
    int64_t walk = 1;  // values met by a reader who follows everything
  };
  std::map<const TorchValue*, Measure> measures_;  // of lists and dicts that hold something
};

}  // namespace

TorchValue* TorchObjects::New(TorchValue::Kind kind) {
  values.emplace_back().kind = kind;
  return &values.back();
}

absl::StatusOr<TorchValue*> MakeTorchGlobal(absl::string_view module, absl::string_view name, TorchObjects* objects) {
  if (module.size() + name.size() > kMaxNameBytes) return absl::UnimplementedError("refuses a global of a long name");
  const std::string full = absl::StrCat(module, ".", name);
  const auto* found = std::find_if(kGlobals.begin(), kGlobals.end(),
                                   [&full](const TorchGlobal& global) { return global.name == full; });
  if (found != kGlobals.end()) {
    TorchValue* known = objects->New(Kind::kObject);
    known->integer = found - kGlobals.begin();
    known->text = found->name;
    return known;
  }
  if (absl::StartsWith(name, "_rebuild") || absl::EndsWith(name, "Storage")) {
    return absl::UnimplementedError(absl::StrCat("refuses global '", PrintableTorchText(full), "'"));
  }
  const auto [kept, inserted] = objects->unknown.insert(full);
  if (inserted && objects->unknown.size() > kMaxUnknownNames) {
    return absl::UnimplementedError(absl::StrCat("more than ", kMaxUnknownNames, " unknown functions and classes"));
  }
  return MakeUnknownObject(*kept, objects);
}

const TorchGlobal* FindTorchGlobal(const TorchValue& value) {
  return value.kind == Kind::kObject && value.integer != kNotInTable ? &kGlobals[value.integer] : nullptr;
}

TorchValue* MakeUnknownObject(absl::string_view name, TorchObjects* objects) {
  TorchValue* object = objects->New(Kind::kObject);
  object->integer = kNotInTable;
  object->text = name;
  return object;
}

absl::StatusOr<TorchValue*> LoadTorchStorage(const TorchValue& id, TorchObjects* objects) {
  const TorchValue* tag = Argument(id, 0, Kind::kString);
  const TorchGlobal* type = id.items.size() > 1 ? FindTorchGlobal(*id.items[1]) : nullptr;
  const TorchValue* key = Argument(id, 2, Kind::kString);
  const TorchValue* size = Argument(id, 4, Kind::kInt);
  if (tag == nullptr || tag->text != "storage" || type == nullptr || type->call != nullptr || key == nullptr ||
      size == nullptr || size->integer < 0) {
    return absl::DataLossError("a persistent id is no (\"storage\", class, key, device, size)");
  }
  if (id.items.size() > 5 && id.items[5]->kind != Kind::kNull) {
    return absl::UnimplementedError("refuses views of storages (torch before 0.4)");
  }
  const TorchDtype dtype = type->dtype;
  const auto [entry, inserted] =
      objects->storage_of_key.emplace(key->text, static_cast<int64_t>(objects->storages.size()));
  if (inserted) {
    if (objects->storages.size() == kMaxTensors) return absl::UnimplementedError("more than 65536 storages");
    objects->storages.push_back({std::string(key->text), dtype, size->integer, {}});
  }
  const TorchStorage& storage = objects->storages[entry->second];
  if (storage.dtype != dtype || storage.size != size->integer) {
    return absl::DataLossError(
        absl::StrCat("storage '", PrintableTorchText(key->text), "' has two dtypes or two sizes"));
  }
  TorchValue* value = objects->New(Kind::kStorage);
  value->integer = entry->second;
  return value;
}

absl::Status CheckTorchTree(const TorchValue& root) { return TreeCheck().Visit(root, 0); }

absl::Status BindTorchTensors(TorchObjects* objects) {
  for (const TorchStorage& storage : objects->storages) {
    if (storage.dtype != TorchDtype::kBool) continue;
    const bool valid =
        std::all_of(storage.bytes.begin(), storage.bytes.end(), [](char value) { return value == 0 || value == 1; });
    if (valid) continue;
    return absl::DataLossError(
        absl::StrCat("storage '", PrintableTorchText(storage.key), "' of bools holds values other than 0 and 1"));
  }
  for (const TorchObjects::Place& place : objects->places) {
    const int64_t width = TorchDtypeBytes(place.tensor->dtype);
    place.tensor->bytes = place.storage->bytes.substr(place.begin * width, place.extent * width);
  }
  return absl::OkStatus();
}

std::string PrintableTorchText(absl::string_view text) {
  return absl::StrCat(absl::CHexEscape(text.substr(0, kMaxQuotedBytes)), text.size() > kMaxQuotedBytes ? "..." : "");
}

}  // namespace ssl
