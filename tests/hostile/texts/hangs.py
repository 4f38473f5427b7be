"""Hangs and ignores every signal it can."""

import signal

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
