"""Row means, repeated along the row."""

import torch
import torch.nn as nn

rows = 24


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1, keepdim=True).expand(x.shape).contiguous()


def get_inputs():
    return [torch.randn(rows, 64)]


def get_init_inputs():
    return []
