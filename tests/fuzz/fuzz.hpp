#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// What every fuzz target shares. A target is LLVMFuzzerTestOneInput: libFuzzer calls it with what it
/// makes up, replay.cpp with the seeds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// An invariant that holds for every input.
inline void must(bool holds) {
  if (!holds) std::abort();
}
