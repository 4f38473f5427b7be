"""Workspaces: a folder for the work on one operator, with its rules, shapes, judge and candidates."""
