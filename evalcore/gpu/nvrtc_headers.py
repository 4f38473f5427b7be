"""Owns the stand-ins for headers that NVRTC does not have: what device code uses of them, and nothing of the host's."""

from __future__ import annotations

_INTEGERS = """#pragma once
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t; typedef long long intptr_t;
"""
_FLOATS = """#pragma once
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
"""
_LIMITS = """#pragma once
#ifndef INT_MAX
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LONG_MAX 9223372036854775807l
#endif
"""
_MATH = """#pragma once
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
#define M_LOG2E 1.4426950408889634074
#define M_2_SQRTPI 1.12837916709551257390
#define M_E 2.7182818284590452354
#endif
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#define HUGE_VALF INFINITY
#endif
"""
_STD = """#pragma once
#ifndef ODYSSEY_STD
#define ODYSSEY_STD
namespace std {
template <typename T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <typename T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <typename T, typename U> struct is_same { static constexpr bool value = false; };
template <typename T> struct is_same<T, T> { static constexpr bool value = true; };
template <typename T, typename U> inline constexpr bool is_same_v = is_same<T, U>::value;
template <bool B, typename T, typename F> struct conditional { typedef T type; };
template <typename T, typename F> struct conditional<false, T, F> { typedef F type; };
template <bool B, typename T, typename F> using conditional_t = typename conditional<B, T, F>::type;
template <bool B, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { typedef T type; };
template <bool B, typename T = void> using enable_if_t = typename enable_if<B, T>::type;
template <typename T> struct numeric_limits;
#define ODYSSEY_FLOAT(T, MOST, LEAST, STEP, BITS) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_integer = false; \
    __device__ static constexpr T max() { return MOST; } \
    __device__ static constexpr T lowest() { return -MOST; } \
    __device__ static constexpr T min() { return LEAST; } \
    __device__ static constexpr T epsilon() { return STEP; } \
    __device__ static constexpr T infinity() { return __builtin_bit_cast(T, BITS); } \
    __device__ static constexpr T quiet_NaN() { return __builtin_bit_cast(T, BITS + 1); } \
  };
ODYSSEY_FLOAT(float, 3.402823466e+38f, 1.175494351e-38f, 1.192092896e-07f, 0x7f800000)
ODYSSEY_FLOAT(double, 1.7976931348623158e+308, 2.2250738585072014e-308, 2.2204460492503131e-16, 0x7ff0000000000000ll)
#define ODYSSEY_INTEGER(T, MOST, LEAST) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_integer = true; \
    __device__ static constexpr T max() { return MOST; } \
    __device__ static constexpr T lowest() { return LEAST; } \
    __device__ static constexpr T min() { return LEAST; } \
  };
ODYSSEY_INTEGER(signed char, 127, -128)
ODYSSEY_INTEGER(unsigned char, 255, 0)
ODYSSEY_INTEGER(short, 32767, -32768)
ODYSSEY_INTEGER(unsigned short, 65535, 0)
ODYSSEY_INTEGER(int, 2147483647, -2147483647 - 1)
ODYSSEY_INTEGER(unsigned int, 4294967295u, 0)
ODYSSEY_INTEGER(long, 9223372036854775807l, -9223372036854775807l - 1)
ODYSSEY_INTEGER(unsigned long, 18446744073709551615ul, 0)
ODYSSEY_INTEGER(long long, 9223372036854775807ll, -9223372036854775807ll - 1)
ODYSSEY_INTEGER(unsigned long long, 18446744073709551615ull, 0)
}
#endif
"""
_HALVES = """#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#ifndef ODYSSEY_HALVES
#define ODYSSEY_HALVES
namespace c10 {
#define ODYSSEY_SCALAR(T, RAW, TO, FROM, EXPLICIT) \\
  struct alignas(2) T { \\
    unsigned short x; \\
    T() = default; \\
    __device__ T(float v) { RAW r = TO(v); x = *reinterpret_cast<unsigned short*>(&r); } \\
    __device__ T(const RAW& r) : x(*reinterpret_cast<const unsigned short*>(&r)) {} \\
    __device__ operator float() const { return FROM(*reinterpret_cast<const RAW*>(&x)); } \\
    __device__ EXPLICIT operator RAW() const { return *reinterpret_cast<const RAW*>(&x); } \\
  }; \\
  __device__ inline T operator-(const T& a) { return T(-static_cast<float>(a)); } \\
  ODYSSEY_OPERATOR(T, +) ODYSSEY_OPERATOR(T, -) ODYSSEY_OPERATOR(T, *) ODYSSEY_OPERATOR(T, /)
#define ODYSSEY_OPERATOR(T, OP) \\
  __device__ inline T operator OP(const T& a, const T& b) { return T(static_cast<float>(a) OP static_cast<float>(b)); } \\
  __device__ inline T& operator OP##=(T& a, const T& b) { return a = a OP b; } \\
  ODYSSEY_MIXED(T, float, float, OP) ODYSSEY_MIXED(T, double, double, OP) \\
  ODYSSEY_MIXED(T, int, T, OP) ODYSSEY_MIXED(T, long long, T, OP) ODYSSEY_MIXED(T, long, T, OP)
#define ODYSSEY_MIXED(T, U, R, OP) \\
  __device__ inline R operator OP(T a, U b) { return static_cast<R>(static_cast<float>(a) OP static_cast<float>(b)); } \\
  __device__ inline R operator OP(U a, T b) { return static_cast<R>(static_cast<float>(a) OP static_cast<float>(b)); }
ODYSSEY_SCALAR(Half, __half, __float2half, __half2float, )
ODYSSEY_SCALAR(BFloat16, __nv_bfloat16, __float2bfloat16, __bfloat162float, explicit)
}
namespace at { using c10::Half; using c10::BFloat16; }
namespace torch { using c10::Half; using c10::BFloat16; }
#endif
"""
"""torch's own half types: other types than CUDA's, with other operators."""
_NOTHING = "#pragma once\n"

