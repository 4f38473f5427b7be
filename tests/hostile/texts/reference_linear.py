"""A linear layer with weights."""

import torch
import torch.nn as nn

batch_size = 16


class Model(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, features))

    def forward(self, x):
        return x @ self.weight.T


def get_inputs():
    return [torch.randn(batch_size, 48)]


def get_init_inputs():
    return [48, 32]
