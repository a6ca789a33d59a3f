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
        "[network]\npublish = [\"8080:80\"]", "[limits]\nmemory = \"64G\"",
        "[session]\nlifetime = \"100h\"", "[session]\nidle = \"8h\"", "[session]\ncalls = 200"}) {
    EXPECT_GT(audited(opening).exposure, shut) << opening;
  }
}

/// The session's own keys: nothing at usual values, more for a session that lasts, rests or holds
/// much.
TEST(PlanAudit, GradesWhatMakesASessionLast) {
  const Audit usual = audited("");
  for (const char* key : {"session.idle", "session.lifetime", "session.calls", "session.cpu_time"})
    EXPECT_EQ(percent(usual, key), 0) << key;
  EXPECT_GT(percent(audited("[session]\nlifetime = \"48h\""), "session.lifetime"), 0);
  EXPECT_EQ(percent(audited("[session]\nlifetime = \"24h\""), "session.lifetime"), 0);
  EXPECT_EQ(percent(audited("[session]\nlifetime = \"240h\""), "session.lifetime"), 100);
  EXPECT_GT(percent(audited("[session]\ncalls = 256"), "session.calls"), 50);
  EXPECT_EQ(percent(audited("[session]\ncalls = 32"), "session.calls"), 0);
}

TEST(PlanAudit, AnIdleTimeThatTheLifetimeCutsOffIsNamed) {
  const auto item = [](const Audit& audit) {
    return *std::ranges::find(audit.items, "session.idle", &AuditItem::key);
  };
  const AuditItem longer = item(audited("[session]\nidle = \"9h\""));
  EXPECT_GE(longer.percent, 20);
  EXPECT_NE(longer.words.find("session.lifetime, 8h"), std::string::npos) << longer.words;
  EXPECT_EQ(longer.at.line, 3);
  // A short lifetime is bound enough.
  EXPECT_EQ(item(audited("[session]\nlifetime = \"10m\"")).percent, 0);
  EXPECT_GT(item(audited("[session]\nidle = \"7h\"")).percent, 0);
}

TEST(PlanAudit, WithoutASumTheLifetimeBoundsTheCpuTimeOfASession) {
  constexpr std::string_view kDays = "[limits]\ncpus = 4.0\n[session]\nlifetime = \"24h\"\n";
  EXPECT_GT(percent(audited(kDays), "session.cpu_time"), 0);
  EXPECT_EQ(percent(audited(std::string(kDays) + "cpu_time = \"2h\""), "session.cpu_time"), 0);
  EXPECT_EQ(percent(audited(std::string(kDays) + "cpu_time = \"87600h\""), "session.cpu_time"),
            percent(audited(kDays), "session.cpu_time"));
}

TEST(PlanAudit, SaysWhatCallsOfASessionShare) {
  const std::string words = audited("").session;
  for (const char* part : {"/dev/shm", "loopback", "IPC", "memory", "traps", "sbx-security(7)"})
    EXPECT_NE(words.find(part), std::string::npos) << part;
  EXPECT_EQ(words.find(".git hooks"), std::string::npos);
  EXPECT_NE(audited("[filesystem.workspace]\nmode = \"overlay\"").session.find(".git hooks"),
            std::string::npos);
  EXPECT_NE(audited("[network]\nmode = \"host\"").session.find("host's network"),
            std::string::npos);
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
