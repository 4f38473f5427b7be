"""max(x, 0) * 2 + 1 over a small matrix."""

import torch
import torch.nn as nn

rows = 37
columns = 53


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
