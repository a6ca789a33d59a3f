#include "cli/mcp_install/held_walk.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/mcp_install/not_editable.hpp"

namespace sbx::cli::mcp_install {
namespace {

constexpr int kMostLinks = 40;  // as the kernel, path_resolution(7)

class Walker {
 public:
  explicit Walker(std::string root) : root_(std::move(root)) {}

  Result<Place> walk(const std::string& below) {
    way_.push_back(SBX_TRY(sys::open_at(AT_FDCWD, root_, O_PATH | O_DIRECTORY)));
    put_first(below);
    while (!names_.empty()) {
      const std::string name = std::move(names_.front());
      names_.pop_front();
      if (name == "..")
        SBX_TRY(go_up());
      else
        SBX_TRY(step(name));
    }
    if (place_.name.empty()) return not_editable("'" + printable(below) + "' is a directory");
    place_.directory = std::move(way_.back());
    return std::move(place_);
  }

 private:
  void put_first(std::string_view path) {
    std::deque<std::string> names;
    while (!path.empty()) {
      const std::size_t end = std::min(path.find('/'), path.size());
      if (const auto name = path.substr(0, end); !name.empty() && name != ".")
        names.emplace_back(name);
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    names_.insert(names_.begin(), names.begin(), names.end());
  }

  Status go_up() {
    if (way_.size() == 1 || !place_.missing.empty()) return leads_out();
    way_.pop_back();
    return {};
  }

  Status step(const std::string& name) {
    const bool is_last = names_.empty();
    if (!place_.missing.empty()) return note_missing(name, is_last);
    auto entry = held::open_name(way_.back().get(), name, O_PATH);
    if (!entry && entry.error().errno_value == ENOENT) return note_missing(name, is_last);
    if (!entry) return fail(entry.error());
    struct stat facts{};
    if (::fstat(entry->get(), &facts) != 0) return cannot_open(name);
    if (S_ISLNK(facts.st_mode)) return follow(entry->get(), name);
    if (S_ISDIR(facts.st_mode)) {
      way_.push_back(std::move(*entry));
      return {};
    }
    if (!is_last) return cannot_open(name, ENOTDIR);
    place_.name = name;
    return {};
  }

  Status note_missing(const std::string& name, bool is_last) {
    if (is_last)
      place_.name = name;
    else
      place_.missing.push_back(name);
    return {};
  }

  Status follow(int link, const std::string& name) {
    std::array<char, PATH_MAX> text{};
    const ssize_t size = ::readlinkat(link, "", text.data(), text.size());
    if (size < 0) return cannot_open(name);
    if (++links_ > kMostLinks) return cannot_open(name, ELOOP);
    std::string_view to(text.data(), static_cast<std::size_t>(size));
    if (to.starts_with('/')) {
      if (!to.starts_with(root_ + "/")) return leads_out();
      to.remove_prefix(root_.size());
      way_.resize(1);
    }
    put_first(to);
    return {};
  }

  [[nodiscard]] std::unexpected<Error> leads_out() const {
    return not_editable("a link on the way leads out of '" + printable(root_) + "'");
  }
  static std::unexpected<Error> cannot_open(const std::string& name, int errno_value = errno) {
    return fail_errno(ErrorKind::host, "cannot-open", "cannot open '" + printable(name) + "'",
                      errno_value);
  }

  std::string root_;
  std::vector<UniqueFd> way_;
  std::deque<std::string> names_;
  Place place_;
  int links_ = 0;
};

}  // namespace

Result<Place> walk(const std::string& root, const std::string& below) {
  return Walker(root).walk(below);
}

}  // namespace sbx::cli::mcp_install
