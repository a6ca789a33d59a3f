#include "workspace/lost.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "workspace/copy.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

bool is_of_interest(const std::string& name) {
  return !name.starts_with('.') && name != "__pycache__";
}

}  // namespace

Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most) {
  Lost lost;
  auto lowers = open_lowers(plan);
  if (!lowers) return lost;
  const auto copy = open_copy(plan, scratch, {}, std::move(*lowers));
  if (!copy || copy->layers.empty() || copy->directory != plan.working_directory) return lost;
  const Layer& layer = copy->layers.front();
  const auto names = read_names(layer.upper.get());
  if (!names) return lost;
  std::size_t looked = 0;
  for (const std::string& name : *names) {
    if (!is_of_interest(name) || std::ranges::binary_search(layer.made, name)) continue;
    if (++looked > most) {
      lost.are_all = false;
      break;
    }
    struct stat facts{};
    if (::fstatat(layer.upper.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    struct stat before{};
    const bool is_new = !layer.lower.valid() || ::fstatat(layer.lower.get(), name.c_str(), &before,
                                                          AT_SYMLINK_NOFOLLOW) != 0;
    if (is_new && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
      lost.names.push_back(S_ISDIR(facts.st_mode) ? name + "/" : name);
  }
  return lost;
}

}  // namespace sbx::workspace
