#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/events.hpp"

namespace sbx::network {

/// Who hears of each refused attempt. `count`: how many it adds; 0: part of an attempt that has
/// been told.
using ProcessName = std::function<std::string()>;
using HearsRefusals =
    std::function<void(const Denial& denial, std::uint64_t count, const ProcessName& process_name)>;

/// Collects the network part of a record. Bounded: after kMostNames different names, one entry
/// counts all others.
class Tally {
 public:
  using UseId = std::size_t;
  static constexpr std::size_t kMostNames = 256;

  /// `events` receives each refusal at its first attempt; may be null.
  void tell(Events* events) { events_ = events; }
  /// In place of that: each attempt, before any are summed up.
  void tell_each(HearsRefusals hears) { hears_ = std::move(hears); }

  /// Adds refused attempts. Those with the same `denial.what` are one entry.
  void deny(Denial denial, std::uint64_t count = 1);
  enum class Count : std::uint8_t {
    each,
    at_least_once,  ///< the same attempt may have been counted: programs ask for A and AAAA
  };
  /// One; `process_name` is asked at the first sight of it.
  void deny(Denial denial, const ProcessName& process_name, Count count);
  /// The same without a process.
  void deny_once(Denial denial);
  /// An allowed attempt that led nowhere.
  void fail(std::string what, std::string why);

  /// The entry of a rule, by its text.
  [[nodiscard]] UseId use(std::string_view rule);
  void connected(UseId use) { ++used_[use].connections; }
  void passed(UseId use, std::uint64_t in, std::uint64_t out) {
    used_[use].bytes_in += in;
    used_[use].bytes_out += out;
  }

  /// The denials until now; the next ones are counted anew.
  [[nodiscard]] std::vector<Denial> take_denials();
  /// Adds it all to an outcome. Rules that nothing used are left out.
  void put_into(Outcome& outcome);

 private:
  Denial& entry_of(Denial denial);
  void announce(const Denial& entry) const;

  Events* events_ = nullptr;
  HearsRefusals hears_;
  std::vector<Denial> denials_;
  std::unordered_map<std::string, std::size_t> denial_of_;
  std::vector<NetworkFailure> failures_;
  std::unordered_map<std::string, std::size_t> failure_of_;
  std::vector<NetworkUse> used_;
};

}  // namespace sbx::network
