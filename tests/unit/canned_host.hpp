#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/host.hpp"
#include "plan/files/path_text.hpp"

/// A host that exists only in memory, for tests and benchmarks of the decisions before a run.
namespace sbx::host {

class CannedFiles final : public Files {
 public:
  struct Node {
    FileFacts facts;
    std::string content;  ///< a file's content, or a link's text
  };

  CannedFiles() { directory("/"); }

  CannedFiles& directory(const std::string& path, mode_t mode = 0755) {
    return add(path, FileType::directory, mode, {});
  }
  CannedFiles& file(const std::string& path, std::string content = {}, mode_t mode = 0644) {
    return add(path, FileType::regular, mode, std::move(content));
  }
  CannedFiles& program(const std::string& path) {
    return file(path,
                "\x7f"
                "ELF…",
                0755);
  }
  CannedFiles& script(const std::string& path, std::string content) {
    return file(path, std::move(content), 0755);
  }
  CannedFiles& link(const std::string& path, std::string text) {
    return add(path, FileType::symlink, 0777, std::move(text));
  }
  CannedFiles& special(const std::string& path, FileType type) { return add(path, type, 0666, {}); }
  CannedFiles& owner(const std::string& path, uid_t uid, gid_t gid) {
    nodes_.at(path).facts.uid = uid;
    nodes_.at(path).facts.gid = gid;
    return *this;
  }
  CannedFiles& names(const std::string& path, std::uint32_t count) {
    nodes_.at(path).facts.links = count;
    return *this;
  }
  /// Sets the time of the last change, in nanoseconds since the epoch.
  CannedFiles& changed(const std::string& path, std::int64_t when) {
    nodes_.at(path).facts.changed = when;
    return *this;
  }
  /// Makes a look at a path fail.
  CannedFiles& broken(const std::string& path, int errno_value) {
    broken_[path] = errno_value;
    return *this;
  }
  /// Makes a path unreadable for the caller.
  CannedFiles& shut(const std::string& path) {
    shut_.insert(path);
    return *this;
  }

  Result<FileFacts> look(const std::string& path) const override {
    if (const auto found = broken_.find(path); found != broken_.end())
      return refused(path, found->second);
    const std::string place = SBX_TRY(resolved(plan::parent_of(path)));
    return SBX_TRY(node(plan::joined(place, plan::base_name(path)))).facts;
  }
  Result<std::string> canonical(const std::string& path) const override { return resolved(path); }
  Result<std::string> link_target(const std::string& path) const override {
    const std::string place = SBX_TRY(resolved(plan::parent_of(path)));
    const Node found = SBX_TRY(node(plan::joined(place, plan::base_name(path))));
    if (found.facts.type != FileType::symlink) return refused(path, EINVAL);
    return found.content;
  }
  Result<std::string> read_head(const std::string& path, std::size_t limit) const override {
    const std::string place = SBX_TRY(resolved(path));
    const Node found = SBX_TRY(node(place));
    if (found.facts.type == FileType::directory) return refused(path, EISDIR);
    if (shut_.contains(place)) return refused(path, EACCES);
    return found.content.substr(0, limit);
  }
  using Files::list;
  Result<std::vector<Entry>> list(const std::string& path, const Wanted& wanted) const override {
    const std::string place = SBX_TRY(resolved(path));
    const Node found = SBX_TRY(node(place));
    if (found.facts.type != FileType::directory) return refused(path, ENOTDIR);
    if (shut_.contains(place)) return refused(path, EACCES);
    std::vector<Entry> entries;
    for (const auto& [name, each] : nodes_)
      if (name != "/" && plan::parent_of(name) == place &&
          (!wanted || wanted(plan::base_name(name))))
        entries.push_back({.name = std::string(plan::base_name(name)), .type = each.facts.type});
    return entries;
  }
  Status walk(const std::string& root, const Visit& visit, const Shut& shut) const override {
    walked.push_back(root);
    std::vector<std::string> waiting = {""};
    while (!waiting.empty()) {
      const std::string directory = std::move(waiting.back());
      waiting.pop_back();
      const std::string place = directory.empty() ? root : root + "/" + directory;
      if (shut_.contains(place)) {
        shut(directory);
        continue;
      }
      for (const Entry& entry : SBX_TRY(list(place))) {
        const Node& found = nodes_.at(plan::joined(place, entry.name));
        const Walk next = visit({.directory = directory, .name = entry.name, .facts = found.facts});
        if (next == Walk::end) return {};
        if (next == Walk::into && entry.type == FileType::directory)
          waiting.push_back(directory.empty() ? entry.name : directory + "/" + entry.name);
      }
    }
    return {};
  }
  mutable std::vector<std::string> walked;  ///< the roots
  bool memory_takes_attributes() const override { return takes_attributes; }
  bool takes_attributes = true;
  /// Adds another name of a file.
  CannedFiles& hard_link(const std::string& path, const std::string& other) {
    Node copy = nodes_.at(other);
    copy.facts.links = nodes_.at(other).facts.links = 2;
    nodes_[path] = copy;
    return *this;
  }
  bool may_read(const std::string& path) const override {
    const auto place = resolved(path);
    return place && !shut_.contains(*place);
  }
  bool may_execute(const std::string& path) const override {
    const auto place = resolved(path);
    return place && (nodes_.at(*place).facts.mode & 0111U) != 0;
  }

