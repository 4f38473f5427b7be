"""Softmax over rows in fp16."""

import torch
import torch.nn as nn

rows = 24


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, 300, dtype=torch.float16)]


def get_init_inputs():
    return []
