"""No kernel of its own: right, and said to be so."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp_min(x, 0.0).mul(2.0).add(1.0)
