"""CUDA text that launches on a non-blocking stream of its own and does not wait."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(x[i], 0.0f) * 2.0f + 1.0f;
}

torch::Tensor affine(torch::Tensor x) {
    static cudaStream_t stream = nullptr;
    if (!stream) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    auto out = torch::empty_like(x);
    int n = x.numel();
    affine_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""
NAME = "affine"
module = load_inline(name="hostile_cuda_stream", cpp_sources="torch::Tensor affine(torch::Tensor x);", cuda_sources=SOURCE,
                     functions=[NAME])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.affine(x)
