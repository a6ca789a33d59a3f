#include <sbx/outcome.hpp>

namespace sbx {
namespace {

struct StatusOf {
  int operator()(const Exited& end) const { return end.code; }
  int operator()(const Signaled& end) const { return 128 + end.signal; }
  int operator()(const OverBudget& end) const { return exit_status_of(end.budget); }
  int operator()(const Denied&) const { return exit_status::kDeniedCall; }
  int operator()(const Cancelled& end) const { return 128 + end.signal; }
  int operator()(const Lost&) const { return exit_status::kCouldNot; }
};

}  // namespace

int exit_status_of(const Verdict& verdict) {
  return std::visit(StatusOf{}, verdict);
}

int exit_status_of(const Error& error) {
  if (error.kind == ErrorKind::not_found) return exit_status::kNotFound;
  if (error.kind == ErrorKind::not_executable) return exit_status::kNotExecutable;
  return exit_status::kCouldNot;
}

}  // namespace sbx
