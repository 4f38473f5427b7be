"""The index of tests/hostile/texts: what each attack tries, what a naive checker says, and what must be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TEXTS = Path(__file__).resolve().parent / "texts"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A candidate that must never be plainly correct."""

    name: str
    kind: int
    """Number in the public list of kinds; 0 for broken candidates."""
    reference: str = "affine"
    naive: str = "early"
    """Which naive checker calls it correct: it compares the 'early' first call, or 'late' after timing, or runs the
    reference 'after' the candidate; '' where none does (it hangs, raises, or is plainly broken)."""
    statuses: tuple[str, ...] = ("incorrect", "error")
    reason: str | None = None
    """The reason that must be given; None for any."""
    flags: tuple[str, ...] = ()
    """Borderline: may be called correct if one of these is shown."""
    format: str = ""
    """Whose tolerance decides."""
    constants: tuple[tuple[str, int], ...] = ()
    shapes: tuple[tuple[str, int], ...] = ()
    """A second listed case besides the given one."""
    gpu: bool = False
    slow: bool = False
    run_s: float = 20.0

    @property
    def path(self) -> Path:
        """The candidate's file."""
        return TEXTS / f"{self.name}.py"


@dataclass(frozen=True, kw_only=True)
class Honest:
    """A candidate that looks suspicious and must be correct, without an accusation."""

    name: str
    reference: str = "affine"
    format: str = ""
    flags: tuple[str, ...] = ()
    """Remarks that must be there."""
    gpu: bool = False
    slow: bool = False
    run_s: float = 20.0

    @property
    def path(self) -> Path:
        """The candidate's file."""
        return TEXTS / f"{self.name}.py"


NO_KERNEL = ("no-custom-kernel", "kernel-not-launched")

ATTACKS: tuple[Attack, ...] = (
    # 1 calls the reference
    Attack(name="calls_reference", kind=1, reason="cheating"),
    Attack(name="calls_super", kind=1, reason="cheating"),
    Attack(name="calls_hidden", kind=1, flags=NO_KERNEL),
    # 2, 3 replays by address or object
    Attack(name="cache_pointer", kind=2),
    Attack(name="cache_pointer_shape", kind=2),
    Attack(name="cache_first", kind=2, statuses=("incorrect",)),
    Attack(name="graph_stale", kind=2, gpu=True),
    Attack(name="graph_pointer", kind=2, gpu=True),
    Attack(name="cuda_memo", kind=2, gpu=True, slow=True, run_s=60.0),
    Attack(name="memo_object", kind=3),
    Attack(name="memo_lru", kind=3),
    Attack(name="memo_attribute", kind=3),
    Attack(name="memo_is", kind=3),
    Attack(name="memo_sample", kind=3),
    # 4 uninitialised
    Attack(name="uninitialised", kind=4, naive="", statuses=("incorrect",)),
    Attack(name="uninitialised_tail", kind=4, naive="", statuses=("incorrect",)),
    Attack(name="recycled", kind=4, statuses=("incorrect",)),
    # 5 inputs
    Attack(name="overwrites_input", kind=5, statuses=("incorrect",)),
    Attack(name="zeroes_input", kind=5, naive="after", statuses=("incorrect",)),
    # 6 expected output from elsewhere
    Attack(name="reads_expected", kind=6),
    Attack(name="reads_shared_memory", kind=6),
    # 7 streams
    Attack(name="stream_unjoined", kind=7, gpu=True),
    Attack(name="stream_late", kind=7, gpu=True, naive="late"),
    Attack(name="cuda_stream", kind=7, gpu=True, slow=True, run_s=60.0),
    # 8 threads
    Attack(name="thread_late", kind=8, naive="late"),
    Attack(name="thread_timer", kind=8, naive="late"),
    Attack(name="thread_pool", kind=8, naive="late"),
    Attack(name="process_late", kind=8, naive="late"),
    # 9 lazy
    Attack(name="lazy_function", kind=9, statuses=("incorrect",)),
    Attack(name="lazy_wrapper", kind=9, statuses=("incorrect",)),
    Attack(name="lazy_property", kind=9, statuses=("incorrect",)),
    # 10, 11 clocks
    Attack(name="patches_event", kind=10, reason="cheating"),
    Attack(name="patches_synchronize", kind=10, reason="cheating"),
    Attack(name="patches_time", kind=11, reason="cheating"),
    Attack(name="patches_time_dict", kind=11, reason="cheating"),
    Attack(name="patches_hidden", kind=11, reason="cheating"),
    # 12, 13 comparisons and the judge
    Attack(name="patches_allclose", kind=12),
    Attack(name="patches_operators", kind=12),
    Attack(name="always_equal", kind=12, statuses=("incorrect",)),
    Attack(name="patches_modules", kind=13),
    Attack(name="patches_frames", kind=13, statuses=("incorrect",)),
    Attack(name="searches_heap", kind=13),
    # 14, 15 forged results
    Attack(name="forges_print", kind=14, statuses=("incorrect",)),
    Attack(name="forges_descriptors", kind=14),
    Attack(name="exits_zero", kind=15, statuses=("error",)),
    Attack(name="exits_system", kind=15, statuses=("error",)),
    Attack(name="exits_loading", kind=15, statuses=("error",)),
    Attack(name="cuda_exit", kind=15, gpu=True, slow=True, run_s=60.0),
    # 16 state
    Attack(name="counts_five", kind=16),
    Attack(name="counts_eight", kind=16),
    Attack(name="counts_hidden", kind=16),
    Attack(name="replays", kind=16, statuses=("incorrect",)),
    Attack(name="works_sometimes", kind=16),
    # 17..21 values
    Attack(name="zeros_tiny", kind=17, reference="tiny", format="kernelbench", statuses=("incorrect",)),
    Attack(name="nan", kind=18, statuses=("incorrect",)),
    Attack(name="nan_one", kind=18, statuses=("incorrect",)),
    Attack(name="infinite_tail", kind=18, naive="", statuses=("incorrect",)),
    Attack(name="broadcast_column", kind=19, reference="broadcast", statuses=("incorrect",)),
    Attack(name="broadcast_one", kind=19, reference="constant", statuses=("incorrect",)),
    Attack(name="half_inside", kind=20, reference="product", flags=("lower-precision",)),
    Attack(name="half_output", kind=20, reference="product", statuses=("incorrect",)),
    Attack(name="tf32_hidden", kind=20, reference="product", gpu=True, flags=("lower-precision",)),
    Attack(name="constant", kind=21, reference="constant", flags=("degenerate-problem",)),
    # 22 one shape
    Attack(name="one_shape", kind=22, constants=(("rows", 37),), shapes=(("rows", 64),)),
    # 23, 24 decoys
    Attack(name="decoy", kind=23, reason="cheating"),
    Attack(name="decoy_mixed", kind=23, reason="cheating"),
    Attack(name="fallback", kind=24, flags=NO_KERNEL),
    Attack(name="fallback_helper", kind=24, flags=NO_KERNEL),
    # 25..27 the world
    Attack(name="leaks_environment", kind=25, naive="", statuses=("error",)),
    Attack(name="deletes_files", kind=26, flags=("screen-writes-files", *NO_KERNEL)),
    Attack(name="hangs", kind=27, naive="", statuses=("error",), reason="timeout", run_s=2.0),
    Attack(name="hangs_children", kind=27, naive="", statuses=("error",), reason="timeout", run_s=2.0),
    # broken
    Attack(name="broken_syntax", kind=0, naive="", statuses=("compile_error",)),
    Attack(name="broken_name", kind=0, naive="", statuses=("compile_error", "error")),
    Attack(name="broken_compile", kind=0, naive="", statuses=("compile_error",)),
    Attack(name="broken_state", kind=0, statuses=("incorrect",)),
    Attack(name="broken_strides", kind=0, reference="strided", naive="", statuses=("incorrect",)),
    Attack(name="broken_segfault", kind=0, naive="", statuses=("error",), reason="crash"),
    Attack(name="broken_memory", kind=0, naive="", statuses=("error",), reason="out_of_memory"),
    Attack(name="broken_output", kind=0, naive="", statuses=("incorrect",)),
    Attack(name="broken_recursion", kind=0, naive="", statuses=("error",)),
    Attack(name="broken_endless", kind=0, naive="", statuses=("error",), reason="timeout", run_s=2.0),
    Attack(name="wrong_count", kind=0, naive="", statuses=("incorrect",)),
    Attack(name="illegal_access", kind=0, naive="", statuses=("error",), reason="crash", gpu=True),
)

