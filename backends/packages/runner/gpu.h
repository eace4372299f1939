// What programs of packages call where tensors are on a GPU of NVIDIA's: kernels by its driver, which is found when a
// program is loaded, and all else by libtorch. Nothing here needs the headers or the compiler of CUDA.
#pragma once
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>

#include "runtime.h"

namespace inductile {

// the driver: functions of libcuda.so.1 by the names that its header gives them

class Driver {
 public:
  using Module = void*;
  using Function = void*;
  using Context = void*;

  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    require(library_ != nullptr, "this machine has no driver of a GPU: " + std::string(library_ ? "" : dlerror()));
    find(init_, "cuInit"), find(error_name_, "cuGetErrorName"), find(current_, "cuCtxGetCurrent");
    find(make_current_, "cuCtxSetCurrent"), find(retain_, "cuDevicePrimaryCtxRetain_v2", "cuDevicePrimaryCtxRetain");
    find(load_, "cuModuleLoadData"), find(function_, "cuModuleGetFunction");
    find(attribute_, "cuFuncSetAttribute"), find(launch_, "cuLaunchKernel"), find(host_memory_, "cuMemHostAlloc");
    check(init_(0), "cuInit");
  }

  void check(int status, const std::string& what) const {
    if (status == 0) return;
    const char* name = nullptr;
    error_name_(status, &name);
    throw std::runtime_error(what + ": " + (name ? name : "error " + std::to_string(status)) + " of the driver");
  }

  // The context that libtorch uses on a device too.
  Context context(int device) const {
    Context made = nullptr;
    check(retain_(&made, device), "the GPU " + std::to_string(device));
    return made;
  }
  void make_current(Context context) const {
    Context now = nullptr;
    check(current_(&now), "cuCtxGetCurrent");
    if (now != context) check(make_current_(context), "cuCtxSetCurrent");
  }

  Module load(const void* code, const std::string& name) const {
    Module made = nullptr;
    check(load_(&made, code), "the kernel " + name);
    return made;
  }
  Function function(Module module, const char* name, int shared) const {
    constexpr int most_of_plain_launches = 48 << 10, dynamic_shared_bytes = 8;
    Function made = nullptr;
    check(function_(&made, module, name), std::string("the kernel ") + name);
    if (shared > most_of_plain_launches) check(attribute_(made, dynamic_shared_bytes, shared), name);
    return made;
  }
  int launch(Function function, int64_t programs, unsigned threads, unsigned shared, void* stream,
             void** arguments) const {
    return launch_(function, unsigned(programs), 1, 1, threads, 1, 1, shared, stream, arguments, nullptr);
  }

  // Memory of the host's that kernels reach under the same address.
  void* host_memory(size_t bytes) const {
    constexpr unsigned portable_and_mapped = 3;
    void* made = nullptr;
    check(host_memory_(&made, bytes, portable_and_mapped), "memory of the host's");
    std::memset(made, 0, bytes);
    return made;
  }

 private:
  template <typename F>
  void find(F& function, const char* name, const char* other = nullptr) {
    void* found = dlsym(library_, name);
    if (!found && other) found = dlsym(library_, other);
    require(found != nullptr, std::string("the driver of the GPU has no ") + name);
    function = reinterpret_cast<F>(found);
  }

  void* library_;
  int (*init_)(unsigned);
  int (*error_name_)(int, const char**);
  int (*current_)(Context*);
  int (*make_current_)(Context);
  int (*retain_)(Context*, int);
  int (*load_)(Module*, const void*);
  int (*function_)(Function*, Module, const char*);
  int (*attribute_)(Function, int, int);
  int (*host_memory_)(void**, size_t, unsigned);
  int (*launch_)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
};

// A device of libtorch's, which it has started, and the driver. It stays as long as the process.
class Gpu {
 public:
  explicit Gpu(c10::Device wanted) : device(started(wanted)), context_(driver_.context(index())) {}

  const c10::Device device;
  const Driver& driver() const { return driver_; }
  int index() const { return std::max<int>(device.index(), 0); }

  // The current stream of the device.
  void* stream() const {
    if (device.is_cpu()) return nullptr;
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
  }
  void wait() const {
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  }

  // While it lives the device is the current one of this thread.
  class Scope {
   public:
    explicit Scope(const Gpu& gpu) : guard_(gpu.device) { gpu.driver_.make_current(gpu.context_); }

   private:
    c10::DeviceGuard guard_;
  };

 private:
  static c10::Device started(c10::Device wanted) {
    if (wanted.is_cpu()) return wanted;
    if (!dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL))
      throw std::runtime_error("this libtorch is without GPUs: " + std::string(dlerror()));
    at::globalContext().lazyInitDevice(wanted.type());
    const int count = c10::impl::VirtualGuardImpl(wanted.type()).deviceCount();
    require(wanted.index() < count, "this machine has " + std::to_string(count) + " GPUs, and no " + wanted.str());
    return wanted;
  }

  Driver driver_;
  Driver::Context context_;
};

// kernels

// One compiled code of a kernel, and what it relies on: bit 0 of `traits` is set for 64-bit offsets, which reach
// everywhere, and two for each integer: that it is a multiple of 16, and that 32 bits hold it.
struct Variant {
  int64_t traits;
  const char *member, *function;
  unsigned threads, shared;
  size_t scratch;  // addresses behind the arguments: null, but for the first where programs make descriptors
  bool descriptors;  // which they do in the last buffer
};

