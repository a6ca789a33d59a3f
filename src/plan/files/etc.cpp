#include "plan/files/etc.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/network_addresses.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

// All zeros would be invalid, machine-id(5). The same everywhere, so that it identifies no machine.
constexpr const char* kMachineId = "5b785b785b785b785b785b785b785b78\n";
constexpr const char* kHosts = "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n";
// One short attempt: a listener on the sandbox's loopback answers at once, and without one the
// refusal is immediate.
constexpr const char* kResolver = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
constexpr const char* kNameServices = "passwd: files\ngroup: files\nshadow: files\n";
constexpr const char* kHostLookup = "hosts: files dns\n";
constexpr std::size_t kTextLimit = std::size_t{256} << 10;

/// Files and directories of /etc that are shown unchanged; '*' matches any text. Programs read them
/// first, at every start: without them they fail, or behave differently. None is meant to hold a
/// secret, and what others than root may not read is left out.
constexpr auto kTaken = std::to_array<std::string_view>({
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "ssl/certs",
    "ca-certificates*",
    "fonts",
    "mime.types",
    "services",
    "protocols",
    "crypto-policies/back-ends",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    // which system this is: install scripts ask first
    "os-release",
    "debian_version",
    // man, groff and file
    "manpath.config",
    "groff",
    "magic",
    "magic.mime",
    // where links below /usr lead
    "locale.alias",
    "X11/rgb.txt",
    "ssl/openssl.cnf",
    "maven",
    "texmf",
    "ghostscript",
    "dictionaries-common",
    // configuration of interpreters
    "python2*",
    "python3*",
    "pypy*",
    "perl",
    "R",
    "lua*",
    "node",
    "nodejs",
    "java-*",
    "php",
    "php.d",
    "php.ini",
    "ruby*",
    "julia",
    "octave*",
    "ImageMagick*",
    "matplotlibrc",
});

/// Directories of /var to which links below /usr lead: data of packages.
constexpr auto kTakenElsewhere = std::to_array<std::string_view>({
    "/var/lib/ghc",    // the package databases of ghc
    "/var/lib/texmf",  // the formats and font maps of TeX
});

// Below about this size a copy is cheaper than a mount.
constexpr std::uint64_t kCopyLimit = std::uint64_t{16} << 10;

/// `pattern` with at most one '*'.
bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view head = pattern.substr(0, star);
  const std::string_view tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

/// What of the machine's /etc is taken, and how.
struct Taking {
  const host::Files& files;
  const std::string& root;
  const DenyRules& denials;
  std::uint64_t copied_below;  ///< bytes
};

/// A further name of a denied file.
bool is_denied_file(const Taking& from, const host::FileFacts& facts) {
  return facts.type == host::FileType::regular && facts.links > 1 &&
         std::ranges::any_of(from.denials.literals(), [&](const DenyRule* rule) {
           const auto denied = from.files.look(rule->pattern);
           return denied && denied->device == facts.device && denied->inode == facts.inode;
         });
}

/// The place on the machine, with the links of the directories on the way resolved.
Result<std::string> place_on_host(const Taking& from, const std::string& place) {
  const std::string directory = parent_of(place);
  if (directory == "/etc") return from.root + place;
  const std::string real = SBX_TRY(from.files.canonical(from.root + directory));
  return joined(real, base_name(place));
}

/// The item unchanged: a link into /usr stays a link, a small file is copied, the rest is bound.
/// Files that only root can read and items that can't be inspected are left out: nobody granted
/// them.
void add_item(const Taking& from, const std::string& place, std::vector<Mount>& steps) {
  const auto found = place_on_host(from, place);
  if (!found) return;
  std::string source = *found;
  auto facts = from.files.look(source);
  if (!facts || from.denials.covers(from.root + place) != nullptr ||
      from.denials.covers(source) != nullptr)
    return;
  if (facts->type == host::FileType::symlink) {
    const auto text = from.files.link_target(source);
    if (!text) return;
    if (is_within(normal(joined(parent_of(place), *text)), "/usr")) {
      steps.push_back(symlink_step(*text, place));
      return;
    }
    auto real = from.files.canonical(source);
    if (!real || from.denials.covers(*real) != nullptr) return;
    source = std::move(*real);
    facts = from.files.look(source);
    if (!facts) return;
  }
  if (!others_may_use(*facts) || is_denied_file(from, *facts)) return;
  if (facts->type == host::FileType::regular && facts->size < from.copied_below) {
    auto content = from.files.read_head(source, facts->size);
    if (content) steps.push_back(file_step(std::move(*content), place));
  } else if (facts->type == host::FileType::regular || facts->type == host::FileType::directory) {
    steps.push_back(bind_step(source, place, *facts));
    steps.back().rights.execute = false;
  }
}

