"""Outputs around 1e-6: an absolute tolerance of 1e-4 cannot see them."""

import torch
import torch.nn as nn

rows = 32
columns = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 1e-6


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
