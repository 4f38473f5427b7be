"""Owns the cold start of a timed call: the L2 flush, the end marker and their order. Never times anything.

A flush that ends with writes leaves dirty lines, and their write-back is charged to the kernel under test (11 % of a
30 us kernel on an H200). This one only reads. Its kernels have names of their own, so that a recorder can tell them
from the candidate's, and the marker is an empty kernel, so that its reading is the timer's own cost.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

from evalcore.gpu.driver_calls import Driver

FLUSH_KERNEL = "odyssey_flush_l2"
MARK_KERNEL = "odyssey_mark"

_BLOCK = 512
_BLOCKS_PER_SM = 4
_UNROLL = 4
_VECTOR_BYTES = 16

FALLBACK_L2_BYTES = 64 << 20
"""Flushed where the driver does not say how large the L2 is."""

_PTX = """
.version {version}
.target {target}
.address_size 64
.visible .entry odyssey_mark() {{ ret; }}
.visible .entry odyssey_flush_l2(.param .u64 p_buffer, .param .u64 p_vectors, .param .u64 p_sink)
{{
  .reg .pred %p<3>;
  .reg .b32 %r<32>;
  .reg .b64 %d<16>;
  ld.param.u64 %d1, [p_buffer];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u64 %d2, [p_vectors];
  ld.param.u64 %d3, [p_sink];
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.s32 %r5, %r1, %r2, %r3;
  mul.lo.s32 %r6, %r4, %r2;
  cvt.u64.u32 %d4, %r5;
  cvt.u64.u32 %d5, %r6;
  shl.b64 %d6, %d5, 4;
  shl.b64 %d7, %d5, 2;
  mov.u32 %r7, 0;
LOOP:
  setp.ge.u64 %p1, %d4, %d2;
  @%p1 bra DONE;
  shl.b64 %d8, %d4, 4;
  add.s64 %d9, %d1, %d8;
  add.s64 %d10, %d9, %d6;
  add.s64 %d11, %d10, %d6;
  add.s64 %d12, %d11, %d6;
  ld.global.v4.u32 {{%r8, %r9, %r10, %r11}}, [%d9];
  ld.global.v4.u32 {{%r12, %r13, %r14, %r15}}, [%d10];
  ld.global.v4.u32 {{%r16, %r17, %r18, %r19}}, [%d11];
  ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%d12];
  or.b32 %r7, %r7, %r8;   or.b32 %r7, %r7, %r9;   or.b32 %r7, %r7, %r10;  or.b32 %r7, %r7, %r11;
  or.b32 %r7, %r7, %r12;  or.b32 %r7, %r7, %r13;  or.b32 %r7, %r7, %r14;  or.b32 %r7, %r7, %r15;
  or.b32 %r7, %r7, %r16;  or.b32 %r7, %r7, %r17;  or.b32 %r7, %r7, %r18;  or.b32 %r7, %r7, %r19;
  or.b32 %r7, %r7, %r20;  or.b32 %r7, %r7, %r21;  or.b32 %r7, %r7, %r22;  or.b32 %r7, %r7, %r23;
  add.s64 %d4, %d4, %d7;
  bra LOOP;
DONE:
  setp.eq.u32 %p2, %r7, 0;
  @%p2 bra END;
  st.global.u32 [%d3], %r7;
END:
  ret;
}}
"""
"""The buffer holds zeros, so nothing is ever stored; the store only keeps the loads alive."""


class Cache(Protocol):
    """What a timing loop needs between two calls, in this order: drain, reset, flush; after the call drain, mark."""

    def drain(self) -> None:
        """Wait for all streams."""

    def reset_persisting(self) -> None:
        """Make persisting L2 lines evictable."""

    def flush(self) -> None:
        """Evict the L2 on the current stream, without waiting."""

    def mark(self) -> None:
        """Launch the empty kernel on the current stream."""


def ptx_for(capability: tuple[int, int]) -> str:
    """The PTX of both kernels. Turing's form is what every driver since CUDA 11 and before CUDA 14 compiles."""
    if capability >= (7, 5):
        return _PTX.format(version="6.3", target="sm_75")
    return _PTX.format(version="6.0", target=f"sm_{capability[0]}{capability[1]}")


def round_up_bytes(wanted_bytes: int, sm_count: int) -> int:
    """The least buffer of at least `wanted_bytes` that the unrolled flush covers without a tail."""
    step = sm_count * _BLOCKS_PER_SM * _BLOCK * _VECTOR_BYTES * _UNROLL
    return -(-wanted_bytes // step) * step


class L2Flush:
    """The flush of one device. A context must be current. Holds 2x the L2 (or `flush_bytes`) of the card's memory."""

    def __init__(self, device: str, *, flush_bytes: int | None = None) -> None:
        import torch

        facts = torch.cuda.get_device_properties(device)
        self.l2_bytes = int(getattr(facts, "L2_cache_size", 0) or FALLBACK_L2_BYTES)
        self.sm_count = int(facts.multi_processor_count)
        self.flush_bytes = round_up_bytes(flush_bytes or 2 * self.l2_bytes, self.sm_count)
        self._buffer = torch.zeros(self.flush_bytes // 4, dtype=torch.int32, device=device)
        self._sink = torch.zeros(1, dtype=torch.int32, device=device)
        self._stream = torch.cuda.current_stream
        self._device = self._buffer.device
        self.driver = Driver()
        module = self.driver.load(ptx_for((facts.major, facts.minor)))
        grid = self.sm_count * _BLOCKS_PER_SM
        self._flush = self.driver.function(module, FLUSH_KERNEL, grid=grid, block=_BLOCK)
        self._mark = self.driver.function(module, MARK_KERNEL, grid=1, block=32)
        self._args = tuple(
            ctypes.c_uint64(value)
            for value in (self._buffer.data_ptr(), self.flush_bytes // _VECTOR_BYTES, self._sink.data_ptr())
        )

    def _handle(self) -> Any:
        return self._stream(self._device).cuda_stream

    def drain(self) -> None:
        """Wait for all streams of the context."""
        self.driver.synchronize()

    def reset_persisting(self) -> None:
        """Make persisting L2 lines evictable (no error where the card has none)."""
        self.driver.reset_persisting_l2()

    def flush(self) -> None:
        """Read 2x the L2 on the current stream, without waiting. May be captured into a graph."""
        self.driver.launch(self._flush, self._handle(), self._args)

    def mark(self) -> None:
        """Launch the empty kernel on the current stream. May be captured into a graph."""
        self.driver.launch(self._mark, self._handle())
