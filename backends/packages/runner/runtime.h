// What programs of packages call where there is no Python: the file, kernels, ATen by its dispatcher, memory.
// One Model runs one call at a time.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace inductile {

using Sizes = std::vector<int64_t>;
using Values = std::vector<c10::IValue>;

inline void require(bool holds, const std::string& problem) {
  if (!holds) throw std::runtime_error(problem);
}

// integers, as Python computes with them

inline int64_t floordiv(int64_t a, int64_t b) {
  require(b != 0, "an expression of sizes divides by zero");
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

inline int64_t mod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }

template <typename... Rest>
int64_t max(int64_t a, Rest... rest) {
  return std::max({a, int64_t(rest)...});
}

template <typename... Rest>
int64_t min(int64_t a, Rest... rest) {
  return std::min({a, int64_t(rest)...});
}

// the file: a zip of members that are stored as they are

class Package {
 public:
  explicit Package(const std::string& path) : path_(path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0, "the package " + path + " cannot be read");
    struct stat status {};
    fstat(file, &status);
    size_ = size_t(status.st_size);
    // private: programs write to buffers, and the file stays as it is
    void* start = size_ ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    require(start != MAP_FAILED, "the package " + path + " is damaged");
    start_ = static_cast<char*>(start);
    read_directory();
  }
  Package(const Package&) = delete;
  Package& operator=(const Package&) = delete;
  ~Package() { munmap(start_, size_); }

  // Where a member begins, and how long it is.
  std::pair<char*, size_t> member(const std::string& name) const {
    const auto found = members_.find(name);
    require(found != members_.end(), "the package " + path_ + " is another one: it has no " + name);
    return found->second;
  }

 private:
  template <typename T>
  T number(size_t place) const {
    require(place + sizeof(T) <= size_, "the package " + path_ + " is damaged");
    T value;
    std::memcpy(&value, start_ + place, sizeof(T));
    return value;
  }

  // APPNOTE.TXT of PKWARE, 4.3.12 to 4.3.16; members beyond 4 GiB have their numbers in an extra field
  void read_directory() {
    constexpr size_t end = 22;
    size_t last = size_ < end ? 0 : size_ - end;
    while (last > 0 && number<uint32_t>(last) != 0x06054b50) --last;
    require(last > 0, "the package " + path_ + " is damaged");
    uint64_t count = number<uint16_t>(last + 10), place = number<uint32_t>(last + 16);
    if (place == 0xffffffff || count == 0xffff) {
      const auto far = number<uint64_t>(last - 20 + 8);
      count = number<uint64_t>(far + 32), place = number<uint64_t>(far + 48);
    }
    for (uint64_t k = 0; k < count; ++k) {
      require(number<uint32_t>(place) == 0x02014b50 && number<uint16_t>(place + 10) == 0, path_ + " is damaged");
      uint64_t stored = number<uint32_t>(place + 20), whole = number<uint32_t>(place + 24);
      uint64_t head = number<uint32_t>(place + 42);
      const auto name = number<uint16_t>(place + 28), extra = number<uint16_t>(place + 30);
      for (size_t at = place + 46 + name; at + 4 <= place + 46 + name + extra; at += 4 + number<uint16_t>(at + 2)) {
        if (number<uint16_t>(at) != 1) continue;
        size_t field = at + 4;
        for (uint64_t* wide : {&whole, &stored, &head})
          if (*wide == 0xffffffff) *wide = number<uint64_t>(field), field += 8;
      }
      const size_t begin = head + 30 + number<uint16_t>(head + 26) + number<uint16_t>(head + 28);
      require(begin + stored <= size_, "the package " + path_ + " is damaged");
      members_[std::string(start_ + place + 46, name)] = {start_ + begin, stored};
      place += 46 + name + extra + number<uint16_t>(place + 32);
    }
  }

  std::string path_;
  char* start_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, std::pair<char*, size_t>> members_;
};

inline bool is_empty(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 0; });
}

inline void check_weight(at::ScalarType dtype, const Sizes& sizes, const Sizes& strides, int64_t start, int64_t bytes) {
  int64_t reach = int64_t(c10::elementSize(dtype));
  for (size_t d = 0; d < sizes.size(); ++d) reach += (sizes[d] - 1) * strides[d] * int64_t(c10::elementSize(dtype));
  require(start >= 0 && start + reach <= bytes, "a weight reaches beyond the file");
}