class GpuKernel {
 public:
  GpuKernel(const Package& package, const Gpu& gpu, const char* name, size_t buffers, std::vector<Variant> variants,
            std::vector<std::string> errors)
      : gpu_(gpu), name_(name), buffers_(buffers), errors_(std::move(errors)) {
    const Gpu::Scope here(gpu);
    std::map<std::string, Driver::Module> modules;  // variants may have the same code
    for (const auto& each : variants) {
      auto& module = modules[each.member];
      if (!module) module = gpu.driver().load(package.member(each.member).first, name_);
      loaded_.push_back({each, gpu.driver().function(module, each.function, int(each.shared))});
    }
    if (!errors_.empty()) status_ = static_cast<int32_t*>(gpu.driver().host_memory(sizeof(int32_t)));
  }

  // Raises the error that launches have reported so far, once. It waits for none.
  void check() const {
    if (!status_ || !*status_) return;
    const auto code = size_t(*status_);
    *status_ = 0;
    throw std::runtime_error(errors_.at(code - 1));
  }

  // `longest` is the length of the longest buffer where the width of offsets depends on it.
  void operator()(void* stream, int64_t programs, int64_t longest, std::initializer_list<int64_t> given) const {
    check();
    if (programs == 0) return;
    constexpr size_t most = 160;
    int64_t values[most];
    void* arguments[most];
    if (given.size() + 3 >= most) throw std::runtime_error(name_ + " has too many arguments");
    int64_t bits = 0, traits = longest > INT32_MAX;
    size_t count = 0;
    for (const int64_t value : given) {
      if (count < buffers_)
        bits |= value;
      else
        traits |= int64_t((value % aligned == 0) | (value == int32_t(value)) << 1) << (2 * (count - buffers_) + 1);
      values[count++] = value;
    }
    if (bits % aligned)
      throw std::runtime_error(name_ + ": the package has no code for buffers that begin between multiples of 16 bytes");
    const auto& [code, function] = variant(traits);
    if (status_) values[count++] = reinterpret_cast<int64_t>(status_);
    for (size_t k = 0; k < code.scratch; ++k) values[count++] = k || !code.descriptors ? 0 : values[buffers_ - 1];
    for (size_t k = 0; k < count; ++k) arguments[k] = values + k;
    const auto& driver = gpu_.driver();
    const int status = driver.launch(function, programs, code.threads, code.shared, stream, arguments);
    if (status) driver.check(status, "the launch of " + name_);
  }

 private:
  static constexpr int64_t aligned = 16;

  // The code for integers like these: that which was compiled for them, or that which relies on less.
  const std::pair<Variant, Driver::Function>& variant(int64_t traits) const {
    for (const auto& each : loaded_)
      if (each.first.traits == traits) return each;
    for (const auto& each : loaded_)
      if (!(each.first.traits & ~traits & ~int64_t(1)) && (each.first.traits & 1 || !(traits & 1))) return each;
    throw std::runtime_error(name_ + ": the package has no code for sizes that 32 bits do not hold");
  }

  const Gpu& gpu_;
  std::string name_;
  size_t buffers_;
  std::vector<std::string> errors_;
  std::vector<std::pair<Variant, Driver::Function>> loaded_;
  int32_t* status_ = nullptr;
};

// The kernels of a program by name.
class GpuKernels {
 public:
  struct Place {
    const char* name;
    size_t buffers;
    std::vector<Variant> variants;
    std::vector<std::string> errors;
  };
  GpuKernels(const Package& package, const Gpu& gpu, std::vector<Place> places)
      : package_(package), gpu_(gpu), places_(std::move(places)) {}
  GpuKernel operator()(const std::string& name) const {
    for (const auto& each : places_)
      if (name == each.name) return {package_, gpu_, each.name, each.buffers, each.variants, each.errors};
    throw std::runtime_error("the package has no kernel " + name);
  }
  const Gpu& gpu() const { return gpu_; }

 private:
  const Package& package_;
  const Gpu& gpu_;
  std::vector<Place> places_;
};

// memory

// The weights of a package on a device, copied there at once, so that those that share memory share it there.
class Upload {
 public:
  Upload(const Package& package, c10::Device device) {
    auto [content, size] = package.member("weights.bin");
    bytes_ = at::from_blob(content, {int64_t(size)}, at::kByte).to(device);
  }
  at::Tensor weight(at::ScalarType dtype, const Sizes& sizes, const Sizes& strides, int64_t start) const {
    if (is_empty(sizes)) return at::empty_strided(sizes, strides, bytes_.options().dtype(dtype));
    check_weight(dtype, sizes, strides, start, bytes_.numel());
    return view(bytes_, start, sizes, strides, dtype);
  }

 private:
  at::Tensor bytes_;
};

inline at::Tensor empty(const Sizes& sizes, const Sizes& strides, at::ScalarType dtype, c10::Device device) {
  return at::empty_strided(sizes, strides, at::TensorOptions().dtype(dtype).device(device));
}

// A copy on the device. A single number travels with a launch: the host does not wait for it.
inline at::Tensor to_device(const at::Tensor& tensor, c10::Device device) {
  if (tensor.dim()) return tensor.to(device);
  return at::empty({}, tensor.options().device(device)).fill_(tensor);
}

// inputs

inline at::Tensor taken(const c10::IValue& value, c10::Device device, at::ScalarType dtype, int64_t rank,
                        const char* shown) {
  const auto tensor = taken(value, dtype, rank, shown);
  require(tensor.device() == device, std::string("the package takes ") + shown + ", and runs on " + device.str());
  return tensor;
}

// The tensor, or a copy where it begins elsewhere than kernels are compiled for.
inline at::Tensor aligned(const at::Tensor& tensor) {
  if (address(tensor) % 16 == 0) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(tensor);
}

}  // namespace inductile
