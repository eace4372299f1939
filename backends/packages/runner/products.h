// Products that others than ATen compute, as backends/host/products.py does: under the names that it has there.
#pragma once
#include "runtime.h"

namespace inductile {

inline at::Tensor by_onednn(const std::optional<at::Tensor>& bias, const at::Tensor& left, const at::Tensor& right) {
  static const Operator linear("mkldnn::_linear_pointwise", "");
  const c10::IValue given = bias ? c10::IValue(*bias) : none();
  const auto scalars = list(std::vector<std::optional<at::Scalar>>{});
  return linear({left, right.t(), given, std::string("none"), scalars, std::string()})[0].toTensor();
}

inline at::Tensor mm_by_onednn(const at::Tensor& left, const at::Tensor& right) {
  return by_onednn(std::nullopt, left, right);
}

inline at::Tensor addmm_by_onednn(const at::Tensor& bias, const at::Tensor& left, const at::Tensor& right) {
  return by_onednn(bias, left, right);
}

constexpr int64_t alignment = 16;

inline int64_t greatest_common_divisor(int64_t a, int64_t b) { return b ? greatest_common_divisor(b, a % b) : a; }

inline at::Tensor mm_in_turns(const at::Tensor& left, const at::Tensor& right) {
  const int64_t size = left.element_size(), per = alignment / size, columns = right.size(1), rows = left.size(0);
  at::Tensor out = at::empty({rows, columns}, left.options());
  const int64_t count = alignment / greatest_common_divisor(alignment, columns * size);
  if (count == 1 || columns < 2 * per || rows < count) return at::mm_out(out, left, right);
  const at::Tensor ends = at::cat({right.t().narrow(0, 0, per), right.t().narrow(0, columns - per, per)});
  at::Tensor both = out.as_strided({rows, 2, per}, {columns, columns - per, 1});
  both.copy_(at::mm(left, ends.t()).view({-1, 2, per}));
  for (int64_t turn = 0; turn < count; ++turn) {
    const int64_t first = mod(-turn * columns, per), width = (columns - first) / per * per;
    at::Tensor part = out.slice(0, turn, rows, count).narrow(1, first, width);
    at::mm_out(part, left.slice(0, turn, rows, count), right.narrow(1, first, width));
  }
  return out;
}

inline at::Tensor mm_by_scratch(const at::Tensor& left, const at::Tensor& right) {
  constexpr int64_t scratch_bytes = int64_t(64) << 20;
  const int64_t size = left.element_size(), per = alignment / size, columns = right.size(1), rows = left.size(0);
  at::Tensor out = at::empty({rows, columns}, left.options());
  const int64_t width = columns / per * per;
  if (width == 0 || width == columns || rows == 0) return at::mm_out(out, left, right);
  out.narrow(1, columns - per, per).copy_(at::mm(left, right.narrow(1, columns - per, per)));
  const int64_t most = std::max<int64_t>(scratch_bytes / ((width + per) * size), 1);
  const at::Tensor scratch = at::empty({std::min(rows, most), width + per}, left.options());
  for (int64_t first = 0; first < rows; first += most) {
    const at::Tensor part = left.narrow(0, first, std::min(most, rows - first));
    at::Tensor made = scratch.narrow(0, 0, part.size(0)).narrow(1, 0, width);
    at::mm_out(made, part, right.narrow(1, 0, width));
    out.narrow(0, first, part.size(0)).narrow(1, 0, width).copy_(made);
  }
  return out;
}

inline at::Tensor int_mm_by_floats(const at::Tensor& left, const at::Tensor& right) {
  constexpr int64_t exact_depth = 1024, columns_of_block = 1024;
  const int64_t rows = left.size(0), depth = left.size(1), columns = right.size(1);
  at::Tensor out = at::zeros({rows, columns}, left.options().dtype(at::kInt));
  for (int64_t first = 0; first < depth; first += exact_depth) {
    const int64_t many = std::min(exact_depth, depth - first);
    const at::Tensor part = left.narrow(1, first, many).to(at::kFloat);
    for (int64_t start = 0; start < columns; start += columns_of_block) {
      const int64_t wide = std::min(columns_of_block, columns - start);
      const at::Tensor block = right.narrow(0, first, many).narrow(1, start, wide).to(at::kFloat);
      out.narrow(1, start, wide).add_(at::mm(part, block).to(at::kInt));
    }
  }
  return out;
}

}  // namespace inductile