inline at::Tensor weight(const Package& package, at::ScalarType dtype, const Sizes& sizes, const Sizes& strides,
                         int64_t start) {
  if (is_empty(sizes)) return at::empty_strided(sizes, strides, dtype);
  auto [content, size] = package.member("weights.bin");
  check_weight(dtype, sizes, strides, start, int64_t(size));
  return at::from_blob(content + start, sizes, strides, dtype);
}

// kernels

class Library {
 public:
  Library(const Package& package, const std::string& name) {
    auto [content, size] = package.member(name);
    const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
    require(file >= 0 && write(file, content, size) == ssize_t(size), "there is no memory for " + name);
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* problem = handle_ ? "" : dlerror();
    // the file stays open: the loader knows libraries by their paths, and another one would have this number
    require(handle_ != nullptr, "kernels of the package do not load: " + std::string(problem));
  }
  void* symbol(const char* name) const { return dlsym(handle_, name); }

 private:
  void* handle_;
};

class Kernel {
 public:
  Kernel(const Library& library, const char* symbol, std::vector<std::string> errors = {})
      : entry_(reinterpret_cast<int (*)(const int64_t*)>(library.symbol(symbol))), errors_(std::move(errors)) {
    require(entry_ != nullptr, std::string("a library of the package has no ") + symbol);
  }
  void operator()(std::initializer_list<int64_t> arguments) const {
    const int status = entry_(arguments.begin());
    if (status != 0) throw std::runtime_error(errors_.at(size_t(status) - 1));
  }

 private:
  int (*entry_)(const int64_t*);
  std::vector<std::string> errors_;
};

inline int64_t address(const at::Tensor& tensor) { return reinterpret_cast<int64_t>(tensor.data_ptr()); }

// The kernels of a program by name: the file and the C name of each. A file is loaded when a kernel of it is asked for.
class Kernels {
 public:
  struct Place {
    const char *name, *library, *symbol;
  };
  Kernels(const Package& package, std::vector<Place> places) : package_(package), places_(std::move(places)) {}
  Kernel operator()(const std::string& name, std::vector<std::string> errors) const {
    for (const auto& each : places_)
      if (name == each.name) return Kernel(library(each.library), each.symbol, std::move(errors));
    throw std::runtime_error("the package has no kernel " + name);
  }

 private:
  const Library& library(const std::string& name) const {
    const auto found = libraries_.find(name);
    return found != libraries_.end() ? found->second : libraries_.emplace(name, Library(package_, name)).first->second;
  }

  const Package& package_;
  std::vector<Place> places_;
  mutable std::map<std::string, Library> libraries_;
};

// ATen

struct Argument {
  Argument() = default;  // the default of the schema
  template <typename T>
  Argument(T value) : value(c10::IValue(std::move(value))) {}
  std::optional<c10::IValue> value;
};

inline c10::IValue none() { return c10::IValue(); }

template <typename T>
c10::IValue list(std::vector<T> items) {
  return c10::IValue(c10::List<T>(c10::ArrayRef<T>(items)));
}

inline c10::IValue list(std::vector<bool> items) {
  c10::List<bool> made;
  for (const bool each : items) made.push_back(each);
  return c10::IValue(made);
}

class Operator {
 public:
  Operator(const char* name, const char* overload)
      : handle_(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)) {}
  // The results of a call; arguments that are left out have the defaults of the schema.
  Values operator()(std::initializer_list<Argument> arguments) const {
    Values stack;
    size_t position = 0;
    for (const auto& expected : handle_.schema().arguments()) {
      const Argument* given = position < arguments.size() ? arguments.begin() + position : nullptr;
      ++position;
      if (given && given->value)
        stack.push_back(*given->value);
      else
        stack.push_back(expected.default_value().value());
    }
    handle_.callBoxed(&stack);
    return stack;
  }

 private:
  c10::OperatorHandle handle_;
};

// memory

inline at::Tensor empty(const Sizes& sizes, const Sizes& strides, at::ScalarType dtype) {
  return at::empty_strided(sizes, strides, dtype);
}

// Other sizes and strides over the memory of a tensor; the offset is in bytes, from its first element.
inline at::Tensor view(const at::Tensor& source, int64_t offset, const Sizes& sizes, const Sizes& strides,
                       at::ScalarType dtype) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(source.storage()), source.key_set(),
                                                       c10::scalarTypeToTypeMeta(dtype));
  const int64_t start = source.storage_offset() * int64_t(source.element_size()) + offset;
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, start / int64_t(c10::elementSize(dtype)));
  return made;
}

