// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_pickle.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/pickle_input.h"

namespace ssl {
namespace {

using Kind = TorchValue::Kind;

constexpr size_t kMaxPickleBytes = size_t{16} << 20;
constexpr int64_t kMaxInstructions = 400'000;

class Unpickler {
 public:
  Unpickler(absl::string_view bytes, TorchObjects* objects) : input_(bytes), objects_(*objects) {}

  absl::string_view rest() const { return input_.rest(); }

  absl::StatusOr<const TorchValue*> Run() {
    while (++objects_.instructions <= kMaxInstructions) {
      uint8_t opcode = 0;
      SSL_RETURN_IF_ERROR(input_.Take(&opcode));
      if (opcode == kStop) {
        SSL_ASSIGN_OR_RETURN(const TorchValue* root, Pop());
        return root;
      }
      SSL_RETURN_IF_ERROR(Execute(opcode));
    }
    return absl::UnimplementedError(absl::StrCat("more than ", kMaxInstructions, " pickle instructions"));
  }

 private:
  absl::Status Execute(uint8_t opcode) {
    switch (opcode) {
      case kProto:
        return input_.Skip<uint8_t>();
      case kFrame:
        return input_.Skip<uint64_t>();
      case kMark:
        marks_.push_back(stack_.size());
        return absl::OkStatus();
      case kPop:
        return Pop().status();
      case kPopMark:
        return PopMark().status();
      case kBinPut:
        return Put<uint8_t>();
      case kLongBinPut:
        return Put<uint32_t>();
      case kMemoize:
        return PutAt(static_cast<uint32_t>(memo_.size()));
      case kBinGet:
        return Get<uint8_t>();
      case kLongBinGet:
        return Get<uint32_t>();
      case kGlobalName:
        return PushGlobalLines();
      case kStackGlobal:
        return PushStackGlobal();
      case kNewObjectWithNames:
        SSL_RETURN_IF_ERROR(Pop().status());
        return Reduce();
      case kNewObject:
      case kReduce:
        return Reduce();
      case kBuild:
        return Build();
      case kBinPersId:
        return PushStorage();
      default:
        return ExecuteValue(opcode);
    }
  }

  absl::Status ExecuteValue(uint8_t opcode) {
    switch (opcode) {
      case kNone:
        return Push(objects_.New(Kind::kNull));
      case kNewTrue:
        return PushInteger(Kind::kBool, 1);
      case kNewFalse:
        return PushInteger(Kind::kBool, 0);
      case kBinInt:
        return PushInt<int32_t>();
      case kBinInt1:
        return PushInt<uint8_t>();
      case kBinInt2:
        return PushInt<uint16_t>();
      case kLong1:
        return PushLong<uint8_t>();
      case kLong4:
        return PushLong<uint32_t>();
      case kBinFloat:
        return PushFloat();
      case kShortBinUnicode:
      case kShortBinString:
      case kShortBinBytes:
        return PushText<uint8_t>();
      case kBinUnicode:
      case kBinString:
      case kBinBytes:
        return PushText<uint32_t>();
      case kBinUnicode8:
      case kBinBytes8:
      case kByteArray8:
        return PushText<uint64_t>();
      default:
        return ExecuteContainer(opcode);
    }
  }

  absl::Status ExecuteContainer(uint8_t opcode) {
    switch (opcode) {
      case kEmptyList:
      case kEmptyTuple:
        return Push(objects_.New(Kind::kList));
      case kEmptyDict:
        return Push(objects_.New(Kind::kDict));
      case kEmptySet:
        return Push(MakeUnknownObject("set", &objects_));
      case kAddItems:
        return PopMark().status();
      case kFrozenSet:
        SSL_RETURN_IF_ERROR(PopMark().status());
        return Push(MakeUnknownObject("frozenset", &objects_));
      case kTuple1:
        return PushTuple(Last(1));
      case kTuple2:
        return PushTuple(Last(2));
      case kTuple3:
        return PushTuple(Last(3));
      case kTuple:
        return PushTuple(TakeMark());
      case kAppend:
        return AddItems(Kind::kList, Last(1));
      case kAppends:
        return AddItems(Kind::kList, TakeMark());
      case kSetItem:
        return AddItems(Kind::kDict, Last(2));
      case kSetItems:
        return AddItems(Kind::kDict, TakeMark());
      default:
        return absl::UnimplementedError(
            absl::StrCat("refuses pickle instruction 0x", absl::Hex(opcode, absl::kZeroPad2)));
    }
  }

