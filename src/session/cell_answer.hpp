#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/units.hpp>

#include "base/json.hpp"
#include "protocol/answers.hpp"

namespace sbx::session {

/// What the driver says about one cell, gathered until it is done. Untrusted: each part is checked
/// for its type and size.
class CellAnswer {
 public:
  CellAnswer(std::string nonce, std::uint64_t count, Bytes cap)
      : nonce_(std::move(nonce)), count_(count), left_(cap.count) {}

  enum class Said : std::uint8_t {
    other,    ///< nothing about this cell
    result,   ///< `last()` is what is kept of it
    clear,    ///< the same: what the cell showed goes
    place,    ///< the same: the result of this name, which comes later, belongs here
    error,    ///< the same
    done,     ///< the cell is over
    garbled,  ///< no message of a driver's
  };
  Said take(const Json& message);

  /// What take() has just kept, for those who follow the cell; none: nothing.
  [[nodiscard]] const std::optional<protocol::CellEvent>& last() const { return last_; }
  [[nodiscard]] bool is_done() const { return done_; }
  [[nodiscard]] bool ok() const { return ok_; }
  /// The status that its code ended with; 1 where it raised an error instead, 0 where all went
  /// well.
  [[nodiscard]] int status() const;
  /// It could not begin in a directory of its own.
  [[nodiscard]] bool is_of_directory() const { return error_ && error_->kind; }
  /// "NameError: name 'x' is not defined"; empty: it raised nothing.
  [[nodiscard]] std::string error_words() const;
  /// None: nothing was said.
  [[nodiscard]] std::optional<protocol::InterpreterAnswer> answer() const;

 private:
  Said take_result(const Json& message);
  Said take_clear(const Json& message);
  Said take_place(const Json& message);
  void keep(const Json& message, protocol::CellResult result);
  Said take_error(const Json& message);
  Said take_done(const Json& message);
  void leave_out(std::vector<protocol::LeftOutForm>& names, const std::string& mime,
                 std::uint64_t bytes);

  std::string nonce_;
  std::uint64_t count_;
  std::uint64_t left_;  ///< bytes for more values
  std::size_t errors_ = 0;
  std::size_t named_ = 0;
  std::uint64_t unnamed_ = 0;  ///< values that are left out and not even named
  /// A result, or the place of one that has not come; its name is kept beside it, empty: none.
  struct Result {
    std::string display;
    std::optional<protocol::CellResult> value;
  };
  std::vector<Result> results_;
  std::optional<protocol::CellError> error_;
  std::optional<std::int64_t> exit_;
  std::optional<protocol::CellEvent> last_;
  bool done_ = false;
  bool ok_ = false;
};

}  // namespace sbx::session
