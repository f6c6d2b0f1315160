#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cufft/plan.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/object.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cufft;

/// Gives a plan its sizes. The library's own workspace counts on the device, unless the caller disabled it, as torch
/// does.
int make(PlanId id, std::vector<std::int64_t> lengths, std::int64_t batch, Bytes element, std::size_t* work) {
  for (const std::int64_t length : lengths) {
    if (length < 1) return kInvalidSize;
  }
  if (batch < 1) return kInvalidSize;
  const std::optional<Plan> before = plans().find(id);
  if (!before || before->made) return kInvalidPlan;
  const Bytes needed = work_bytes(lengths, batch, element);
  const Bytes charged = before->auto_allocation ? needed : 0;
  // Outside the lock of the plans: a listener of the machine may call any library.
  if (charged > 0 && !charge(before->device, charged, Reason::kHandles)) return kAllocFailed;
  const int status = plans().change(id, [&](Plan& plan) -> int {
    if (plan.made) return kInvalidPlan;
    plan.work = needed;
    plan.charged = charged;
    plan.made = true;
    return kSuccess;
  });
  if (status != kSuccess && charged > 0) discharge(before->device, charged, Reason::kHandles);
  if (status == kSuccess && work != nullptr) *work = needed;
  return status;
}

int make(PlanId id, std::vector<std::int64_t> lengths, int transform, std::int64_t batch, std::size_t* work) {
  switch (transform) {
    case kC2C:
    case kR2C:
    case kC2R:
      return make(id, std::move(lengths), batch, bytes_of(kC32F), work);
    case kZ2Z:
    case kD2Z:
    case kZ2D:
      return make(id, std::move(lengths), batch, bytes_of(kC64F), work);
    default:
      return kInvalidType;
  }
}

/// Creates a plan in one call; removes it if that fails.
int make_new(PlanId* id, std::vector<std::int64_t> lengths, int transform, std::int64_t batch) {
  if (id == nullptr) return kInvalidValue;
  *id = plans().create(current_device());
  const int status = make(*id, std::move(lengths), transform, batch, nullptr);
  if (status != kSuccess) plans().remove(*id);
  return status;
}

template <typename Int>
std::vector<std::int64_t> lengths_of(int rank, const Int* n) {
  return rank >= 1 && rank <= 3 && n != nullptr ? std::vector<std::int64_t>(n, n + rank) : std::vector<std::int64_t>{0};
}

