#pragma once

#include <cstddef>
#include <cstdint>

/// Child-safe: a pointer within one block of memory, kept as the distance from itself. The block
/// can be copied as a whole, written to a file and mapped anywhere. A part of it can't be copied
/// alone.
namespace sbx::child {

template <class T>
class Relative {
 public:
  Relative() = default;
  Relative(const Relative&) = delete;
  Relative& operator=(const Relative&) = delete;

  /// Null until it is set.
  [[nodiscard]] T* get() const {
    if (distance_ == 0) return nullptr;
    // It leads out of this object, where the arithmetic of pointers is not defined.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(this) +
                                static_cast<std::uintptr_t>(std::intptr_t{distance_}));
  }
  operator T*() const { return get(); }  // NOLINT(google-explicit-constructor): reads as a pointer
  void set_distance(std::int32_t bytes) { distance_ = bytes; }

 private:
  std::int32_t distance_ = 0;
};

}  // namespace sbx::child
