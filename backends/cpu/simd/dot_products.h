// The instructions that Simd::dot_products stands for. Functions that use them are marked RT_DOT: they are
// compiled for instructions that the others of this directory must not use, and called only where the CPU has
// them. Only included by the sources of this directory.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// clang has the intrinsics of AArch64 only where the whole file may use them.
#if defined(__AVX2__) || (defined(__aarch64__) && !defined(__clang__))
#define RT_DOT_PRODUCTS 1
#else
#define RT_DOT_PRODUCTS 0
#endif

#if defined(__AVX512F__)
#define RT_DOT __attribute__((target("avx512vnni")))
#elif defined(__AVX2__)
#define RT_DOT __attribute__((target("avxvnni")))
#elif defined(__aarch64__)
#define RT_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
