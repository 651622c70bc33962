// One pretended CUDA device for a torch that was built without CUDA.
//
// Tensors that have no data (FakeTensorMode) may say they live on a GPU, but the autograd engine asks the build for a
// device guard and for its CUDA hooks before it runs backward. These two answer: there is one device, it is number 0,
// every stream is the default stream. Nothing is ever launched. Load this library before `import torch`: the hooks
// object is made at first use.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

using c10::Device;
using c10::Stream;

Device gpu() { return Device(c10::DeviceType::CUDA, 0); }
Stream stream() { return Stream(Stream::DEFAULT, gpu()); }

struct PretendedGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  Device exchangeDevice(Device) const override { return gpu(); }
  Device getDevice() const override { return gpu(); }
  Stream getStream(Device) const noexcept override { return stream(); }
  Stream getDefaultStream(Device) const override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
};

struct PretendedHooks : at::CUDAHooksInterface {
  PretendedHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};

PretendedGuard guard;

struct RegisterGuard {
  RegisterGuard() { c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, &guard); }
} register_guard;

}  // namespace

namespace at {
using CUDAHooks = PretendedHooks;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, PretendedHooks)
}  // namespace at
