"""Owns which environment variables a worker and its children see. Never passes one on that looks like a secret.

A secret that once stood in a process's environment stays readable in /proc/self/environ of every fork, whatever
os.environ says later. So the launcher replaces itself by exec with a clean environment before anything is imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEPT = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
    "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CC", "CXX", "NVCC",
    "CFLAGS", "CXXFLAGS", "PKG_CONFIG_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH",
    "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONIOENCODING",
    "MAX_JOBS", "CUDAHOSTCXX", "LD_PRELOAD",
))  # fmt: skip
_KEPT_PREFIXES = (
    "LC_", "CUDA_", "NVIDIA_", "NVCC_", "TRITON_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "OMP_", "MKL_", "KMP_",
    "OPENBLAS_", "NUMEXPR_", "CUBLAS_", "CUDNN_", "NCCL_", "HIP_", "ROCM_",
)  # fmt: skip
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|SIGNATURE|(?<![A-Z])AUTH", re.IGNORECASE)


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """What a worker may inherit: what interpreters, compilers and CUDA need, by name; never what looks secret."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _KEPT or name.startswith(_KEPT_PREFIXES)) and not _SECRET.search(name)
    }


def loop_environment(environ: Mapping[str, str], flavour: str) -> dict[str, str]:
    """The environment that a loop runs in: clean, single-threaded numpy, and the flavour fixed before triton loads."""
    kept = clean(environ)
    # a thread pool in the loop would make its forks unsafe; user namespaces also need one single thread
    kept["OPENBLAS_NUM_THREADS"] = "1"
    kept.pop("TRITON_INTERPRET", None)
    if flavour == "interpret":
        kept["TRITON_INTERPRET"] = "1"
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept


def case_environment(environ: Mapping[str, str], scratch: str) -> dict[str, str]:
    """The environment of a child that runs somebody's code: homes, caches and temporary files all inside `scratch`."""
    kept = clean(environ)
    # memory that is mapped piecewise cannot be exported to the referee
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TMP", "TEMP"):
        kept.pop(name, None)
    home = f"{scratch}/home"
    kept.update(
        HOME=home,
        TMPDIR=f"{scratch}/tmp",
        XDG_CACHE_HOME=f"{home}/.cache",
        XDG_CONFIG_HOME=f"{home}/.config",
        TRITON_HOME=home,
        TRITON_CACHE_DIR=f"{scratch}/triton",
        TORCHINDUCTOR_CACHE_DIR=f"{scratch}/inductor",
        TORCH_EXTENSIONS_DIR=f"{scratch}/extensions",
        CUDA_CACHE_PATH=f"{scratch}/nv",
        NUMBA_CACHE_DIR=f"{scratch}/numba",
        MPLCONFIGDIR=f"{home}/.config",
    )
    return kept