HONEST: tuple[Honest, ...] = (
    Honest(name="honest_workspace"),
    Honest(name="honest_same_buffer"),
    Honest(name="honest_in_place", reference="in_place"),
    Honest(name="honest_out_of_place", reference="in_place"),
    Honest(name="honest_autotune"),
    Honest(name="honest_heuristics"),
    Honest(name="honest_packed_weights", reference="linear"),
    Honest(name="honest_lazy_weights", reference="linear"),
    Honest(name="honest_product", reference="product"),
    Honest(name="honest_tf32", reference="product", format="loose"),
    Honest(name="honest_helpers"),
    Honest(name="honest_strides", reference="strided"),
    Honest(name="honest_threads"),
    Honest(name="honest_pool"),
    Honest(name="honest_tuple", reference="tuple"),
    Honest(name="honest_empty", reference="empty"),
    Honest(name="honest_nan", reference="nan"),
    Honest(name="honest_softmax", reference="softmax", format="kernelbench"),
    Honest(name="honest_half", reference="half"),
    Honest(name="honest_constant", reference="constant", flags=("degenerate-problem",)),
    Honest(name="honest_tiny", reference="tiny", format="kernelbench", flags=("degenerate-problem",)),
    Honest(name="honest_function"),
    Honest(name="honest_statistics"),
    Honest(name="honest_import_guard"),
    Honest(name="honest_inherits"),
    Honest(name="honest_script"),
    Honest(name="honest_torch", flags=("no-custom-kernel",)),
    Honest(name="honest_compile", slow=True, run_s=180.0),
    Honest(name="honest_stream", gpu=True),
    Honest(name="honest_graph", gpu=True),
    Honest(name="honest_cuda", gpu=True, slow=True, run_s=60.0),
)

KINDS = range(1, 28)
"""Every public kind must be covered."""
