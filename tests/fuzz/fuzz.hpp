#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Shared by all fuzz targets. A target is LLVMFuzzerTestOneInput: libFuzzer calls it with
/// generated inputs, replay.cpp with the seeds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// An invariant that holds for every input.
inline void must(bool holds) {
  if (!holds) std::abort();
}
