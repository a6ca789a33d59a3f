#include "mcp/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <sbx/units.hpp>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "mcp/rendering.hpp"
#include "protocol/requests.hpp"
#include "run/launch.hpp"
#include "transfer/archive.hpp"
#include "transfer/host.hpp"

namespace sbx::mcp {
namespace {

using transfer::Frame;
using transfer::FrameKind;

constexpr std::uint64_t kLargestFile = std::uint64_t{64} << 20;
constexpr std::size_t kMostEntries = 500;
constexpr std::size_t kMostOutput = std::size_t{80} << 20;  // an archive of the largest file

const std::string& not_a_directory() {
  static const std::string words = transfer::words_of(transfer::Reason::cannot_read, ENOTDIR);
  return words;
}
const std::string& not_there() {
  static const std::string words = transfer::words_of(transfer::Reason::cannot_read, ENOENT);
  return words;
}

/// A part of a file that arrived as an archive.
struct Slice {
  std::string bytes;
  std::uint64_t size = 0;  ///< of the whole file
};

Result<Slice> slice_of(const std::string& archive, std::uint64_t offset, std::uint64_t limit) {
  const UniqueFd file = SBX_TRY(sys::in_memory(archive));
  const UniqueFd content = SBX_TRY(sys::in_memory(""));
  transfer::Reader reader(file.get());
  Slice slice;
  for (bool begun = false;;) {
    const Frame frame = SBX_TRY(reader.next());
    if (frame.kind == FrameKind::fault)
      return fail(Error{.code = "mcp", .message = transfer::words_of(frame.reason, frame.number)});
    if (frame.kind == FrameKind::complete) break;
    if (frame.kind == FrameKind::file && !begun) {
      begun = true;
      slice.size = frame.size;
    } else if (begun && frame.kind == FrameKind::data) {
      (void)SBX_TRY(reader.take(content.get()));
    } else if (begun && frame.kind == FrameKind::hole) {
      (void)::lseek(content.get(), static_cast<off_t>(frame.size), SEEK_CUR);
    } else {
      return fail(Error{.code = "mcp", .message = "it is not a regular file"});
    }
  }
  if (offset >= slice.size) return slice;
  // Holes at the end are of the file too.
  if (::ftruncate(content.get(), static_cast<off_t>(slice.size)) != 0)
    return fail(Error{.code = "mcp", .message = "it can't be read"});
  slice.bytes.resize(std::min(limit, slice.size - offset));
  const ssize_t got =
      ::pread(content.get(), slice.bytes.data(), slice.bytes.size(), static_cast<off_t>(offset));
  slice.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return slice;
}

Result<UniqueFd> archive_of(const std::vector<SavedFile>& files, mode_t mode) {
  UniqueFd file = SBX_TRY(sys::in_memory(""));
  transfer::Writer writer(file.get());
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  std::uint64_t sum = 0;
  for (const SavedFile& each : files) {
    const std::string_view bytes = each.bytes;
    SBX_TRY(writer.put({.kind = FrameKind::file,
                        .mode = mode,
                        .size = bytes.size(),
                        .modified = now,
                        .name = each.name}));
    for (std::size_t at = 0; at < bytes.size(); at += transfer::kChunk) {
      const std::string_view part = bytes.substr(at, transfer::kChunk);
      SBX_TRY(writer.put({.kind = FrameKind::data, .size = part.size()}));
      SBX_TRY(writer.bytes(part));
    }
    SBX_TRY(writer.put({.kind = FrameKind::complete}));
    sum += bytes.size();
  }
  SBX_TRY(writer.put(
      {.kind = FrameKind::end, .number = static_cast<std::uint32_t>(files.size()), .size = sum}));
  SBX_TRY(writer.flush());
  (void)::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// The type of a picture that clients show; empty: it is none.
std::string_view picture_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return "image/gif";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "image/webp";
  return {};
}

/// Half a character at either end does not make a text binary.
bool is_binary(std::string_view bytes) {
  constexpr std::size_t kAtEnds = 3;
  if (bytes.contains('\0')) return true;
  for (std::size_t front = 0; front <= std::min(kAtEnds, bytes.size()); ++front)
    for (std::size_t back = 0; front + back <= bytes.size() && back <= kAtEnds; ++back)
      if (is_utf8(bytes.substr(front, bytes.size() - front - back))) return false;
  return true;
}

std::string first_bytes(std::string_view bytes) {
  constexpr std::size_t kShown = 64;
  std::string text;
  for (const char each : bytes.substr(0, kShown))
    text += fmt::format("{:02x} ", static_cast<unsigned char>(each));
  return text + "\n";
}

Json result_of_slice(const std::string& path, const Slice& slice, std::uint64_t offset) {
  const std::uint64_t end = offset + slice.bytes.size();
  std::string line = fmt::format("ok · {} · {} bytes", shown_path(path), slice.size);
  const bool is_whole = offset == 0 && end == slice.size;
  if (!is_whole) line += fmt::format(" · here from {} to {}", offset, end);
  if (end < slice.size) line += fmt::format("; for more: offset {}", end);
  line += '\n';
  const std::string_view picture = picture_type(slice.bytes);
  if (is_whole && !picture.empty() && slice.bytes.size() <= kLargestPicture) {
    Json result = result_of_text(line);
    result["content"].push_back(
        {{"type", "image"}, {"data", base64(slice.bytes)}, {"mimeType", picture}});
    return result;
  }
  if (is_binary(slice.bytes))
    return result_of_text(line + "binary data, of which the first bytes are:\n" +
                          first_bytes(slice.bytes));
  return result_of_text(line + below_the_line(visible(slice.bytes)));
}

Json result_of_listing(const std::string& path, const transfer::Listing& listing) {
  const std::size_t shown = std::min(listing.entries.size(), kMostEntries);
  std::string line =
      fmt::format("ok · {} · directory of {} entries", shown_path(path), listing.entries.size());
  if (shown < listing.entries.size()) line += fmt::format(", of which {} are listed", shown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const transfer::Listed& each = listing.entries[i];
    const bool is_file = each.type == FileType::file;
    text += fmt::format("{:>12} {}{}\n", is_file ? std::to_string(each.bytes) : "",
                        visible_line(each.name, transfer::kLongestName),
                        each.type == FileType::directory ? "/"
                        : is_file                        ? ""
                        : each.leads_to.empty()          ? std::string(" (not a regular file)")
                                                         : " -> " + visible_line(each.leads_to));
  }
  return result_of_text(line + "\n" + below_the_line(text));
}

}  // namespace

void FileWork::fail_with(const std::string& sentence) {
  ended_(result_of_mistake(sentence));
}

void FileWork::list(const std::string& path, Listed then) {
  auto client = connect_();
  if (!client) return fail_with("the sandbox can't be reached: call again");
  listings_.push_back(std::make_unique<client::Listing>(std::move(*client), path));
  const Status begun = listings_.back()->attach(
      loop_, {.ended = [then = std::move(then)](client::Listing::Ended ended) {
        if (!ended) return then(fail(std::move(ended).error()));
        then(std::move(ended->listing));
      }});
  if (!begun) fail_with("the sandbox can't be reached: call again");
}

void FileWork::call(std::vector<std::string> words, const char* title, UniqueFd in, Called then) {
  auto client = connect_();
  out_.clear();
  const auto to = output_.open(loop_, [this](std::string_view bytes) {
    if (out_.size() < kMostOutput) out_ += bytes;
  });
  if (!client || !to) return fail_with("the sandbox can't be reached: call again");
  files_ = std::make_unique<client::Files>(
      std::move(*client),
      protocol::FilesRequest{
          .id = {run::make_run_id()}, .title = {title}, .words = std::move(words)});
  const std::array fds{in.get(), to->get(), STDERR_FILENO};
  const Status begun =
      files_->attach(loop_,
                     {.ended =
                          [this, then = std::move(then)](Result<protocol::CallEnded> ended) {
                            output_.finish();
                            if (!ended) return then(fail(std::move(ended).error()));
                            then(std::move(out_));
                          }},
                     fds);
  if (!begun) fail_with("the sandbox can't be reached: call again");
}

void FileWork::read(const std::string& path, std::uint64_t offset, std::uint64_t limit) {
  // A link to a directory is a directory, and "." in something else is not there.
  list(path + "/.", [this, path, offset, limit](const Result<transfer::Listing>& listing) {
    if (!listing) return fail_with("the directory can't be listed: call again");
    if (listing->left.empty() || !listing->entries.empty())
      return ended_(result_of_listing(path, *listing));
    if (listing->left.front().why != not_a_directory())
      return fail_with(shown_path(path) + ": " + listing->left.front().why +
                       ": read_file of a directory lists what is there");
    fetch(path, offset, limit);
  });
}

void FileWork::fetch(const std::string& path, std::uint64_t offset, std::uint64_t limit) {
  auto words =
      transfer::get_arguments({path}, {.max_bytes = kLargestFile, .max_files = 1, .max_depth = 1});
  auto null = sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY);
  if (!words || !null) return fail_with(shown_path(path) + " can't be read: name a file");
  call(std::move(*words), "get", std::move(*null),
       [this, path, offset, limit](const Result<std::string>& archive) {
         const auto slice =
             archive ? slice_of(*archive, offset, limit) : Result<Slice>(fail(archive.error()));
         if (slice) return ended_(result_of_slice(path, *slice, offset));
         const bool is_known = slice.error().code == "mcp";
         fail_with(shown_path(path) + " can't be read: " +
                   (is_known ? slice.error().message : "the transfer broke off") +
                   ": files of up to 64 MiB are offered; run_command reads parts of larger ones");
       });
}

