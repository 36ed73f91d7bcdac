// A CUDA device whose memory is the host's. Tensors on it have CUDA's dispatch key, so that torch takes the paths it
// takes on a GPU; every kernel is the CPU's, run on the same memory once the call has been found fit for a GPU.
#include <ATen/core/stack.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include "memory.h"
#include "modes.h"
#include "runtime.h"

namespace {
using c10::IValue;

struct Counts {
  long launches, synchronisations, uploads;
} counts;
bool broken = false;  // a kernel has failed an assertion: on a GPU every later call of the process fails, too

void check_context() {
  TORCH_CHECK(!broken, "CUDA error: device-side assert triggered by an earlier kernel (simulated)");
}

// ---- One call ------------------------------------------------------------------------------------------------------

struct Call {
  const c10::OperatorHandle& op;
  std::vector<std::pair<Tensor, Tensor>> moved;  // on the device, and the same memory on the host
  std::vector<Tensor> strangers;                 // tensors of the host, which a kernel cannot read
  bool synchronises = false, makes = false;

  const std::string& name() const { return op.schema().name(); }

  Tensor lowered(const Tensor& tensor, bool index) {
    if (!on_device(tensor)) {
      if (index) ++counts.uploads;  // torch moves indices by itself
      else if (tensor.defined()) strangers.push_back(tensor);
      return tensor;
    }
    synchronises |= index && tensor.scalar_type() == c10::kBool;
    return moved.emplace_back(tensor, to_host(tensor)).second;
  }

  IValue lowered(const IValue& value) {
    if (value.isTensor()) return lowered(value.toTensor(), false);
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : value.toTensorList()) list.push_back(lowered(tensor, false));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorList())
        list.push_back(tensor ? std::optional(lowered(*tensor, true)) : tensor);
      return list;
    }
    if (value.isGenerator()) {
      auto generator = value.toGenerator();
      TORCH_CHECK(generator.device().type() == c10::kCUDA,
          "Expected a 'cuda' device type for generator but found '", generator.device().type(), "' (simulated)");
      return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->numbers;
    }
    if (!value.isDevice()) return value;
    makes = true;
    return Device(c10::kCPU);
  }

  // Numbers without a dimension are passed to a kernel by value where it goes element by element.
  void check_devices() const {
    static const std::set<std::string> by_value = {"aten::fill_", "aten::index_put_", "aten::_index_put_impl_",
        "aten::masked_fill_", "aten::where"};
    bool admitted = op.hasTag(at::Tag::pointwise) || by_value.count(name());
    for (auto& tensor : strangers)
      TORCH_CHECK(admitted && tensor.dim() == 0, "Expected all tensors to be on the same device, but found at least ",
          "two devices, cuda:0 and cpu! (", name(), " with ", tensor.sizes(), " on the CPU, simulated)");
  }

  Tensor raised(const Tensor& result) const {
    for (auto& [original, host] : moved) {
      if (result.is_same(host)) return original;
      if (result.defined() && result.storage().is_alias_of(host.storage()))
        return with_storage(original.storage(), result, c10::DispatchKey::CUDA);
    }
    return moved.empty() && !makes ? result : to_device(result);
  }

  IValue raised(const IValue& value) const {
    if (value.isTensor()) return raised(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorList()) list.push_back(raised(tensor));
    return list;
  }

  // What a kernel has resized has other memory, or another shape.
  void adopt() const {
    for (auto& [original, host] : moved) {
      if (host.data_ptr() == original.data_ptr() && host.sizes() == original.sizes()) continue;
      original.unsafeGetTensorImpl()->set_storage_keep_dtype(renamed(host.storage(), here, &memory));
      original.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    }
  }
};

const std::set<std::string> SYNCHRONISING = {"aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2",
    "aten::unique_dim", "aten::repeat_interleave", "aten::bincount"};  // they tell the host a size or an answer

bool asserted(const std::string& what) {
  auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
  return (says("ndex") && says("out of") && !says("Dimension")) || says("probability tensor contains");
}

bool is_view(const c10::FunctionSchema& schema) {  // it gives the same memory other sizes, and no kernel runs
  const auto* alias = schema.returns().empty() ? nullptr : schema.returns()[0].alias_info();
  return alias && !alias->isWrite();
}

void launch(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  check_context();
  Call call{op};
  const auto& schema = op.schema();
  for (size_t i = stack->size() - schema.arguments().size(), k = 0; i < stack->size(); ++i, ++k) {
    bool draws = schema.arguments()[k].name() == "generator" && (*stack)[i].isNone();
    (*stack)[i] = call.lowered(draws ? IValue(default_generator()) : (*stack)[i]);
  }
  call.check_devices();
  counts.launches += !is_view(schema);
  counts.synchronisations += call.synchronises || SYNCHRONISING.count(call.name());
  modes::Change change(call.name(), *stack, schema.arguments().size());
  try {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  } catch (const c10::Error& error) {
    broken = asserted(error.what_without_backtrace());
    TORCH_CHECK(!broken, "CUDA error: device-side assert triggered (simulated): ", error.what_without_backtrace());
    throw;
  }
  call.adopt();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    change.apply((*stack)[i]);
    (*stack)[i] = call.raised((*stack)[i]);
  }
}

// ---- What every device registers by itself -------------------------------------------------------------------------

Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<Device>, std::optional<bool>) {
  check_context();
  return to_device(at::empty_strided_symint(size, stride, at::TensorOptions().dtype(dtype)));
}

Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  check_context();
  return to_device(at::empty_symint(size, at::TensorOptions().dtype(dtype), format));
}

Tensor& copy_(Tensor& self, const Tensor& source, bool) {
  check_context();
  (!on_device(self) ? counts.synchronisations : on_device(source) ? counts.launches : counts.uploads) += 1;
  to_host(self).copy_(to_host(source));
  return self;
}

at::Scalar item(const Tensor& self) {
  check_context();
  counts.synchronisations += 1;
  return to_host(self).item();
}

int64_t choose_attention(const Tensor& q, const Tensor& k, const Tensor&, const std::optional<Tensor>&, double, bool,
    std::optional<double>, bool) {
  return int64_t(modes::fuses(q, k) ? at::SDPBackend::cudnn_attention : at::SDPBackend::math);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> fused_attention(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& bias, bool, double, bool causal, bool,
    std::optional<double> scale) {
  check_context();
  counts.launches += 1;
  auto added = bias ? to_host(*bias) : Tensor();
  auto output = to_device(modes::attend(to_host(q), to_host(k), to_host(v), added, causal, scale));
  return {output, {}, {}, {}, q.sym_size(2), k.sym_size(2), {}, {}, {}};
}
}  // namespace

namespace at::native {
REGISTER_CUDA_DISPATCH(_fused_sdp_choice_stub, &choose_attention)
}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&launch>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy_);
  m.impl("_local_scalar_dense", item);
  m.impl("_scaled_dot_product_cudnn_attention", fused_attention);
  for (auto whole : {"convolution", "native_layer_norm"})  // what torch would take apart on an unknown device
    m.impl(whole, torch::CppFunction::makeFromBoxedFunction<&launch>());
}

TORCH_LIBRARY(simulated_gpu, m) {
  m.def("set_modes(bool reordered, int fused) -> ()", [](bool reordered, int64_t fused) {
    modes::reordered = reordered, modes::fused = fused;
  });
  m.def("default_generator() -> Generator?", []() -> std::optional<at::Generator> { return default_generator(); });
  m.def("counts() -> int[]", []() {
    return std::vector<int64_t>{counts.launches, counts.synchronisations, counts.uploads, modes::rounded};
  });
}
