// How a GPU's arithmetic may differ from the CPU's: the order of sums, TF32, and attention in one kernel.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace modes {
using at::Tensor;
using c10::IValue;

inline bool reordered = false;  // sums run in an order that depends on the shapes
inline int64_t fused = 0;       // 16-bit attention: 0 step by step; in one kernel, where unseeing rows are 1 zero, 2 NaN
inline int64_t rounded = 0;     // factors that were rounded to TF32

inline bool is_float(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_floating_point();
}

// ---- TF32 ----------------------------------------------------------------------------------------------------------

// To the nearest of ten bits behind the leading one: half of the last bit that stays is added, thirteen bits go.
inline Tensor to_tf32(const Tensor& factor) {
  auto bits = factor.contiguous().view(at::kInt);
  return bits.add(1 << 12).bitwise_right_shift(13).bitwise_left_shift(13).view(at::kFloat);
}

// ---- The order of sums ---------------------------------------------------------------------------------------------

struct Dimension {
  size_t argument;
  int64_t dim;
};
using Summed = std::vector<Dimension>;  // what one sum runs over, in every argument that has it

const std::map<std::string, Summed> PRODUCTS = {
    {"aten::mm", {{0, -1}, {1, -2}}}, {"aten::bmm", {{0, -1}, {1, -2}}}, {"aten::dot", {{0, -1}, {1, -1}}},
    {"aten::addmm", {{1, -1}, {2, -2}}}, {"aten::baddbmm", {{1, -1}, {2, -2}}}, {"aten::addmv", {{1, -1}, {2, -1}}},
    {"aten::convolution", {{0, 0}, {1, 0}}}};  // of the last the order is left alone
const std::set<std::string> SUMS = {"aten::sum", "aten::mean"};
const std::set<std::string> SOFTMAXES = {"aten::_softmax", "aten::_log_softmax"};

inline int64_t hash(const Tensor& tensor, int64_t start) {
  for (auto size : tensor.sizes()) start = (start * 1000003 + size) % 2147483647;
  return start;
}

// Two scans and the first one's total, summed by itself: where they meet the result may fall by a rounding.
inline Tensor cumsum_in_two(const Tensor& x, int64_t dim) {
  static int64_t calls = 0;
  auto n = x.size(dim);
  auto one_row = x.numel() == n;  // scanned by many blocks, in an order that no call repeats
  auto cut = 1 + hash(x, one_row ? ++calls : 0) % (n - 1);
  auto first = x.narrow(dim, 0, cut), second = x.narrow(dim, cut, n - cut);
  return at::cat({first.cumsum(dim), second.cumsum(dim) + first.sum(dim, /*keepdim=*/true)}, dim);
}

// A call in one of the modes: its arguments are changed where they lie, its results by `apply`.
class Change {
 public:
  Change(const std::string& name, std::vector<IValue>& stack, size_t count) : arguments(&stack[stack.size() - count]) {
    auto product = PRODUCTS.find(name);
    if (product != PRODUCTS.end()) round_factors(product->second, name == "aten::convolution");
    if (SOFTMAXES.count(name) && arguments[2].toBool()) {  // float16 that the kernel widens; the CPU's is told before
      arguments[0] = arguments[0].toTensor().to(at::kFloat);
      arguments[2] = false;
    }
    if (!reordered || count == 0 || !is_float(arguments[0])) return;
    auto rank = arguments[0].toTensor().dim();
    if (product != PRODUCTS.end()) {
      if (name != "aten::convolution") roll(product->second);
      shift = 0;
    } else if (rank == 0) {
      return;
    } else if (name == "aten::native_layer_norm") {
      roll({{0, -1}, {2, -1}, {3, -1}});
      rolled_back = -1;
    } else if (SOFTMAXES.count(name)) {
      rolled_back = arguments[1].toInt();
      roll({{0, rolled_back}});
    } else if (SUMS.count(name) && count > 1 && (arguments[1].isIntList() || arguments[1].isNone())) {
      auto dims = arguments[1].isIntList() ? arguments[1].toDimVector() : at::DimVector();
      if (dims.empty()) for (int64_t dim = 0; dim < rank; ++dim) dims.push_back(dim);
      for (auto dim : dims) roll({{0, dim}});
      shift = 0;
    } else if (name == "aten::cumsum" && arguments[0].toTensor().size(arguments[1].toInt()) > 1) {
      scanned = cumsum_in_two(arguments[0].toTensor(), arguments[1].toInt());
    }
  }

  void apply(IValue& result) const {
    if (!is_float(result)) return;
    auto tensor = result.toTensor();
    if (scanned.defined()) tensor.copy_(scanned);
    else if (shift && rolled_back < tensor.dim()) tensor.copy_(tensor.roll(-shift, rolled_back));
  }

 private:
  static constexpr int64_t NOT_ROLLED_BACK = 1 << 20;
  IValue* arguments;
  int64_t shift = 0, rolled_back = NOT_ROLLED_BACK;
  Tensor scanned;

  void round_factors(const Summed& factors, bool convolves) {
    auto& context = at::globalContext();
    if (!(convolves ? context.allowTF32CuDNN() : context.allowTF32CuBLAS())) return;
    for (auto& [argument, dim] : factors) {
      auto factor = arguments[argument].toTensor();
      if (factor.scalar_type() != at::kFloat) continue;
      arguments[argument] = to_tf32(factor);
      rounded += 1;
    }
  }

  void roll(const Summed& summed) {
    int64_t start = 1;
    for (auto& [argument, dim] : summed)
      if (is_float(arguments[argument])) start = hash(arguments[argument].toTensor(), start);
    for (auto& [argument, dim] : summed) {
      if (!is_float(arguments[argument])) continue;
      auto tensor = arguments[argument].toTensor();
      if (tensor.size(dim) < 2) return;
      shift = 1 + start % (tensor.size(dim) - 1);
      arguments[argument] = tensor.roll(shift, dim);
    }
  }
};

// ---- Attention in one kernel ---------------------------------------------------------------------------------------

inline bool fuses(const Tensor& q, const Tensor& k) {
  auto& context = at::globalContext();
  bool allowed = context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP() || context.userEnabledCuDNNSDP();
  bool sixteen = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  return fused && allowed && sixteen && q.numel() && k.numel();
}

// Scores and their softmax in float32, its probabilities rounded to 16 bits before they weigh the values.
inline Tensor attend(Tensor q, Tensor k, Tensor v, const Tensor& bias, bool causal, std::optional<double> scale) {
  auto narrow = q.scalar_type();
  auto groups = q.size(1) / k.size(1);
  q = q.to(at::kFloat), k = k.to(at::kFloat).repeat_interleave(groups, 1), v = v.to(at::kFloat).repeat_interleave(groups, 1);
  auto scores = at::matmul(q, k.mT()) * scale.value_or(1 / std::sqrt(double(q.size(-1))));
  if (bias.defined()) scores = scores + bias.to(at::kFloat);
  const auto infinity = std::numeric_limits<double>::infinity();
  if (causal) scores = scores.masked_fill(at::ones({q.size(-2), k.size(-2)}, at::kBool).tril().logical_not(), -infinity);
  auto unseeing = scores.eq(-infinity).all(-1, /*keepdim=*/true);
  auto weights = scores.softmax(-1).to(narrow).to(at::kFloat);
  weights = weights.masked_fill(unseeing, fused == 1 ? 0.0 : std::numeric_limits<double>::quiet_NaN());
  return at::matmul(weights, v).to(narrow).contiguous();
}
}  // namespace modes