  absl::Status Push(TorchValue* value) {
    stack_.push_back(value);
    return absl::OkStatus();
  }

  absl::Status PushInteger(Kind kind, int64_t integer) {
    TorchValue* value = objects_.New(kind);
    value->integer = integer;
    return Push(value);
  }

  template <class T>
  absl::Status PushInt() {
    T integer = 0;
    SSL_RETURN_IF_ERROR(input_.Take(&integer));
    return PushInteger(Kind::kInt, integer);
  }

  // Two's complement, little endian, of any length: NumPy's random generators have states of 128 bits.
  template <class Length>
  absl::Status PushLong() {
    SSL_ASSIGN_OR_RETURN(const absl::string_view digits, input_.TakeText<Length>());
    if (digits.size() > sizeof(int64_t)) return Push(MakeUnknownObject("int", &objects_));
    int64_t integer = !digits.empty() && digits.back() < 0 ? -1 : 0;
    std::memcpy(&integer, digits.data(), digits.size());
    return PushInteger(Kind::kInt, integer);
  }

  // Big endian.
  absl::Status PushFloat() {
    uint64_t bits = 0;
    SSL_RETURN_IF_ERROR(input_.Take(&bits));
    bits = __builtin_bswap64(bits);
    TorchValue* value = objects_.New(Kind::kDouble);
    std::memcpy(&value->number, &bits, sizeof(bits));
    return Push(value);
  }

  template <class Length>
  absl::Status PushText() {
    SSL_ASSIGN_OR_RETURN(const absl::string_view text, input_.TakeText<Length>());
    TorchValue* value = objects_.New(Kind::kString);
    value->text = text;
    return Push(value);
  }

  // Marks are floors: an instruction reaches below the last one only by taking it.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  absl::StatusOr<TorchValue*> Pop() {
    if (stack_.size() <= Floor()) return DamagedPickle("takes more values than there are");
    TorchValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }

  absl::StatusOr<TorchValue*> Top() const {
    if (stack_.size() <= Floor()) return DamagedPickle("takes more values than there are");
    return stack_.back();
  }

  // Positions on the stack from which an instruction takes values: the last `count`, or all above the last mark.
  absl::StatusOr<size_t> Last(size_t count) const {
    if (stack_.size() < Floor() + count) return DamagedPickle("takes more values than there are");
    return stack_.size() - count;
  }

  absl::StatusOr<size_t> TakeMark() {
    if (marks_.empty()) return DamagedPickle("takes a mark that is not there");
    const size_t position = marks_.back();
    marks_.pop_back();
    return position;
  }

  absl::StatusOr<size_t> PopMark() {
    SSL_ASSIGN_OR_RETURN(const size_t position, TakeMark());
    stack_.resize(position);
    return position;
  }

  absl::Status PushTuple(absl::StatusOr<size_t> first) {
    if (!first.ok()) return first.status();
    TorchValue* tuple = objects_.New(Kind::kList);
    tuple->items.assign(stack_.begin() + *first, stack_.end());
    stack_.resize(*first);
    return Push(tuple);
  }

  // Moves the values from `first` on into the list or dict that stands before them. An unknown object that takes them
  // is of a class like list or dict. What a dict has under keys that are no scalars, nobody looks up.
  absl::Status AddItems(Kind kind, absl::StatusOr<size_t> first) {
    if (!first.ok()) return first.status();
    if (*first <= Floor()) return DamagedPickle("adds values to what holds none");
    TorchValue& target = *stack_[*first - 1];
    if (target.kind == Kind::kObject && FindTorchGlobal(target) == nullptr) target.kind = kind;
    if (target.kind != kind) return DamagedPickle("adds values to what holds none");
    const size_t step = kind == Kind::kDict ? 2 : 1;
    if ((stack_.size() - *first) % step != 0) return DamagedPickle("has a dict with a key and no value");
    for (size_t i = *first; i < stack_.size(); i += step) {
      if (kind == Kind::kDict && !IsTorchScalar(*stack_[i])) continue;
      target.items.insert(target.items.end(), stack_.begin() + i, stack_.begin() + i + step);
    }
    stack_.resize(*first);
    return absl::OkStatus();
  }

