#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "spawn/relative.hpp"

/// Bytes that can be moved as a whole: objects are placed one behind the other and refer to each
/// other by Relative. An object is named by its offset, because the bytes move while the block
/// grows.
namespace sbx::spawn {

template <class T>
struct Placed {
  std::size_t offset = 0;
  /// The i-th of an array.
  [[nodiscard]] Placed at(std::size_t i) const { return {offset + i * sizeof(T)}; }
};

class Block {
 public:
  /// Zeroed.
  template <class T>
  Placed<T> place(std::size_t count = 1) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + count * sizeof(T));
    return {offset};
  }

  /// Until the next place().
  template <class T>
  [[nodiscard]] T& operator[](Placed<T> object) {
    return *reinterpret_cast<T*>(bytes_.data() + object.offset);
  }
  template <class T>
  [[nodiscard]] const T& operator[](Placed<T> object) const {
    return *reinterpret_cast<const T*>(bytes_.data() + object.offset);
  }

  /// Makes a member of `object` refer to `target`.
  template <class T, class Member, class To>
  void link(Placed<T> object, child::Relative<Member> T::* member, Placed<To> target) {
    static_assert(std::is_same_v<std::remove_const_t<Member>, To>);
    child::Relative<Member>& reference = (*this)[object].*member;
    const std::size_t from =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(&reference) - bytes_.data());
    reference.set_distance(distance(from, target.offset));
  }

  /// Bytes and a zero byte, which `member` refers to.
  template <class T>
  void text(Placed<T> object, child::Relative<const char> T::* member, std::string_view bytes) {
    link(object, member, copy(bytes));
  }
  Placed<char> copy(std::string_view bytes) {
    const Placed<char> begin = place<char>(bytes.size() + 1);
    if (!bytes.empty()) std::memcpy(bytes_.data() + begin.offset, bytes.data(), bytes.size());
    return begin;
  }

  Block() { bytes_.reserve(kUsual); }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// A sealed file in memory: nobody changes the bytes any more. Errors: setup "setup-program" (the
  /// caller's limit of file sizes, RLIMIT_FSIZE, or no memory).
  [[nodiscard]] Result<UniqueFd> seal() const;

 private:
  static constexpr std::size_t kAlignment = 16;                 // of what operator new gives
  static constexpr std::size_t kUsual = std::size_t{48} << 10;  // of the default policy: 30
  static std::int32_t distance(std::size_t from, std::size_t to) {
    const auto bytes = static_cast<std::ptrdiff_t>(to) - static_cast<std::ptrdiff_t>(from);
    SBX_ASSERT(bytes > std::numeric_limits<std::int32_t>::min() &&
               bytes < std::numeric_limits<std::int32_t>::max());
    return static_cast<std::int32_t>(bytes);
  }
  std::vector<std::byte> bytes_;
};

}  // namespace sbx::spawn