_EVERYTHING = _INTEGERS + _FLOATS + _LIMITS + _MATH + _STD
"""What a header of torch or of the CUDA runtime brings along."""

STUBS: dict[str, str] = {
    **dict.fromkeys(("cstdint", "stdint.h", "inttypes.h", "cinttypes", "sys/types.h"), _INTEGERS),
    **dict.fromkeys(("cfloat", "float.h"), _FLOATS),
    **dict.fromkeys(("climits", "limits.h"), _LIMITS),
    **dict.fromkeys(("cmath", "math.h", "math_functions.h"), _MATH + _STD),
    **dict.fromkeys(
        ("limits", "algorithm", "type_traits", "utility", "functional", "numeric", "cstddef", "stddef.h"),
        _INTEGERS + _STD,
    ),
    **dict.fromkeys(
        ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "cuda_profiler_api.h",
         "torch/library.h", "ATen/cuda/CUDAContext.h",
         "ATen/cuda/Exceptions.h", "ATen/cuda/CUDAUtils.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h",
         "c10/cuda/CUDAException.h", "c10/cuda/CUDAFunctions.h", "c10/util/Exception.h", "ATen/Dispatch.h",
         "THC/THC.h", "helper_cuda.h"),
        _EVERYTHING,
    ),
    **dict.fromkeys(
        ("torch/extension.h", "torch/types.h", "torch/torch.h", "torch/all.h", "torch/python.h", "ATen/ATen.h",
         "ATen/core/Tensor.h", "c10/util/Half.h", "c10/util/BFloat16.h", "ATen/OpMathType.h"),
        _EVERYTHING + _HALVES,
    ),
    **dict.fromkeys(
        ("stdio.h", "cstdio", "stdlib.h", "cstdlib", "string.h", "cstring", "string", "vector", "iostream", "sstream",
         "memory", "map", "unordered_map", "set", "array", "tuple", "optional", "chrono", "fstream", "iomanip",
         "stdexcept", "random", "thread", "mutex", "atomic", "iterator", "assert.h", "cassert", "time.h", "ctime",
         "unistd.h", "pybind11/pybind11.h", "pybind11/stl.h", "Python.h", "cublas_v2.h", "cudnn.h",
         "nvtx3/nvToolsExt.h",
         "initializer_list", "exception", "bitset", "complex", "cctype", "ctype.h"),
        _INTEGERS + _STD,
    ),
}
