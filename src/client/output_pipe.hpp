#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::client {

/// One stream of a call, which a front end reads in its own event loop.
class OutputPipe {
 public:
  using Deliver = std::function<void(std::string_view bytes)>;

  OutputPipe() = default;
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() { close(); }

  /// Returns the writing end, for the session. What is open is closed. Errors: host, internal.
  [[nodiscard]] Result<UniqueFd> open(EventLoop& loop, Deliver deliver);
  /// The call has ended, so what it wrote is in the pipe: delivers the rest.
  void finish();
  void close();

 private:
  [[nodiscard]] ssize_t read();

  EventLoop* loop_ = nullptr;
  UniqueFd from_;
  Deliver deliver_;
};

}  // namespace sbx::client