void FileWork::write(const std::string& path, std::string bytes) {
  list(path + "/.",
       [this, path, bytes = std::move(bytes)](const Result<transfer::Listing>& listing) {
         if (!listing) return fail_with("the sandbox can't be reached: call again");
         if (listing->left.empty() || !listing->entries.empty())
           return fail_with(shown_path(path) + " is a directory: name a file in it");
         const std::string line = fmt::format("ok · {} · {} bytes", shown_path(path), bytes.size());
         constexpr mode_t kNew = 0644;
         // What is there keeps its permissions: a script stays one.
         if (listing->left.front().why == not_a_directory())
           return list(path, [this, path, bytes, line](const Result<transfer::Listing>& file) {
             const bool is_file =
                 file && file->entries.size() == 1 && file->entries.front().type == FileType::file;
             put(path, {{"file", bytes}}, is_file ? file->entries.front().mode : kNew, line);
           });
         if (listing->left.front().why != not_there())
           return fail_with(shown_path(path) + ": " + listing->left.front().why +
                            ": choose another path");
         put(path, {{"file", bytes}}, kNew, line);
       });
}

void FileWork::save(const std::string& directory, const std::vector<SavedFile>& files) {
  put(directory + "/", files, 0644, "ok");
}

void FileWork::put(const std::string& target, const std::vector<SavedFile>& files, mode_t mode,
                   const std::string& line) {
  auto archive = archive_of(files, mode);
  if (!archive) return fail_with("there is no memory for the file: write less");
  call({"put", target}, "put", std::move(*archive),
       [this, target, line, count = files.size()](const Result<std::string>& out) {
         const auto file = out ? sys::in_memory(*out) : Result<UniqueFd>(fail(out.error()));
         const auto report = file ? transfer::read_report(file->get())
                                  : Result<transfer::Report>(fail(file.error()));
         if (report && report->left.empty() && report->files == count)
           return ended_(result_of_text(line + "\n"));
         const std::string why =
             report && !report->left.empty() ? report->left.front().why : "the transfer broke off";
         fail_with(shown_path(target) + " can't be written: " + why.substr(0, why.find(';')) +
                   ": get_policy says where files can be written");
       });
}

}  // namespace sbx::mcp