 private:
  static std::unexpected<Error> refused(const std::string& path, int errno_value) {
    return fail_errno(ErrorKind::host, "cannot-look", "cannot look at '" + path + "'", errno_value);
  }

  CannedFiles& add(const std::string& path, FileType type, mode_t mode, std::string content) {
    if (path != "/" && !nodes_.contains(plan::parent_of(path))) directory(plan::parent_of(path));
    const std::uint64_t size = content.size();
    nodes_[path] = {.facts = {.type = type,
                              .device = 1,
                              .inode = ++inodes_,
                              .uid = 1234,
                              .gid = 1234,
                              .mode = mode,
                              .size = size},
                    .content = std::move(content)};
    return *this;
  }

  Result<Node> node(const std::string& path) const {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return refused(path, ENOENT);
    return found->second;
  }

  Result<std::string> resolved(const std::string& path, int links = 0) const {
    if (links > 40) return refused(path, ELOOP);
    std::string done;
    std::string_view rest = path;
    while (true) {
      while (rest.starts_with('/')) rest.remove_prefix(1);
      if (rest.empty()) return done.empty() ? "/" : done;
      const std::string name(rest.substr(0, rest.find('/')));
      rest.remove_prefix(name.size());
      if (name == ".") continue;
      if (name == "..") {
        done = done.empty() ? "" : plan::parent_of(done);
        if (done == "/") done.clear();
        continue;
      }
      const std::string here = done + "/" + name;
      const Node found = SBX_TRY(node(here));
      if (found.facts.type == FileType::symlink) {
        std::string next = plan::joined(done.empty() ? "/" : done, found.content);
        next += rest;
        return resolved(next, links + 1);
      }
      if (!rest.empty() && found.facts.type != FileType::directory) return refused(path, ENOTDIR);
      done = here;
    }
  }

  std::map<std::string, Node> nodes_;
  std::set<std::string> shut_;
  std::map<std::string, int> broken_;
  std::uint64_t inodes_ = 0;
};

/// A Debian system with a merged /usr, and a caller "me" (1234) whose working directory is
/// /home/me/project.
struct CannedHost {
  std::shared_ptr<CannedFiles> files = std::make_shared<CannedFiles>();
  Host host;

  CannedHost() {
    for (const char* name : {"true", "sh", "bash", "env", "node", "perl", "python3.11", "ls"})
      files->program(std::string("/usr/bin/") + name);
    files->link("/usr/bin/python3", "python3.11");
    files->directory("/usr/lib")
        .directory("/usr/lib64")
        .directory("/usr/sbin")
        .directory("/usr/local/bin");
    for (const char* name : {"bin", "sbin", "lib", "lib64"})
      files->link(std::string("/") + name, std::string("usr/") + name);
    files->file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nme:x:1234:1234::/home/me:/bin/sh\n");
    files->file("/etc/shadow", "secret", 0640).file("/etc/timezone", "Etc/UTC\n");
    files->link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
    files->directory("/etc/alternatives").directory("/etc/ssl/certs").directory("/etc/python3.11");
    files->directory("/tmp", 01777).directory("/root", 0700).directory("/dev").directory("/sys");
    files->directory("/home/me", 0700).directory("/home/me/project");
    mounts("22 1 0:21 / /proc rw - proc proc rw\n");
    host.uid = host.gid = 1234;
    host.home = "/home/me";
    host.working_directory = "/home/me/project";
    host.path = {"/usr/local/bin", "/usr/bin", "/bin"};
    host.landlock_abi = 7;
    host.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
    host.memory_available_bytes = std::uint64_t{8} << 30;
    for (const int resource : {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_CPU,
                               RLIMIT_DATA, RLIMIT_MEMLOCK})
      host.rlimits[resource] = {.soft = RLIM_INFINITY, .hard = RLIM_INFINITY};
    host.rlimits[RLIMIT_STACK] = {.soft = std::uint64_t{8} << 20, .hard = RLIM_INFINITY};
    host.files = files;
  }

  /// With root as the caller, who owns everything.
  CannedHost& privileged() {
    host.privileged = true;
    host.uid = host.gid = 0;
    host.home = "/root";
    return *this;
  }
  CannedHost& mounts(std::string mountinfo) {
    files->file("/proc/self/mountinfo", std::move(mountinfo), 0444);
    return *this;
  }
};

}  // namespace sbx::host
