// Memory of the host under the device's name, and tensors of the device under the host's.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

namespace {
using at::Tensor;
using c10::Device;

const Device here(c10::kCUDA, 0);

bool on_device(const Tensor& tensor) { return tensor.defined() && tensor.device() == here; }

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    return shared(std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(bytes)), here);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // What `owner` points to, under the name of `device`; the owner lives as long.
  template <class Owner>
  static c10::DataPtr shared(std::unique_ptr<Owner> owner, Device device) {
    void* data = pointer(*owner);
    return {data, owner.release(), [](void* kept) { delete static_cast<Owner*>(kept); }, device};
  }
  static void* pointer(const c10::DataPtr& owner) { return owner.get(); }
  static void* pointer(const c10::Storage& owner) { return owner.mutable_data(); }
} memory;

Tensor with_storage(c10::Storage storage, const Tensor& like, c10::DispatchKey key) {
  auto found = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  found.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  return found;
}

c10::Storage renamed(const c10::Storage& storage, Device device, c10::Allocator* allocator) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
      Memory::shared(std::make_unique<c10::Storage>(storage), device), allocator, /*resizable=*/true);
}

Tensor to_host(const Tensor& tensor) {
  if (!on_device(tensor)) return tensor;
  auto storage = renamed(tensor.storage(), c10::kCPU, c10::GetCPUAllocator());
  return with_storage(std::move(storage), tensor, c10::DispatchKey::CPU);
}

Tensor to_device(const Tensor& tensor) {
  if (!tensor.defined() || on_device(tensor)) return tensor;
  return with_storage(renamed(tensor.storage(), here, &memory), tensor, c10::DispatchKey::CUDA);
}
}  // namespace