inline at::Tensor in_pool(const at::Tensor& pool, int64_t offset, const Sizes& sizes, const Sizes& strides,
                          at::ScalarType dtype) {
  return view(pool, offset, sizes, strides, dtype);
}

// Offsets are in elements of the result, from the first one of the source.
inline at::Tensor retyped(const at::Tensor& source, int64_t offset, const Sizes& sizes, const Sizes& strides,
                          at::ScalarType dtype) {
  return view(source, offset * int64_t(c10::elementSize(dtype)), sizes, strides, dtype);
}

inline at::Tensor strided(const at::Tensor& source, const Sizes& sizes, const Sizes& strides, int64_t offset) {
  return retyped(source, offset, sizes, strides, source.scalar_type());
}

inline bool lies_so(const at::Tensor& tensor, const Sizes& strides) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) != 1 && tensor.stride(d) != strides[size_t(d)]) return false;
  return true;
}

// The tensor with these strides where they matter; a copy where it lies otherwise.
inline at::Tensor fit(const at::Tensor& tensor, const Sizes& sizes, const Sizes& strides) {
  if (tensor.numel() == 0 || lies_so(tensor, strides)) return tensor;
  return at::empty_strided(sizes, strides, tensor.options()).copy_(tensor);
}

inline void check_size(const at::Tensor& tensor, const Sizes& sizes, const char* name) {
  require(tensor.sizes() == at::IntArrayRef(sizes), std::string(name) + " gives a tensor of other sizes");
}

// Weights that are not in the file, by their names in the state dictionary: who makes a model brings them.
using Weights = std::map<std::string, at::Tensor>;

inline at::Tensor brought(const Weights& weights, const char* name, at::ScalarType dtype, const Sizes& sizes,
                          const Sizes& strides, c10::Device device = c10::kCPU) {
  const auto found = weights.find(name);
  require(found != weights.end(), std::string("the package has no weights inside, and ") + name + " is not given");
  const at::Tensor& given = found->second;
  if (given.scalar_type() != dtype || given.sizes() != at::IntArrayRef(sizes)) {
    std::ostringstream text;
    text << "the tensor " << name << " is " << given.scalar_type() << given.sizes() << ", the package takes " << dtype
         << at::IntArrayRef(sizes);
    throw std::runtime_error(text.str());
  }
  return fit(given.detach().to(device), sizes, strides);
}

inline void known_alone(const Weights& weights, const std::vector<std::string>& names) {
  for (const auto& each : weights)
    require(std::find(names.begin(), names.end(), each.first) != names.end(),
            "the package takes no weight " + each.first);
}

// Memory that stays from call to call, and is lent to one user at a time; the larger of what comes back stays.
class Arena {
 public:
  at::Tensor take(int64_t bytes) {
    at::Tensor lent = std::move(memory_);
    memory_ = at::Tensor();
    return lent.defined() && lent.numel() >= bytes ? lent : at::empty({bytes}, at::kByte);
  }
  void give(const at::Tensor& memory) {
    if (!memory_.defined() || memory_.numel() < memory.numel()) memory_ = memory;
  }

 private:
  at::Tensor memory_;
};

// Results that weights decide, which stay from call to call.
class Kept {
 public:
  template <typename Run>
  Values results(Values given, Run run) {
    std::vector<void*> places;
    for (const auto& each : given) places.push_back(each.toTensor().data_ptr());
    if (places_ != places || places.empty()) {
      results_ = run(std::move(given));
      places_ = places;
    }
    return results_;
  }

 private:
  std::vector<void*> places_;
  Values results_;
};

// inputs

inline at::Tensor taken(const c10::IValue& value, at::ScalarType dtype, int64_t rank, const char* shown) {
  require(value.isTensor() && value.toTensor().scalar_type() == dtype && value.toTensor().dim() == rank,
          std::string("the package takes ") + shown);
  return value.toTensor().resolve_conj().resolve_neg();
}

// The tensor in these strides, or else with its dimensions in this order in memory, the outermost first.
inline at::Tensor arranged(const at::Tensor& tensor, const Sizes& strides, const Sizes& order) {
  if (!strides.empty() && lies_so(tensor, strides)) return tensor;
  if (order.empty()) return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
  Sizes inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[size_t(order[k])] = int64_t(k);
  return tensor.permute(order).contiguous().permute(inverse);
}

inline int64_t number(const c10::IValue& value, const char* shown) {
  require(value.isInt(), std::string("the package takes ") + shown);
  return value.toInt();
}

}  // namespace inductile
