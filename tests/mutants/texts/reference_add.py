"""The reference of add: x + alpha * y, elementwise."""

import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y):
        return x + 0.5 * y


def get_inputs():
    return [torch.randn(1111), torch.randn(1111)]


def get_init_inputs():
    return []
