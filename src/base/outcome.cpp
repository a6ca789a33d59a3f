#include <sbx/outcome.hpp>

namespace sbx {
namespace {

int budget_status(Budget budget) {
  switch (budget) {
    case Budget::wall_time:
      return exit_status::wall_time;
    case Budget::cpu_time:
      return exit_status::cpu_time;
    case Budget::memory:
      return exit_status::memory;
    case Budget::output:
    case Budget::file_size:
    case Budget::disk:
      return exit_status::size;
  }
  return exit_status::could_not;
}

struct StatusOf {
  int operator()(const Exited& end) const { return end.code; }
  int operator()(const Signaled& end) const { return 128 + end.signal; }
  int operator()(const OverBudget& end) const { return budget_status(end.budget); }
  int operator()(const Denied&) const { return exit_status::denied_call; }
  int operator()(const Cancelled& end) const { return 128 + end.signal; }
};

}  // namespace

int exit_status_of(const Verdict& verdict) {
  return std::visit(StatusOf{}, verdict);
}

int exit_status_of(const Error& error) {
  if (error.kind == ErrorKind::not_found) return exit_status::not_found;
  if (error.kind == ErrorKind::not_executable) return exit_status::not_executable;
  return exit_status::could_not;
}

}  // namespace sbx
