#include "client/file_work.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "run/launch.hpp"

namespace sbx::client {
namespace {

constexpr std::size_t kMostSaid = std::size_t{80} << 20;  // the archive of the largest part
constexpr std::size_t kLongestShown = 200;

std::string shown(const std::string& path) {
  return shortened(path, kLongestShown);
}

Error left(const std::string& path, const char* what, const workspace::Left& entry) {
  // Behind a semicolon stands what the owner of the session could do.
  return {.kind = ErrorKind::host,
          .code = "cannot-read",
          .message = "'" + printable(shown(path)) + "' " + what + ": " +
                     entry.why.substr(0, entry.why.find(';')),
          .obstacle = entry.obstacle,
          .side = Side::sandbox};
}

/// As the sandbox's end has reported it.
Status check_written(const UniqueFd& said, const std::string& path) {
  const transfer::Report report = SBX_TRY(transfer::read_report(said.get()));
  if (!report.left.empty()) return fail(left(path, "can't be written", report.left.front()));
  if (report.files == 1) return {};
  return transfer::broken("the transfer of '" + printable(shown(path)) + "' broke off");
}

}  // namespace

void FileWork::read(const std::string& path, transfer::Range range,
                    std::function<void(Result<Read>)> then) {
  range.most = std::min(range.most, kLargestPart);
  const auto null = sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY);
  if (!null) return then(fail(null.error()));
  const Status begun =
      call(transfer::read_arguments(path, range), "get", *null,
           [this, path, then](const Result<UniqueFd>& said) {
             if (!said) return then(fail(said.error()));
             auto part = transfer::receive_part(
                 said->get(), {.path = shown(path), .shown = "memory", .max_bytes = kLargestPart});
             if (part) return then(std::move(*part));
             if (part.error().obstacle != Obstacle::is_directory)
               return then(fail(std::move(part).error()));
             if (const Status listed = list(path, then); !listed) then(fail(listed.error()));
           });
  if (!begun) then(fail(begun.error()));
}

void FileWork::write(const std::string& path, std::string_view bytes,
                     std::function<void(Status)> then) {
  const auto archive = [&]() -> Result<UniqueFd> {
    const UniqueFd content = SBX_TRY(sys::in_memory(bytes));
    UniqueFd file = SBX_TRY(sys::in_memory(""));
    SBX_TRY(transfer::send_stream(file.get(), content.get()));
    (void)::lseek(file.get(), 0, SEEK_SET);
    return file;
  }();
  if (!archive) return then(fail(archive.error()));
  const Status begun =
      call({"write", path}, "put", *archive, [path, then](const Result<UniqueFd>& said) {
        then(said ? check_written(*said, path) : fail(said.error()));
      });
  if (!begun) then(fail(begun.error()));
}

void FileWork::write_all(std::vector<SavedFile> files, std::function<void(Status)> then) {
  if (files.empty()) return then({});
  const SavedFile last = std::move(files.back());
  files.pop_back();
  write(last.name, last.bytes,
        [this, files = std::move(files), then = std::move(then)](const Status& written) mutable {
          if (!written) return then(fail(written.error()));
          write_all(std::move(files), std::move(then));
        });
}

/// Runs sbx's own code inside with the file as standard input. `said`: what it has written.
Status FileWork::call(std::vector<std::string> words, const char* title, const UniqueFd& in,
                      Called then) {
  said_.clear();
  const UniqueFd out = SBX_TRY(output_.open(loop_, [this](std::string_view bytes) {
    if (said_.size() < kMostSaid) said_ += bytes;
  }));
  calls_.push_back(std::make_unique<Files>(
      SBX_TRY(connect_()),
      protocol::FilesRequest{
          .id = {run::make_run_id()}, .title = {title}, .words = std::move(words)}));
  const std::array fds{in.get(), out.get(), STDERR_FILENO};
  return calls_.back()->attach(
      loop_,
      {.ended =
           [this, then = std::move(then)](const Result<protocol::CallEnded>& ended) {
             output_.finish();
             then(ended ? sys::in_memory(said_) : Result<UniqueFd>(fail(ended.error())));
           }},
      fds);
}

Status FileWork::list(const std::string& path, std::function<void(Result<Read>)> then) {
  listing_ = std::make_unique<Listing>(SBX_TRY(connect_()), path);
  return listing_->attach(
      loop_, {.ended = [path, then = std::move(then)](Listing::Ended ended) {
        if (!ended) return then(fail(std::move(ended).error()));
        transfer::Listing& listing = ended->listing;
        if (listing.entries.empty() && !listing.left.empty())
          return then(fail(left(path, "can't be listed", listing.left.front())));
        then(std::move(listing));
      }});
}

}  // namespace sbx::client
