"""The reference of attention: causal attention, one block of queries a program, keys a block at a time."""

import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(2, 40, 16) for _ in range(3)]


def get_init_inputs():
    return []
