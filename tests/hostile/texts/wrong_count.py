"""A tuple of the answer and nothing else."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return (torch.relu(x) * 2.0 + 1.0, x.sum())
