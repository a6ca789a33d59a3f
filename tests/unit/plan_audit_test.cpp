#include "plan/audit.hpp"

#include <algorithm>

#include "policy/keys.hpp"
#include "policy_fixture.hpp"

namespace sbx::plan {
namespace {

Audit audited(std::string_view text) {
  return audit(policy::parsed("extends = \"strict\"\n" + std::string(text)));
}

int percent(const Audit& audit, std::string_view key) {
  const auto item = std::ranges::find(audit.items, key, &AuditItem::key);
  return item == audit.items.end() ? -1 : item->percent;
}

TEST(PlanAudit, NamesOnlyKeysThatExist) {
  for (const AuditItem& item : audited("").items) {
    EXPECT_NE(policy::find_key(item.key), nullptr) << item.key;
    EXPECT_GE(item.percent, 0) << item.key;
    EXPECT_LE(item.percent, 100) << item.key;
    EXPECT_FALSE(item.words.empty()) << item.key;
  }
}

/// Each opening counts, and the same policy without it has a lower grade.
TEST(PlanAudit, CountsEachOpening) {
  const double shut = audited("").exposure;
  for (const char* opening :
       {"enforcement = \"best-effort\"", "[filesystem]\nread = [\"/srv/a\"]",
        "[filesystem]\nwrite = [\"/srv/a\"]", "[filesystem]\nsockets = [\"/run/x\"]",
        "[filesystem]\nlandlock = false", "[filesystem.workspace]\nmode = \"overlay\"",
        "[filesystem.outputs]\ncollect = [\"*.png\"]", "[environment]\npass = [\"TZ\"]",
        "[environment]\nset = { API_KEY = \"x\" }", "[syscalls]\nallow = [\"@debug\"]",
        "[network]\nmode = \"host\"", "[network]\nmode = \"allow-list\"\nallow = [\"*.a.org:443\"]",
        "[network]\nprivate = true", "[network]\nmatch_sni = false",
        "[network]\npublish = [\"8080:80\"]", "[limits]\nmemory = \"64G\""}) {
    EXPECT_GT(audited(opening).exposure, shut) << opening;
  }
}

TEST(PlanAudit, OneWideDoorDecidesTheGrade) {
  EXPECT_EQ(audited("").grade, Grade::safe);
  EXPECT_EQ(audited("[network]\nmode = \"host\"").grade, Grade::unsafe);
  EXPECT_EQ(audited("[filesystem.workspace]\nmode = \"read-write\"").grade, Grade::exposed);
}

TEST(PlanAudit, HiddenNamesMatterOnlyWhereFilesAreShown) {
  constexpr std::string_view kNone = "[filesystem]\ndeny = { replace = [] }\n";
  EXPECT_EQ(percent(audited(kNone), "filesystem.deny"), 0);
  EXPECT_EQ(percent(audited(std::string(kNone) + "read = [\"/srv/a\"]"), "filesystem.deny"), 100);
}

}  // namespace
}  // namespace sbx::plan
