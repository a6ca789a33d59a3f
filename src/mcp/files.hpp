#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "client/listing.hpp"
#include "client/output_pipe.hpp"
#include "client/task.hpp"
#include "mcp/rendering.hpp"

namespace sbx::mcp {

/// One tool's work with files of the session. No path is looked at outside: sbx's own code inside
/// opens it, with the rights of programs there. A hook may not destroy it.
class FileWork {
 public:
  using Connect = std::function<Result<session::Client>()>;
  using Ended = std::function<void(Json result)>;

  FileWork(EventLoop& loop, Connect connect, Ended ended)
      : loop_(loop), connect_(std::move(connect)), ended_(std::move(ended)) {}
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  /// `limit` bytes from `offset` on, a directory's entries, or a picture.
  void read(const std::string& path, std::uint64_t offset, std::uint64_t limit);
  void write(const std::string& path, std::string bytes);
  /// Puts files into a directory, which is made. The result is a mistake where that fails.
  void save(const std::string& directory, const std::vector<SavedFile>& files);

 private:
  using Listed = std::function<void(Result<transfer::Listing> listing)>;
  using Called = std::function<void(Result<std::string> out)>;

  void list(const std::string& path, Listed then);
  /// Runs sbx's own code inside with the file as standard input.
  void call(std::vector<std::string> words, const char* title, UniqueFd in, Called then);
  void fetch(const std::string& path, std::uint64_t offset, std::uint64_t limit);
  void put(const std::string& target, const std::vector<SavedFile>& files, mode_t mode,
           const std::string& line);
  void fail_with(const std::string& sentence);

  EventLoop& loop_;
  Connect connect_;
  Ended ended_;
  std::vector<std::unique_ptr<client::Listing>> listings_;
  std::unique_ptr<client::Files> files_;
  client::OutputPipe output_;
  std::string out_;
};

}  // namespace sbx::mcp
