"""What is true about a kernel: problems, facts, the judge, and the worker that measures.

The only package of ours that the user's interpreter can see. Its upper half is standard library only.
"""
