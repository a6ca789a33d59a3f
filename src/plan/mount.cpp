#include "plan/mount.hpp"

#include <type_traits>

namespace sbx::plan {
namespace {

template <class M>
auto* layered_of(M& step) {
  using Found = std::conditional_t<std::is_const_v<M>, const mount::Layered, mount::Layered>;
  if (auto* overlay = step.template as<mount::Overlay>()) return static_cast<Found*>(overlay);
  return static_cast<Found*>(step.template as<mount::Copy>());
}

template <class M>
auto* host_source_of(M& step) {
  if (auto* bind = step.template as<mount::Bind>()) return &bind->source;
  auto* layered = layered_of(step);
  return layered != nullptr ? &layered->source : nullptr;
}

}  // namespace

const mount::Layered* Mount::layered() const {
  return layered_of(*this);
}

mount::Layered* Mount::layered() {
  return layered_of(*this);
}

const HostSource* Mount::host_source() const {
  return host_source_of(*this);
}

HostSource* Mount::host_source() {
  return host_source_of(*this);
}

const std::string& Mount::source() const {
  static const std::string none;
  if (const HostSource* host = host_source()) return host->path;
  if (const auto* link = as<mount::Symlink>()) return link->text;
  if (const auto* file = as<mount::File>()) return file->copied_from;
  if (const auto* device = as<mount::Device>()) return device->path;
  if (const auto* scratch = as<mount::Scratch>()) return scratch->directory;
  return none;
}

void become_copy(Mount& step) {
  if (auto* overlay = step.as<mount::Overlay>())
    step.payload = mount::Copy{static_cast<mount::Layered&&>(*overlay)};
  mount::Layered* const layered = step.layered();
  if (layered == nullptr) return;
  layered->linked.clear();  // a copy links all names
  layered->seen.reset();
}

}  // namespace sbx::plan
