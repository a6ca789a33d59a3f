// A valid policy is written as text that parses back to the same rules; an invalid one has findings
// with positions in the text.

#include <string>
#include <string_view>

#include "fuzz.hpp"
#include "policy/load.hpp"

using namespace sbx;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const policy::LoadContext context{.home = "/home/me", .working_directory = "/home/me/work"};
  const auto policy = policy::parse_text(text, "p.toml", context);
  if (!policy) {
    must(!policy.error().empty());
    for (const Error& error : policy.error()) must(!error.message.empty() && !error.code.empty());
    return 0;
  }
  const std::string written = policy::write(*policy);
  const auto again = policy::parse_text(written, "again.toml", context);
  must(again.has_value() && policy::same_rules(*policy, *again));
  must(policy::write(*again) == written);
  return 0;
}
