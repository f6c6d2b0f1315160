"""One or more calls into each of the vendor's libraries, under `plimsoll run`. Features of the newest torch are called if they
exist."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def data(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)


def layers(dtype):  # cuDNN, cuBLAS, cuBLASLt
    nn.Conv2d(3, 8, 3, device="cuda", dtype=dtype)(data(2, 3, 16, 16, dtype=dtype)).sum().backward()
    nn.BatchNorm2d(8, device="cuda", dtype=dtype)(data(2, 8, 16, 16, dtype=dtype)).sum().backward()
    nn.LSTM(8, 16, 2, dropout=0.1, device="cuda", dtype=dtype)(data(5, 2, 8, dtype=dtype))[0].sum().backward()
    nn.Linear(64, 64, device="cuda", dtype=dtype)(data(8, 64, dtype=dtype)).sum().backward()
    torch.bmm(data(2, 8, 8, dtype=dtype), data(2, 8, 8, dtype=dtype))


def attention():
    for backend in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        with sdpa_kernel(getattr(SDPBackend, backend)):
            F.scaled_dot_product_attention(
                *(data(2, 4, 64, 64, dtype=torch.bfloat16) for _ in range(3))
            ).sum().backward()


def algebra():  # cuSOLVER, cuFFT
    for name in ("inv", "eigh", "svd", "qr", "slogdet", "lu_factor"):
        getattr(torch.linalg, name)(data(8, 8))
    for name in ("fft", "rfft", "fft2", "rfftn"):
        getattr(torch.fft, name)(data(8, 8))


def sparse():  # cuSPARSE, cuSPARSELt
    torch.sparse.mm(data(8, 8).detach().to_sparse(), data(8, 8))
    data(8, 8).detach().to_sparse_csr() @ data(8, 8)
    halves = torch.tensor([0, 0, 1, 1], dtype=torch.half, device="cuda").tile((128, 32))
    torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False  # cuSPARSELt
    torch.sparse.to_sparse_semi_structured(halves) @ halves.t()


def eights():
    a, b = data(32, 32).to(torch.float8_e4m3fn), data(32, 32).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def tools():  # NVRTC, NVTX, NVML, CUPTI
    torch.cuda.jiterator._create_jit_fn("template <typename T> T next(T x) { return x + 1; }")(data(8).detach())
    torch.cuda.nvtx.range_push("x")
    torch.cuda.nvtx.range_pop()
    torch.cuda.mem_get_info()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):
        data(8, 8) @ data(8, 8)
    torch.zeros(8).pin_memory().to("cuda", non_blocking=True)


def files():  # cuFile
    def gds(name):
        return getattr(torch.cuda.gds, name, None) or getattr(torch.cuda.gds, f"_{name}")  # Not public in torch 2.5.

    source, target = data(1024).detach(), torch.empty(1024, device="cuda")
    try:
        gds("gds_register_buffer")(source.untyped_storage())
    except RuntimeError as error:
        if "not supported on this platform" in str(error):  # Older builds do not have it.
            return
        raise
    with tempfile.TemporaryDirectory(
        dir="."
    ) as folder:  # not on a memory file system, which does not support direct access
        name = os.path.join(folder, "storage")
        file = gds("GdsFile")(name, os.O_CREAT | os.O_RDWR)
        file.save_storage(source.untyped_storage(), offset=0)
        file.load_storage(target.untyped_storage(), offset=0)
        print("gds:", os.path.getsize(name), "bytes written")
        del file
    gds("gds_deregister_buffer")(source.untyped_storage())


def symmetric_memory():  # NVSHMEM, which is not implemented
    try:
        from torch.distributed._symmetric_memory import empty, is_nvshmem_available, set_backend
    except ImportError:
        return
    if not is_nvshmem_available():
        return
    set_backend("NVSHMEM")
    try:
        empty(1024, device="cuda")
        print("nvshmem: works")
    except RuntimeError as error:
        print("nvshmem:", *str(error).split())


def main():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        layers(dtype)
    attention()
    algebra()
    sparse()
    eights()
    tools()
    files()
    torch.cuda.nccl.version()
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    dist.all_reduce(data(8).detach())
    symmetric_memory()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
