"""Each rule: where it speaks, where it must be silent, and what its fix makes of the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from caret import check_findings, fixed, read_marks

from server.analysis.check import analyse

ROOT = Path(__file__).resolve().parents[2]

HEAD = """
import torch
import triton
import triton.language as tl

"""


def test_carets_are_read() -> None:
    text, marks, cursor = read_marks("""
        x = 1
        #   ^ some-rule: words here
        y = <|>2
    """)
    assert text.startswith("x = 1\ny = 2")
    assert (marks[0].line, marks[0].start, marks[0].end, marks[0].code) == (0, 4, 5, "some-rule")
    assert cursor == text.index("2")


# ------------------------------------------------------------------------------------------------------- arange-size


def test_arange_of_a_literal() -> None:
    check_findings("""
        @triton.jit
        def copy(x, y, n):
            i = tl.arange(0, 96)
            #   ^^^^^^^^^^^^^^^^ arange-size: 96 is not a power of two
            tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
    """)


def test_arange_fix_is_the_next_power() -> None:
    text = "@triton.jit\ndef k(x):\n    i = tl.arange(0, 96)\n    j = tl.arange(0, 128)\n"
    finding = check_findings(text.replace("    j", "    #   ^^^^^^^^^^^^^^^^ arange-size\n    j")).findings[0]
    assert "tl.arange(0, 128)\n    j" in fixed(text, finding)


def test_arange_follows_a_local_number_and_offsets() -> None:
    check_findings("""
        @triton.jit
        def k(x):
            BLOCK = 3 * 32
            i = tl.arange(0, BLOCK)
            #   ^^^^^^^^^^^^^^^^^^^ arange-size: 96
            j = tl.arange(16, 48)
            k = tl.arange(16, 47)
            #   ^^^^^^^^^^^^^^^^^ arange-size: 31
    """)


def test_arange_by_a_launch_and_by_a_config() -> None:
    check_findings("""
        @triton.autotune(configs=[triton.Config({"BLOCK": 100}), triton.Config({"BLOCK": 128})], key=["n"])
        #                                                 ^^^ arange-size: 100 is not a power of two
        @triton.jit
        def k(x, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)

        @triton.jit
        def other(x, n, SIZE: tl.constexpr):
            i = tl.arange(0, SIZE)

        def run(x):
            other[(1,)](x, 5, SIZE=1000)
            #                      ^^^^ arange-size: 1000 is not a power of two
            other[(1,)](x, 5, 1024)
    """)


def test_arange_with_what_cannot_be_known_is_silent() -> None:
    check_findings("""
        @triton.jit
        def k(x, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
            i = tl.arange(0, BLOCK)
            j = tl.arange(0, OTHER * 3)
            h = torch.arange(0, 96)

        def run(x, block):
            k[(1,)](x, 5, BLOCK=block, OTHER=4)
    """)


# -------------------------------------------------------------------------------------------------- autotune-inplace

TUNED = """
@triton.autotune(configs=[triton.Config({{"B": 64}}), triton.Config({{"B": 128}})], key=["n"]{more})
@triton.jit
def scale(x_ptr, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x * 2, mask=offs < n)
"""


def test_in_place_under_autotune() -> None:
    text = TUNED.format(more="")
    marked = text.replace("@triton.jit", "#^^^^^^^^^^^^^^^ autotune-inplace: `x_ptr` is read and written\n@triton.jit")
    finding = check_findings(marked).findings[0]
    assert 'key=["n"], restore_value=["x_ptr"])' in fixed(text.lstrip("\n"), finding)


@pytest.mark.parametrize("more", [', restore_value=["x_ptr"]', ', reset_to_zero=["x_ptr"]', ", pre_hook=reset"])
def test_in_place_that_is_restored(more: str) -> None:
    check_findings(TUNED.format(more=more))


def test_in_place_through_pointer_variables_and_multi_line_decorators() -> None:
    marked = """
        @triton.autotune(
        #^^^^^^^^^^^^^^^ autotune-inplace: `out` is read and written
            configs=configs(),
            key=["n"],
        )
        @triton.jit
        def k(out, x, n, B: tl.constexpr):
            offs = tl.arange(0, B)
            ptrs = out + offs
            ptrs += 4 * B
            old = tl.load(ptrs, mask=offs < n)
            tl.store(ptrs, old + tl.load(x + offs, mask=offs < n), mask=offs < n)
    """
    text, _marks, _cursor = read_marks(marked)
    finding = check_findings(marked).findings[0]
    assert 'key=["n"], restore_value=["out"],\n)' in fixed(text, finding)


def test_atomic_add_under_autotune_offers_both_ways() -> None:
    marked = """
        @triton.autotune(configs=configs(), key=["n"])
        #^^^^^^^^^^^^^^^ autotune-inplace: `out` is added to
        @triton.jit
        def k(out, x, n, B: tl.constexpr):
            offs = tl.arange(0, B)
            tl.atomic_add(out, tl.sum(tl.load(x + offs, mask=offs < n)))
    """
    finding = check_findings(marked).findings[0]
    assert [fix.title for fix in finding.fixes] == ['Add reset_to_zero=["out"]', 'Add restore_value=["out"]']


def test_what_autotune_may_repeat_is_silent() -> None:
    """Distinct pointers, atomics that may be run twice, a single config, a pointer that was loaded from memory."""
    check_findings("""
        @triton.autotune(configs=configs(), key=["n"])
        @triton.jit
        def k(out, x, group, n, B: tl.constexpr):
            offs = tl.arange(0, B)
            tl.atomic_max(out, tl.max(tl.load(x + offs, mask=offs < n)))
            inner = tl.load(group + 3).to(tl.pointer_type(tl.float16))
            tl.store(inner + offs, 0.0, mask=offs < n)

        @triton.autotune(configs=[triton.Config({"B": 64})], key=["n"])
        @triton.jit
        def one(x, n, B: tl.constexpr):
            offs = tl.arange(0, B)
            tl.store(x + offs, tl.load(x + offs, mask=offs < n), mask=offs < n)
    """)


# ---------------------------------------------------------------------------------------------------------- dot-tf32


def test_dot_of_casts_and_of_float32_tensors_in_sight() -> None:
    marked = """
        @triton.jit
        def k(a_ptr, b_ptr, c_ptr, B: tl.constexpr):
            offs = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
            a = tl.load(a_ptr + offs)
            b = tl.load(b_ptr + offs)
            c = tl.dot(a, b)
            #   ^^^^^^ dot-tf32: rounds them to TF32
            d = tl.dot(a, tl.trans(b), c)
            #   ^^^^^^ dot-tf32
            tl.store(c_ptr + offs, c)

        def matmul(a, b):
            c = torch.empty_like(a)
            k[(1,)](a, b, c, B=64)
            return c

        x = torch.randn(64, 64, device="cuda")
        y = torch.randn((64, 64), device="cuda", dtype=torch.float32)
        matmul(x, y)
    """
    text, _marks, _cursor = read_marks(marked)
    analysis = check_findings(marked)
    assert 'tl.dot(a, b, input_precision="ieee")' in fixed(text, analysis.findings[0])
    assert 'tl.dot(a, tl.trans(b), c, input_precision="ieee")' in fixed(text, analysis.findings[1])


def test_dot_that_is_chosen_narrow_or_unknown_is_silent() -> None:
    check_findings("""
        @triton.jit
        def k(a_ptr, b_ptr, h_ptr, c_ptr, B: tl.constexpr):
            offs = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
            a = tl.load(a_ptr + offs)
            h = tl.load(h_ptr + offs)
            b = tl.load(b_ptr + offs)
            c = tl.dot(a, a, input_precision="tf32")
            c = tl.dot(a, a, allow_tf32=False)
            c = tl.dot(b, b)
            c = tl.dot(h.to(tl.float32), h.to(tl.float32))
            c = tl.dot(a.to(tl.float16), a.to(tl.float16))
            tl.store(c_ptr + offs, c)

        def run(b):
            a = torch.randn(64, 64)
            h = torch.randn(64, 64, dtype=torch.float16)
            k[(1,)](a, b, h, torch.empty_like(a), B=64)
    """)


def test_dot_in_a_kernelbench_answer() -> None:
    check_findings("""
        @triton.jit
        def k(a_ptr, c_ptr, B: tl.constexpr):
            offs = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
            a = tl.load(a_ptr + offs)
            tl.store(c_ptr + offs, tl.dot(a, a))
            #                      ^^^^^^ dot-tf32

        class ModelNew(torch.nn.Module):
            def forward(self, x):
                y = torch.empty_like(x)
                k[(1,)](x, y, B=64)
                return y

        N = 64

        def get_inputs():
            return [torch.rand(N, N)]
    """)


# --------------------------------------------------------------------------------------------- int32-offset-overflow

ROWS = """
@triton.jit
def copy_rows(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols)
    tl.store(y_ptr + row * stride + cols, x, mask=cols < n_cols)

def copy(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    copy_rows[(rows,)](x, y, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y

copy(torch.randn({rows}, 4096, device="cuda"))
"""


def test_overflow_at_a_size_of_the_file() -> None:
    text = ROWS.format(rows=600000)
    carets = "    #                   ^^^^^^^^^^^^ int32-offset-overflow: overflows from 524 288 rows at 4096 columns\n"
    marked = text.replace("    tl.store(y_ptr + row", carets + "    tl.store(y_ptr + row")
    finding = check_findings(marked).findings[0]
    assert finding.severity.value == "warning"
    assert "row.to(tl.int64) * stride" in fixed(text.lstrip("\n"), finding)


def test_overflow_near_is_a_hint_and_far_is_silence() -> None:
    near = ROWS.format(rows=262144)
    carets = "    #                   ^^^^^^^^^^^^ int32-offset-overflow: 524 288 rows\n"
    finding = check_findings(near.replace("    tl.store(y_ptr + row", carets + "    tl.store(y_ptr + row")).findings[0]
    assert finding.severity.value == "hint"
    check_findings(ROWS.format(rows=4096))
    check_findings(ROWS.format(rows="rows"))


def test_overflow_that_is_computed_in_64_bits_is_silent() -> None:
    text = ROWS.format(rows=600000)
    check_findings(text.replace("row = tl.program_id(0)", "row = tl.program_id(0).to(tl.int64)"))
    check_findings(text.replace("row * stride", "row.to(tl.int64) * stride"))


def test_overflow_of_a_flat_index_through_a_lambda_grid_and_a_sweep() -> None:
    check_findings("""
        @triton.jit
        def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            #      ^^^^^^^^^^^^^^^^^^^^^^^^ int32-offset-overflow: overflows from 2 147 483 648 elements
            tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

        def run(x):
            y = torch.empty_like(x)
            n = x.numel()
            grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
            double[grid](x, y, n, BLOCK=1024)
            return y

        @triton.testing.perf_report(
            triton.testing.Benchmark(x_names=["size"], x_vals=[2**i for i in range(12, 33)], line_arg="p", args={}))
        def bench(size, p):
            x = torch.rand(size, device="cuda")
            return triton.testing.do_bench(lambda: run(x))
    """)


# --------------------------------------------------------------------------------------------------- unmasked-access


def test_unmasked_where_the_kernel_guards_elsewhere() -> None:
    marked = """
        @triton.jit
        def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask)
            y = tl.load(y_ptr + offsets)
            #   ^^^^^^^^^^^^^^^^^^^^^^^^ unmasked-access: `offsets` may pass `n` here, and this load has no mask
            tl.store(out_ptr + offsets, x + y)
            #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unmasked-access: this store has no mask
    """
    marked = marked.replace("    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unm", "#   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unm")
    marked = marked.replace(
        "        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^", "        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )
    text, _marks, _cursor = read_marks(marked)
    analysis = check_findings(marked)
    assert "tl.load(y_ptr + offsets, mask=mask)" in fixed(text, analysis.findings[0])
    assert "tl.store(out_ptr + offsets, x + y, mask=mask)" in fixed(text, analysis.findings[1])


def test_unmasked_through_pointer_variables_and_two_dimensions() -> None:
    check_findings("""
        @triton.jit
        def k(a_ptr, c_ptr, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
            rows = tl.program_id(0) * BM + tl.arange(0, BM)
            cols = tl.program_id(1) * BN + tl.arange(0, BN)
            a_ptrs = a_ptr + rows[:, None] * stride + cols[None, :]
            c_ptrs = c_ptr + rows[:, None] * stride + cols[None, :]
            a = tl.load(a_ptrs)
            #   ^^^^^^^^^^^^^^^ unmasked-access: may pass
            tl.store(c_ptrs, a, mask=(rows[:, None] < M) & (cols[None, :] < N))
    """)


def test_unmasked_that_the_sizes_of_the_file_prove() -> None:
    check_findings("""
        @triton.jit
        def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offsets)
            #   ^^^^^^^^^^^^^^^^^^^^^^^^ unmasked-access: reaches element 99 327 of `x_ptr`, which has 98 432
            tl.store(out_ptr + offsets, x)
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unmasked-access: `out_ptr`

        def run(x):
            out = torch.empty_like(x)
            n = out.numel()
            add[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)

        run(torch.rand(98432, device="cuda"))
    """)


def test_unmasked_in_a_plain_kernel_with_a_rounded_up_grid_is_information() -> None:
    analysis = check_findings("""
        @triton.jit
        def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offsets)
            #   ^^^^^^^^^^^^^^^^^^^^^^^^ unmasked-access: the grid is rounded up
            tl.store(out_ptr, tl.sum(x))

        def run(x):
            n = x.numel()
            add[(triton.cdiv(n, 1024),)](x, x, n, BLOCK=1024)
    """)
    assert analysis.findings[0].severity.value == "information"


@pytest.mark.parametrize(
    "body",
    [
        "offs = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n\n    x = tl.load(x_ptr + offs)",
        "offs = tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offs)",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.static_assert(n % BLOCK == 0)\n"
        "    x = tl.load(x_ptr + offs)",
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n    x = tl.load(p, boundary_check=(0,))",
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n    x = tl.load(p)",
        "x = tl.load(x_ptr + tl.program_id(0))",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    if EVEN:\n        x = tl.load(x_ptr + offs)\n"
        "    else:\n        x = tl.load(x_ptr + offs, mask=offs < n)",
        "offs = tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offs, offs < n)",
    ],
)
def test_what_cannot_overrun_is_silent(body: str) -> None:
    check_findings(
        f"@triton.jit\ndef k(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):\n    {body}\n"
        "    tl.store(y_ptr, tl.sum(x))\n\n\ndef run(x):\n    n = x.numel()\n"
        "    k[(triton.cdiv(n, 64),)](x, x, n, BLOCK=64)\n"
    )


def test_a_wrapper_that_asserts_the_multiple_is_believed() -> None:
    check_findings("""
        @triton.jit
        def k(x_ptr, n, BLOCK: tl.constexpr):
            offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + offs, 1.0)

        def run(x):
            n = x.numel()
            assert n % 1024 == 0
            k[(triton.cdiv(n, 1024),)](x, n, BLOCK=1024)
    """)


def test_the_same_name_bound_anew_is_another_block() -> None:
    check_findings("""
        @triton.jit
        def k(x_ptr, n, whole, BLOCK: tl.constexpr):
            for start in range(0, whole, BLOCK):
                offs = start + tl.arange(0, BLOCK)
                tl.store(x_ptr + offs, 1.0)
            for start in range(whole, n, BLOCK):
                offs = start + tl.arange(0, BLOCK)
                mask = offs < n
                tl.store(x_ptr + offs, 1.0, mask=mask)
    """)


# ---------------------------------------------------------------------------------------------------- places in text


def test_columns_count_code_points_after_emoji_and_cjk() -> None:
    check_findings("""
        @triton.jit
        def k(x, 数):
            名 = "🚀🚀"; i = tl.arange(0, 96)  # 日本
            #             ^^^^^^^^^^^^^^^^ arange-size
    """)


def test_findings_with_crlf_and_bom() -> None:
    text = "\ufeff@triton.jit\r\ndef k(x):\r\n    i = tl.arange(0, 96)\r\n"
    finding = analyse("k.py", text).findings[0]
    assert text.encode()[finding.span.start : finding.span.end] == b"tl.arange(0, 96)"


def test_notebooks_and_unknown_files_have_no_findings() -> None:
    for path in ("a.ipynb", "a.txt", "a.cu"):
        assert analyse(path, "@triton.jit\ndef k(x):\n    i = tl.arange(0, 96)\n").findings == ()


# ------------------------------------------------------------------------------------------------ on whole files


def test_our_examples_and_answers_have_no_warning() -> None:
    for path in [*ROOT.glob("examples/*.*"), *ROOT.glob("tests/kernels/kernelbench_answers/*.py")]:
        loud = [each for each in analyse(str(path), path.read_text("utf-8")).findings if each.severity.value != "hint"]
        assert loud == [], path


@pytest.mark.parametrize(
    ("example", "old", "new"),
    [
        ("vector_add.py", "tl.store(out_ptr + offsets, x + y, mask=mask)", "tl.store(out_ptr + offsets, x + y)"),
        ("softmax.py", "numerator / denominator, mask=mask)", "numerator / denominator)"),
        ("layer_norm.py", "tl.load(w_ptr + columns, mask=mask)", "tl.load(w_ptr + columns)"),
        ("matmul.py", "cols[None, :] * stride_cn, c, mask=c_mask)", "cols[None, :] * stride_cn, c)"),
        ("flash_attention.py", "dims[None, :], out, mask=q_mask)", "dims[None, :], out)"),
    ],
)
def test_a_mask_that_was_taken_away_is_missed(example: str, old: str, new: str) -> None:
    text = ROOT.joinpath("examples", example).read_text("utf-8")
    assert text.count(old) == 1
    findings = analyse(example, text.replace(old, new)).findings
    assert [each.code for each in findings] == ["unmasked-access"]
    assert text.replace(old, new).encode()[: findings[0].span.start].decode().count("\n") == text.split(old)[0].count(
        "\n"
    )
    assert fixed(text.replace(old, new), findings[0]) == text or "mask=" in fixed(text.replace(old, new), findings[0])
