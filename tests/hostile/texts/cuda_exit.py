"""CUDA text whose host part ends the process."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(x[i], 0.0f) * 2.0f + 1.0f;
}

#include <cstdlib>
torch::Tensor affine(torch::Tensor x) {
    _exit(0);
    return x;
}
"""
NAME = "affine"
module = load_inline(name="hostile_cuda_exit", cpp_sources="torch::Tensor affine(torch::Tensor x);", cuda_sources=SOURCE,
                     functions=[NAME])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.affine(x)
