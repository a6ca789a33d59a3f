#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "client/listing.hpp"
#include "client/output_pipe.hpp"
#include "client/task.hpp"
#include "transfer/host.hpp"

namespace sbx::client {

/// A file that is put into the session.
struct SavedFile {
  std::string name;
  std::string bytes;
};

/// Reads or writes files of a session, through memory. No path is looked at outside: sbx's own code
/// inside opens it, with the rights of programs there. An object does one of these, once; a hook
/// may not destroy it. Errors name the path and what stood in its way.
class FileWork {
 public:
  static constexpr std::uint64_t kLargestPart = std::uint64_t{64} << 20;
  using Connect = std::function<Result<session::Client>()>;
  /// A part of a file, or what is in a directory.
  using Read = std::variant<transfer::Part, transfer::Listing>;

  FileWork(EventLoop& loop, Connect connect) : loop_(loop), connect_(std::move(connect)) {}
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  void read(const std::string& path, transfer::Range range, std::function<void(Result<Read>)> then);
  /// Directories are made; what is there is replaced and keeps its permissions.
  void write(const std::string& path, std::string_view bytes, std::function<void(Status)> then);
  /// One after the other.
  void write_all(std::vector<SavedFile> files, std::function<void(Status)> then);

 private:
  using Called = std::function<void(Result<UniqueFd> said)>;
  [[nodiscard]] Status call(std::vector<std::string> words, const char* title, const UniqueFd& in,
                            Called then);
  [[nodiscard]] Status list(const std::string& path, std::function<void(Result<Read>)> then);

  EventLoop& loop_;
  Connect connect_;
  std::vector<std::unique_ptr<Files>> calls_;
  std::unique_ptr<Listing> listing_;
  OutputPipe output_;
  std::string said_;
};

}  // namespace sbx::client