int execute(const char* function, PlanId id) {
  const std::optional<Plan> plan = plans().find(id);
  if (!plan || !plan->made) return kInvalidPlan;
  enqueue_call(function, plan->stream);
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int cufftCreate(PlanId* id) {
  if (id == nullptr) return kInvalidValue;
  *id = plans().create(current_device());
  return kSuccess;
}

PLIMSOLL_API int cufftDestroy(PlanId id) {
  const std::optional<Plan> plan = plans().remove(id);
  if (!plan) return kInvalidPlan;
  if (plan->charged > 0) discharge(plan->device, plan->charged, Reason::kHandles);
  return kSuccess;
}

PLIMSOLL_API int cufftSetAutoAllocation(PlanId id, int enabled) {
  return plans().change(id, [&](Plan& plan) -> int {
    plan.auto_allocation = enabled != 0;
    return kSuccess;
  });
}

PLIMSOLL_API int cufftSetStream(PlanId id, void* stream) {
  return plans().change(id, [&](Plan& plan) -> int {
    plan.stream = stream;
    return kSuccess;
  });
}

/// The caller's workspace replaces the library's own, which is freed.
PLIMSOLL_API int cufftSetWorkArea(PlanId id, void* work_area) {
  int device = 0;
  Bytes charged = 0;
  const int status = plans().change(id, [&](Plan& plan) -> int {
    device = plan.device;
    charged = std::exchange(plan.charged, 0);
    plan.work_area = work_area;
    return kSuccess;
  });
  if (charged > 0) discharge(device, charged, Reason::kHandles);
  return status;
}

PLIMSOLL_API int cufftGetSize(PlanId id, std::size_t* work) {
  const std::optional<Plan> plan = plans().find(id);
  if (!plan) return kInvalidPlan;
  return give(work, plan->work, kInvalidValue);
}

/// Strides and distances describe the caller's memory; the workspace does not depend on them.
PLIMSOLL_API int cufftXtMakePlanMany(PlanId id, int rank, const long long* n, const long long* /*inembed*/,
                                     long long /*istride*/, long long /*idist*/, int input_type,
                                     const long long* /*onembed*/, long long /*ostride*/, long long /*odist*/,
                                     int output_type, long long batch, std::size_t* work, int execution_type) {
  if (bytes_of(input_type) == 0 || bytes_of(output_type) == 0) return kInvalidType;
  const Bytes element = bytes_of(execution_type);
  if (element == 0) return kInvalidType;
  return make(id, lengths_of(rank, n), batch, element, work);
}

PLIMSOLL_API int cufftMakePlanMany(PlanId id, int rank, const int* n, const int* /*inembed*/, int /*istride*/,
                                   int /*idist*/, const int* /*onembed*/, int /*ostride*/, int /*odist*/, int transform,
                                   int batch, std::size_t* work) {
  return make(id, lengths_of(rank, n), transform, batch, work);
}

PLIMSOLL_API int cufftMakePlanMany64(PlanId id, int rank, const long long* n, const long long* /*inembed*/,
                                     long long /*istride*/, long long /*idist*/, const long long* /*onembed*/,
                                     long long /*ostride*/, long long /*odist*/, int transform, long long batch,
                                     std::size_t* work) {
  return make(id, lengths_of(rank, n), transform, batch, work);
}

PLIMSOLL_API int cufftMakePlan1d(PlanId id, int nx, int transform, int batch, std::size_t* work) {
  return make(id, {nx}, transform, batch, work);
}

PLIMSOLL_API int cufftMakePlan2d(PlanId id, int nx, int ny, int transform, std::size_t* work) {
  return make(id, {nx, ny}, transform, 1, work);
}

PLIMSOLL_API int cufftMakePlan3d(PlanId id, int nx, int ny, int nz, int transform, std::size_t* work) {
  return make(id, {nx, ny, nz}, transform, 1, work);
}

PLIMSOLL_API int cufftPlan1d(PlanId* id, int nx, int transform, int batch) {
  return make_new(id, {nx}, transform, batch);
}

PLIMSOLL_API int cufftPlan2d(PlanId* id, int nx, int ny, int transform) { return make_new(id, {nx, ny}, transform, 1); }

PLIMSOLL_API int cufftPlan3d(PlanId* id, int nx, int ny, int nz, int transform) {
  return make_new(id, {nx, ny, nz}, transform, 1);
}

PLIMSOLL_API int cufftPlanMany(PlanId* id, int rank, const int* n, const int* /*inembed*/, int /*istride*/,
                               int /*idist*/, const int* /*onembed*/, int /*ostride*/, int /*odist*/, int transform,
                               int batch) {
  return make_new(id, lengths_of(rank, n), transform, batch);
}

#define PLIMSOLL_CUFFT_EXECUTE(name) \
  PLIMSOLL_API int name(PlanId id) { return execute(#name, id); }
PLIMSOLL_CUFFT_EXECUTE(cufftXtExec)
PLIMSOLL_CUFFT_EXECUTE(cufftExecC2C)
PLIMSOLL_CUFFT_EXECUTE(cufftExecR2C)
PLIMSOLL_CUFFT_EXECUTE(cufftExecC2R)
PLIMSOLL_CUFFT_EXECUTE(cufftExecZ2Z)
PLIMSOLL_CUFFT_EXECUTE(cufftExecD2Z)
PLIMSOLL_CUFFT_EXECUTE(cufftExecZ2D)

PLIMSOLL_API int cufftGetVersion(int* version) { return give(version, kCufftVersion.number(), kInvalidValue); }

PLIMSOLL_API int cufftGetProperty(int property, int* value) {
  return kCufftVersion.part(property, value) ? kSuccess : kInvalidValue;
}
