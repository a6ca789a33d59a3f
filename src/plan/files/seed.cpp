#include "plan/files/seed.hpp"

#include <string>
#include <utility>

#include "plan/files/git_identity.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/refuse.hpp"
#include "plan/files/steps.hpp"

namespace sbx::plan {
namespace {

// Seeds pass through sbx's memory into the private tmpfs.
constexpr std::uint64_t kSeedLimit = std::uint64_t{16} << 20;

class Seeds {
 public:
  Seeds(const host::Host& host, std::string home, const DenyRules& denials)
      : host_(host), home_(std::move(home)), denials_(denials) {}

  Status add(const policy::Sourced<std::string>& seed) {
    if (host_.home.empty() || !is_within(seed.value, host_.home) || seed.value == host_.home)
      return refuse("seed-outside-home", "'" + seed.value + "' does not lie below the home",
                    seed.origin);
    const std::string directory = parent_of(seed.value);
    const std::string_view pattern = base_name(seed.value);
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return copy(seed.value, seed.origin);
    const auto entries = host_.files->list(directory);
    if (!entries) return {};
    const std::string_view head = pattern.substr(0, star);
    const std::string_view tail = pattern.substr(star + 1);
    for (const host::Entry& entry : *entries)
      if (entry.name.size() >= head.size() + tail.size() && entry.name.starts_with(head) &&
          entry.name.ends_with(tail))
        SBX_TRY(copy(joined(directory, entry.name), seed.origin));
    return {};
  }

  std::vector<Mount> take() { return std::move(steps_); }

 private:
  Status copy(const std::string& path, const Origin& origin) {
    const auto real = host_.files->canonical(path);
    const auto facts = real ? host_.files->look(*real) : std::unexpected(real.error());
    if (!facts) return {};
    for (const std::string& name : {path, *real})
      if (const DenyRule* rule = denials_.covers(name))
        return denied_grant("copy '" + path + "' into the new home", *rule, origin);
    if (facts->type != host::FileType::regular)
      return refuse("not-grantable",
                    "cannot copy '" + path + "' into the new home: it is not a file", origin);
    total_ += facts->size;
    if (total_ > kSeedLimit)
      return refuse("seed-too-large", "the files of filesystem.seed are larger than 16 MiB",
                    origin);
    auto content = host_.files->read_head(*real, facts->size);
    if (!content) return {};
    const std::string_view place = below(path, host_.home);
    if (is_git_settings(place)) *content = git_identity(*content);
    Mount step = file_step(std::move(*content), home_ + std::string(place));
    step.origin = origin;
    steps_.push_back(std::move(step));
    return {};
  }

  const host::Host& host_;
  std::string home_;  ///< inside
  const DenyRules& denials_;
  std::vector<Mount> steps_;
  std::uint64_t total_ = 0;
};

}  // namespace

Result<std::vector<Mount>> seed_steps(const policy::Policy& policy, const host::Host& host,
                                      const DenyRules& denials) {
  Seeds seeds(host, home_of(policy.environment), denials);
  for (const auto& seed : policy.filesystem.seed) SBX_TRY(seeds.add(seed));
  return seeds.take();
}

}  // namespace sbx::plan
