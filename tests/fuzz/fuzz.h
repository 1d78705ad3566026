// A fuzz target is one function; fuzz_main.cpp gives it to libFuzzer, or runs it over files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>

#include <tessera/buffer.h>

/// Arrays beyond this are not read: what they claim was checked, and reading them only takes time.
inline constexpr std::int64_t fuzz_limit = 1 << 20;

/// Runs the parser. It may throw tessera::Error and nothing else; what must never be so ends in __builtin_trap().
void fuzz_one(tessera::ByteSpan input);
