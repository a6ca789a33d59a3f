#pragma once

#include <functional>

namespace sbx::cgroup {

/// Does `work` to its end even when this process is killed meanwhile: in a process of its own,
/// which shares memory and descriptors, and for which this one waits with all signals held. Where
/// none can be made, here. For what must not be left half done and takes long in the kernel.
void do_outliving(const std::function<void()>& work);

}  // namespace sbx::cgroup
