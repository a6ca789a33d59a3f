#include "spawn/faults.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace sbx::spawn {

const std::vector<StageFacts>& stages() {
  static const std::vector<StageFacts> table = {
#define SBX_STAGE_FACTS(name, kind, meaning) {child::Stage::name, #name, #kind, meaning},
      SBX_STAGES(SBX_STAGE_FACTS)
#undef SBX_STAGE_FACTS
  };
  return table;
}

std::string_view stage_name(child::Stage stage) {
  for (const StageFacts& facts : stages())
    if (facts.stage == stage) return facts.name;
  return "ready";
}

#ifdef SBX_FAULTS
namespace {

/// "EPERM" or "1".
int errno_named(std::string_view text) {
  int value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{})
    return value;
  for (int number = 1; number < 134; ++number) {
    const char* name = ::strerrorname_np(number);
    if (name != nullptr && text == name) return number;
  }
  return 0;
}

}  // namespace

Result<child::Fault> fault_from_environment() {
  const char* fail_text = std::getenv("SBX_TEST_FAIL");
  const char* skip_text = std::getenv("SBX_TEST_SKIP");
  if (fail_text == nullptr && skip_text == nullptr) return child::Fault{};
  child::Fault fault{.set = true, .leave_out = skip_text != nullptr};
  std::string_view name = skip_text != nullptr ? skip_text : fail_text;
  if (!fault.leave_out) {
    const auto colon = name.find(':');
    if (colon != std::string_view::npos) fault.error = errno_named(name.substr(colon + 1));
    name = name.substr(0, colon);
  }
  for (const StageFacts& facts : stages())
    if (facts.name == name) {
      fault.stage = facts.stage;
      return fault;
    }
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "unknown-stage",
                    .message = "no set-up stage is called '" + std::string(name) + "'"});
}
#else
Result<child::Fault> fault_from_environment() {
  return child::Fault{};
}
#endif

}  // namespace sbx::spawn