std::string passwd_of(const std::string& user) {
  return "root:x:0:0:root:/:/usr/sbin/nologin\n" + user + ":x:1000:1000:" + user + ":/home/" +
         user + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
}

std::string group_of(const std::string& user) {
  return "root:x:0:\n" + user + ":x:1000:\nnogroup:x:65534:\n";
}

/// For each first byte, a bit mask of the patterns that a name with that byte may match.
constexpr auto kByFirst = [] {
  std::array<std::uint64_t, 256> patterns{};
  static_assert(kTaken.size() <= 64);
  for (std::size_t i = 0; i < kTaken.size(); ++i)
    patterns[static_cast<unsigned char>(kTaken[i].front())] |= std::uint64_t{1} << i;
  return patterns;
}();

/// The patterns that it does match; for "ssl/certs", the directory's.
std::uint64_t matching(std::string_view name) {
  std::uint64_t found = 0;
  for (std::uint64_t left = kByFirst[static_cast<unsigned char>(name.front())]; left != 0;
       left &= left - 1) {
    const std::string_view pattern = kTaken[static_cast<std::size_t>(std::countr_zero(left))];
    if (matches(name, pattern.substr(0, pattern.find('/')))) found |= left & -left;
  }
  return found;
}

void add_taken(const Taking& from, std::vector<Mount>& steps) {
  for (const std::string_view place : kTakenElsewhere) add_item(from, std::string(place), steps);
  const auto names = from.files.list(from.root + "/etc",
                                     [](std::string_view name) { return matching(name) != 0; });
  if (!names) return;
  for (const auto& [name, type] : *names) {
    for (std::uint64_t left = matching(name); left != 0; left &= left - 1) {
      const std::string_view pattern = kTaken[static_cast<std::size_t>(std::countr_zero(left))];
      std::string place = "/etc/" + name;
      if (const std::size_t slash = pattern.find('/'); slash != std::string_view::npos)
        place += pattern.substr(slash);
      add_item(from, place, steps);
    }
  }
}

std::string host_text(const host::Files& files, const DenyRules& denials, const char* path,
                      const char* otherwise) {
  const auto real = files.canonical(path);
  if (!real || denials.covers(path) != nullptr || denials.covers(*real) != nullptr)
    return otherwise;
  auto text = files.read_head(path, kTextLimit);
  return text ? std::move(*text) : std::string(otherwise);
}

/// The "hosts:" line of nsswitch.conf(5), with its newline.
std::string host_lookup(std::string_view services) {
  while (!services.empty()) {
    const std::size_t end = services.find('\n');
    const std::string_view line = services.substr(0, end);
    if (line.starts_with("hosts:")) return std::string(line) + "\n";
    services.remove_prefix(end == std::string_view::npos ? services.size() : end + 1);
  }
  return kHostLookup;
}

}  // namespace

std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                             const policy::Policy& policy, const DenyRules& denials,
                             SmallFiles small) {
  const host::Files& files = *host.files;
  const policy::NetworkMode network = policy.network.mode.value;
  const std::string& user = policy.environment.user.value;
  std::vector<Mount> steps;
  steps.push_back(directory_step("/etc"));
  steps.push_back(file_step(passwd_of(user), "/etc/passwd"));
  steps.push_back(file_step(group_of(user), "/etc/group"));
  steps.push_back(file_step("sandbox\n", "/etc/hostname"));
  steps.push_back(file_step(kMachineId, "/etc/machine-id", 0444));
  std::string lookup = kHostLookup;
  std::string hosts = kHosts;
  std::string resolver = kResolver;
  if (network == policy::NetworkMode::allow_list)
    resolver = std::string("nameserver ") + kGateway4 + "\noptions timeout:5 attempts:2\n";
  if (network == policy::NetworkMode::host) {
    lookup = host_lookup(host_text(files, denials, "/etc/nsswitch.conf", kHostLookup));
    hosts = host_text(files, denials, "/etc/hosts", kHosts);
    resolver = host_text(files, denials, "/etc/resolv.conf", "");
  }
  steps.push_back(file_step(kNameServices + lookup, "/etc/nsswitch.conf"));
  steps.push_back(file_step(std::move(hosts), "/etc/hosts"));
  steps.push_back(file_step(std::move(resolver), "/etc/resolv.conf"));
  add_taken({.files = files,
             .root = system_root,
             .denials = denials,
             .copied_below = small == SmallFiles::copied ? kCopyLimit : 0},
            steps);
  return steps;
}

}  // namespace sbx::plan