  template <class Index>
  absl::Status Put() {
    Index index = 0;
    SSL_RETURN_IF_ERROR(input_.Take(&index));
    return PutAt(index);
  }

  absl::Status PutAt(uint32_t index) {
    SSL_ASSIGN_OR_RETURN(TorchValue * value, Top());
    memo_[index] = value;
    return absl::OkStatus();
  }

  template <class Index>
  absl::Status Get() {
    Index index = 0;
    SSL_RETURN_IF_ERROR(input_.Take(&index));
    const auto found = memo_.find(index);
    if (found == memo_.end()) return DamagedPickle(absl::StrCat("recalls value ", index, ", which was never kept"));
    return Push(found->second);
  }

  absl::Status PushGlobal(absl::string_view module, absl::string_view name) {
    SSL_ASSIGN_OR_RETURN(TorchValue * global, MakeTorchGlobal(module, name, &objects_));
    return Push(global);
  }

  absl::Status PushGlobalLines() {
    SSL_ASSIGN_OR_RETURN(const absl::string_view module, input_.TakeLine());
    SSL_ASSIGN_OR_RETURN(const absl::string_view name, input_.TakeLine());
    return PushGlobal(module, name);
  }

  absl::Status PushStackGlobal() {
    SSL_ASSIGN_OR_RETURN(const TorchValue* name, Pop());
    SSL_ASSIGN_OR_RETURN(const TorchValue* module, Pop());
    return PushGlobal(module->text, name->text);
  }

  // Of an unknown function or class, the result is as unknown: nothing is called.
  absl::Status Reduce() {
    SSL_ASSIGN_OR_RETURN(const TorchValue* arguments, Pop());
    SSL_ASSIGN_OR_RETURN(const TorchValue* function, Pop());
    const TorchGlobal* known = FindTorchGlobal(*function);
    const bool is_call = function->kind == Kind::kObject && (known == nullptr || known->call != nullptr);
    if (!is_call || arguments->kind != Kind::kList) return DamagedPickle("calls what is no function");
    if (known == nullptr) return Push(MakeUnknownObject(function->text, &objects_));
    SSL_ASSIGN_OR_RETURN(TorchValue * result, known->call(*arguments, &objects_));
    return Push(result);
  }

  // Attributes of a state dict ("_metadata": versions of its modules) and of objects have no meaning here.
  absl::Status Build() {
    SSL_RETURN_IF_ERROR(Pop().status());
    SSL_ASSIGN_OR_RETURN(const TorchValue* target, Top());
    if (target->kind == Kind::kDict || target->kind == Kind::kList || target->kind == Kind::kObject) {
      return absl::OkStatus();
    }
    return absl::UnimplementedError("refuses attributes of anything but a dict, a list or an object");
  }

  absl::Status PushStorage() {
    SSL_ASSIGN_OR_RETURN(const TorchValue* id, Pop());
    SSL_ASSIGN_OR_RETURN(TorchValue * storage, LoadTorchStorage(*id, &objects_));
    return Push(storage);
  }

  PickleInput input_;
  TorchObjects& objects_;
  std::vector<TorchValue*> stack_;
  std::vector<size_t> marks_;  // positions on the stack
  std::map<uint32_t, TorchValue*> memo_;
};

}  // namespace

absl::StatusOr<const TorchValue*> TakePickle(absl::string_view* bytes, TorchObjects* objects) {
  Unpickler unpickler(bytes->substr(0, kMaxPickleBytes), objects);
  SSL_ASSIGN_OR_RETURN(const TorchValue* root, unpickler.Run());
  SSL_RETURN_IF_ERROR(CheckTorchTree(*root));
  bytes->remove_prefix(unpickler.rest().data() - bytes->data());
  return root;
}

}  // namespace ssl
