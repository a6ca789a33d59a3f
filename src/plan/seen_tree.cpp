#include "plan/seen_tree.hpp"

namespace sbx::plan {
namespace {

constexpr char kAfterName = '/';  // no name has it

}  // namespace

void SeenTree::add_name(std::string_view directory, std::string_view name) {
  if (last_ == nullptr || last_path_ != directory) {
    last_path_ = directory;
    const auto found = directories_.find(last_path_);
    last_ = nullptr;
    if (found == directories_.end()) return;
    last_ = &found->second;
    last_->first = names_.size();
  }
  names_ += name;
  names_ += kAfterName;
  last_->end = names_.size();
}

const SeenTree::Directory* SeenTree::directory(const std::string& path) const {
  const auto found = directories_.find(path);
  return found == directories_.end() ? nullptr : &found->second;
}

bool SeenTree::has_name(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  const Directory* holder = directory(slash == path.npos ? "." : path.substr(0, slash));
  if (holder == nullptr) return false;
  const std::string name = path.substr(slash == path.npos ? 0 : slash + 1) + kAfterName;
  const std::string_view names =
      std::string_view(names_).substr(holder->first, holder->end - holder->first);
  for (auto at = names.find(name); at != names.npos; at = names.find(name, at + 1))
    if (at == 0 || names[at - 1] == kAfterName) return true;
  return false;
}

}  // namespace sbx::plan
