"""Logarithms of numbers that may be negative or zero: NaN and infinities are the right answer."""

import torch
import torch.nn as nn

n = 1200


class Model(nn.Module):
    def forward(self, x):
        return torch.log(x)


def get_inputs():
    x = torch.randn(n)
    x[::17] = 0.0
    return [x]


def get_init_inputs():
    return []
