"""An input whose rows are not contiguous."""

import torch
import torch.nn as nn

rows = 40


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0


def get_inputs():
    return [torch.randn(64, rows).t()]


def get_init_inputs():
    return []
