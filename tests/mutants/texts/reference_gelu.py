"""The reference of gelu: GELU by the tanh approximation."""

import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x, approximate="tanh")


def get_inputs():
    return [torch.randn(1300)]


def get_init_inputs():
    return []
