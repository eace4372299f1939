// The command line of a runner: model MODEL.pt2i --input X.npy|INTEGER ... [--output Y.npy ...] [--repeat N] [--device D]
// [--weights FOLDER]
#pragma once
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "runtime.h"

namespace inductile {

struct Kind {
  at::ScalarType dtype;
  const char* name;
};

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> known = {
      {at::kFloat, "<f4"}, {at::kDouble, "<f8"}, {at::kHalf, "<f2"}, {at::kLong, "<i8"}, {at::kInt, "<i4"},
      {at::kShort, "<i2"}, {at::kChar, "|i1"},   {at::kByte, "|u1"}, {at::kBool, "|b1"}, {at::kComplexFloat, "<c8"},
  };
  return known;
}

inline std::string between(const std::string& text, const std::string& first, char last) {
  const auto start = text.find(first);
  require(start != std::string::npos, "is no array");
  const auto begin = start + first.size();
  return text.substr(begin, text.find(last, begin) - begin);
}

// An array of a file of NumPy's, or an integer.
inline c10::IValue read_array(const std::string& path) {
  if (!path.empty() && path.find_first_not_of("-0123456789") == std::string::npos) return int64_t(std::stoll(path));
  std::ifstream file(path, std::ios::binary);
  require(bool(file), path + ": cannot be read");
  char head[10] = {};
  file.read(head, 10);
  require(std::memcmp(head, "\x93NUMPY", 6) == 0 && head[6] == 1, path + ": is no array of NumPy's version 1");
  std::string described(size_t(uint8_t(head[8]) | uint8_t(head[9]) << 8), ' ');
  file.read(described.data(), std::streamsize(described.size()));
  const auto type = between(described, "'descr': '", '\'');
  require(between(described, "'fortran_order': ", ',') == "False", path + ": lies in the order of Fortran");
  Sizes sizes;
  std::istringstream shape(between(described, "'shape': (", ')'));
  for (std::string each; std::getline(shape, each, ',');)
    if (each.find_first_of("0123456789") != std::string::npos) sizes.push_back(std::stoll(each));
  for (const auto& kind : kinds()) {
    if (type != kind.name) continue;
    auto made = at::empty(sizes, kind.dtype);
    file.read(static_cast<char*>(made.data_ptr()), std::streamsize(made.nbytes()));
    require(bool(file) || made.numel() == 0, path + ": ends early");
    return made;
  }
  throw std::runtime_error(path + ": holds " + type + ", which no input here is");
}

inline void write_array(const std::string& path, const at::Tensor& tensor) {
  const auto value = tensor.cpu().resolve_conj().resolve_neg().contiguous();
  for (const auto& kind : kinds()) {
    if (value.scalar_type() != kind.dtype) continue;
    std::ostringstream text;
    text << "{'descr': '" << kind.name << "', 'fortran_order': False, 'shape': (";
    for (const auto n : value.sizes()) text << n << ", ";
    text << "), }";
    std::string described = text.str();
    described.append((64 - (10 + described.size() + 1) % 64) % 64, ' ');
    described += '\n';
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(char(described.size() & 255)).put(char(described.size() >> 8));
    file << described;
    file.write(static_cast<const char*>(value.data_ptr()), std::streamsize(value.nbytes()));
    require(bool(file), path + ": cannot be written");
    return;
  }
  throw std::runtime_error(path + ": NumPy has no type for " + c10::toString(value.scalar_type()));
}

// A result as a tensor; a number is one without dimensions.
inline at::Tensor as_tensor(const c10::IValue& result) {
  if (result.isTensor()) return result.toTensor();
  const auto dtype = result.isBool() ? at::kBool : result.isInt() ? at::kLong : at::kDouble;
  return at::scalar_tensor(result.toScalar(), at::TensorOptions().dtype(dtype));
}

// Weights from the files NAME.npy of a folder.
inline Weights read_weights(const std::string& folder) {
  Weights found;
  std::error_code problem;
  for (const auto& each : std::filesystem::directory_iterator(folder, problem))
    if (each.path().extension() == ".npy")
      found[each.path().stem().string()] = read_array(each.path().string()).toTensor();
  require(!problem, folder + ": cannot be read");
  return found;
}

// A model on a device that somebody names, or where its package was exported.
template <typename Model>
std::unique_ptr<Model> model_on(const std::string& path, const std::string& device, const Weights& weights) {
  if (device.empty()) return std::make_unique<Model>(path, weights);
  if constexpr (std::is_constructible_v<Model, std::string, c10::Device, Weights>)
    return std::make_unique<Model>(path, c10::Device(device), weights);
  else
    throw std::runtime_error("this program runs on the processor, and not on " + device);
}

template <typename Model>
int run_command(int count, char** words) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  try {
    require(count > 1, "usage: " + std::string(words[0]) + " MODEL.pt2i --input X.npy --output Y.npy [--repeat N] "
                                                            "[--device D] [--weights FOLDER]");
    std::string device;
    Weights weights;
    std::vector<std::string> outputs;
    Values inputs;
    int repeat = 0;
    for (int k = 2; k + 1 < count; k += 2) {
      const std::string flag = words[k];
      if (flag == "--input")
        inputs.push_back(read_array(words[k + 1]));
      else if (flag == "--output")
        outputs.push_back(words[k + 1]);
      else if (flag == "--repeat")
        repeat = std::stoi(words[k + 1]);
      else if (flag == "--device")
        device = words[k + 1];
      else if (flag == "--weights")
        weights = read_weights(words[k + 1]);
      else
        throw std::runtime_error("unknown flag " + flag);
    }
    const auto start = Clock::now();
    const auto made = model_on<Model>(words[1], device, weights);
    auto& model = *made;
    const auto wait = [&] {
      if constexpr (requires { model.wait(); }) model.wait();
    };
    wait();
    const auto loaded = Clock::now();
    if constexpr (requires { model.placed(inputs); }) inputs = model.placed(inputs);
    auto results = model.run(inputs);
    wait();
    const auto first = Clock::now();
    std::cout << "load " << milliseconds(loaded - start) << " ms, first call " << milliseconds(first - loaded) << " ms\n";
    double least = 0, least_cpu = 0;
    for (int k = 0; k < repeat; ++k) {
      const auto begin = Clock::now();
      const auto cpu = std::clock();
      model.run(inputs);
      wait();
      const double used = 1e3 * double(std::clock() - cpu) / CLOCKS_PER_SEC;
      const double took = milliseconds(Clock::now() - begin);
      least = k && least < took ? least : took;
      least_cpu = k && least_cpu < used ? least_cpu : used;
    }
    if (repeat) std::cout << "least of " << repeat << " calls " << least << " ms, of the processor " << least_cpu << " ms\n";
    require(outputs.size() <= results.size(), "the package returns " + std::to_string(results.size()) + " results, and " +
                                                  std::to_string(outputs.size()) + " files are named for them");
    for (size_t k = 0; k < results.size(); ++k) {
      if (results[k].isTensor())
        std::cout << "result " << k << ": " << results[k].toTensor().scalar_type() << results[k].toTensor().sizes() << "\n";
      else
        std::cout << "result " << k << ": " << results[k] << "\n";
      if (k < outputs.size() && !results[k].isNone()) write_array(outputs[k], as_tensor(results[k]));
    }
    return 0;
  } catch (const c10::Error& error) {
    std::cerr << "error: " << error.what_without_backtrace() << "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace inductile
