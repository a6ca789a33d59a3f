#include "supervise/meters/fileless_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/unique_fd.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// As written in /proc/PID/maps; empty if unknown.
const std::string& fileless_device() {
  static const std::string device = [] {
    const UniqueFd file(::memfd_create("sbx-probe", MFD_CLOEXEC));
    struct stat facts{};
    if (!file.valid() || ::fstat(file.get(), &facts) != 0) return std::string();
    std::array<char, 24> text{};
    (void)std::snprintf(text.data(), text.size(), "%02x:%02x", major(facts.st_dev),
                        minor(facts.st_dev));
    return std::string(text.data());
  }();
  return device;
}

/// Returns the lines of a file one by one, each valid until the next.
class Lines {
 public:
  explicit Lines(const std::string& path, int directory)
      : file_(::fdopen(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC), "r"),
              &std::fclose) {
    if (file_) (void)std::setvbuf(file_.get(), buffer_.data(), _IOFBF, buffer_.size());
  }
  ~Lines() { std::free(line_); }  // allocated by getline(3)
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// Empty at the end.
  [[nodiscard]] std::string_view next() {
    const ssize_t length = file_ ? ::getline(&line_, &room_, file_.get()) : -1;
    return {line_, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  }

 private:
  std::array<char, 8192> buffer_{};
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  char* line_ = nullptr;
  std::size_t room_ = 0;
};

std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  return word;
}

std::uint64_t hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

struct Mapping {
  std::uint64_t size = 0;
  bool is_shared = false;
  std::string_view device;
};

/// "7f0000000000-7f0000001000 rw-s 00000000 00:01 1029  /dev/zero (deleted)"
Mapping mapping_in(std::string_view line) {
  const std::string_view addresses = take_word(line);
  const std::size_t dash = std::min(addresses.find('-') + 1, addresses.size());
  const std::string_view access = take_word(line);
  (void)take_word(line);  // the offset
  return {.size = hexadecimal(addresses.substr(dash)) - hexadecimal(addresses),
          .is_shared = access.ends_with('s'),
          .device = take_word(line)};
}

}  // namespace

FilelessMemory fileless_memory(int proc, const std::string& file, std::size_t& mappings) {
  FilelessMemory sum{.size = UINT64_MAX};
  if (mappings == 0) return sum;
  Lines lines(file, proc);
  std::string_view line = lines.next();
  if (line.empty() || fileless_device().empty()) return sum;
  std::uint64_t size = 0;
  bool counts = false;  // private mappings also have pages of their own
  for (; !line.empty(); line = lines.next()) {
    const bool begins_mapping = line.front() < 'A' || line.front() > 'Z';  // "Pss:" is about one
    if (!begins_mapping) {
      if (counts && line.starts_with("Pss:")) sum.resident += kilobytes_of(line, "Pss:") * 1024;
      continue;
    }
    if (mappings == 0) return sum;
    --mappings;
    const Mapping mapping = mapping_in(line);
    const bool is_fileless = mapping.device == fileless_device();
    counts = is_fileless && mapping.is_shared;
    if (is_fileless) size += mapping.size;
  }
  sum.size = size;
  return sum;
}

}  // namespace sbx::supervise
