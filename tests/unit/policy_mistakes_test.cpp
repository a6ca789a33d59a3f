#include <array>

#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PolicyMistakes, AreAllFoundInTheOrderOfTheText) {
  const Findings findings = findings_of(
      "memroy = 1\n[limits]\nmemory = 5\ntimeout = \"1s\"\nwall_time = \"1 s\"\n[nett]\nx = 1\n");
  EXPECT_THAT(codes(findings),
              ElementsAre("unknown-key", "wrong-type", "unknown-key", "bad-unit", "unknown-key"));
  int line = 0;
  for (const Error& error : findings) {
    EXPECT_GT(error.origin->line, line) << error.message;
    line = error.origin->line;
    EXPECT_EQ(error.kind, ErrorKind::policy);
    EXPECT_EQ(error.origin->file, "p.toml");
    EXPECT_FALSE(error.source_line.empty());
    EXPECT_FALSE(error.hint.empty()) << error.message;
  }
}

struct Mistake {
  std::string_view text;
  std::string_view code;
  int line;
  int column;
  std::string_view message;
  std::string_view hint;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << testing::PrintToString(std::string(mistake.text));
}

class PolicyMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PolicyMistake, IsToldWithPlaceValueAndCure) {
  const Mistake& mistake = GetParam();
  const Findings findings = findings_of(mistake.text);
  ASSERT_THAT(codes(findings), ElementsAre(std::string(mistake.code))) << mistake.text;
  const Error& error = findings.front();
  EXPECT_EQ(error.origin->line, mistake.line) << mistake.text;
  EXPECT_EQ(error.origin->column, mistake.column) << mistake.text;
  EXPECT_THAT(error.message, HasSubstr(std::string(mistake.message)));
  EXPECT_THAT(error.hint, HasSubstr(std::string(mistake.hint)));
  EXPECT_THAT(std::string(mistake.text), HasSubstr(error.source_line));
}

constexpr auto kMistakes = std::to_array<Mistake>({
    // the text itself
    {"a = ", "toml-syntax", 1, 5, "the value is missing", "KEY = VALUE"},
    {"[limits]\nwall_time = 30s", "toml-syntax", 2, 15, "not a value", "quotes"},
    {"[limits]\ncpus = 1\ncpus = 2", "duplicate-key", 3, 8,
     "\"cpus\" is set twice: first in line 2", "remove"},
    {"[limits]\n[limits]", "duplicate-key", 2, 1, "\"limits\" is set twice: first in line 1",
     "one header"},
    {"name = \"\xff\"", "invalid-utf8", 1, 8, "not UTF-8", "UTF-8"},
    {"name = \"abc\nschema = 1", "toml-syntax", 1, 12, "not closed on its line", "end it"},
    {"name = \"a\x01z\"", "toml-syntax", 1, 10, "a control character", "escape"},
    {"[filesystem]\nread = [\"/a\"\n[limits]", "toml-syntax", 3, 1, "the list is not closed", "]"},
    {"limits = { memory = \"1M\"\n", "toml-syntax", 1, 25, "the table is not closed", "}"},
    {"{\"schema\": 1}", "toml-syntax", 1, 1, "JSON", "KEY = VALUE"},
    {"schema: 1", "toml-syntax", 1, 1, "YAML", "KEY = VALUE"},
    {"\x7f"
     "ELF",
     "toml-syntax", 1, 1, "binary", "a TOML file"},
    {"schema = 1\nname = \"\"\"abc\n", "toml-syntax", 2, 15, "the string is not closed", "quotes"},
    {"x = [1,\n[limits]\n", "toml-syntax", 2, 2, "the list is not closed: it begins in line 1",
     "]"},
    {"\"name\" = 'a'\nname = 'b'", "duplicate-key", 2, 8, "first in line 1", "remove"},
    {"[{\"a\": 1}]", "toml-syntax", 1, 1, "JSON", "KEY = VALUE"},
    {"- schema\n", "toml-syntax", 1, 1, "YAML", "KEY = VALUE"},
    {"#!/bin/sh\necho hi\n", "toml-syntax", 1, 1, "script", "KEY = VALUE"},
    {"PK\x03\x04", "toml-syntax", 1, 1, "binary", "a TOML file"},
    {"\xff\xfe"
     "s",
     "toml-syntax", 1, 1, "UTF-16", "UTF-8"},
    {"schema = 1 name = 'a'", "toml-syntax", 1, 12, "text after the end", "line of its own"},
    {"name = \"\\q\"", "toml-syntax", 1, 10, "unknown escape", "backslash"},
    {"locked = tru", "toml-syntax", 1, 13, "not a value", "true or false"},
    {"[]", "toml-syntax", 1, 2, "names no table", "[limits]"},
    {"schema 1", "toml-syntax", 1, 8, "expected '='", "KEY = VALUE"},
    {"[limits]\nmemory = 2024-01-01", "wrong-type", 2, 10, "expected a size, got a date or time",
     "write memory = \"512M\""},
    // keys
    {"memroy = 1", "unknown-key", 1, 1, "unknown key \"memroy\"",
     "did you mean \"limits.memory\"?"},
    {"[limits]\n  memroy = \"1G\"", "unknown-key", 2, 3, "\"limits.memroy\"",
     "did you mean \"memory\"?"},
    {"[limits]\nxyzzy = 1", "unknown-key", 2, 1, "\"limits.xyzzy\"", "wall_time, cpu_time"},
    {"[netwrk]\nmode = \"none\"", "unknown-key", 1, 2, "\"netwrk\"", "did you mean \"network\"?"},
    {"limits = 5", "wrong-type", 1, 10, "limits is a table, not an integer", "wall_time"},
    {"schema = 2", "unsupported-schema", 1, 10, "schema 2", "schema = 1"},
    {"schema = \"1\"", "unsupported-schema", 1, 10, "schema \"1\"", "schema = 1"},
    {"extends = 5", "wrong-type", 1, 11, "extends: 5", "extends = \"default\""},
    // scalars
    {"locked = \"true\"", "wrong-type", 1, 10, "locked: \"true\" is a string, not true or false",
     "write locked = true"},
    {"name = 5", "wrong-type", 1, 8, "name: 5 is an integer, not a string", "write name ="},
    {"[limits]\nmemory = 512", "wrong-type", 2, 10, "limits.memory: 512 is an integer, not a size",
     "write memory = \"512M\""},
    {"[limits]\nmemory = \"512MB\"", "bad-unit", 2, 10, "\"512MB\" is not a size",
     "write memory = \"512M\"; the units are B, K, M, G, T"},
    {"[limits]\nmemory = \"1 gib\"", "bad-unit", 2, 10, "\"1 gib\"", "write memory = \"1G\""},
    {"[limits]\nmemory = \"lots\"", "bad-unit", 2, 10, "\"lots\"", "write memory = \"512M\""},
    {"[limits]\nmemory = \"1K\"", "out-of-range", 2, 10, "\"1K\" is not from 1M to 1024T",
     "write memory = \"1M\""},
    {"[limits]\nmemory = \"99999999999999999999G\"", "out-of-range", 2, 10,
     "is not from 1M to 1024T", "write memory = \"1024T\""},
    {"[limits]\nwall_time = 30", "wrong-type", 2, 13, "30 is an integer, not a duration",
     "write wall_time = \"30s\""},
    {"[limits]\nwall_time = \"5 minutes\"", "bad-unit", 2, 13, "\"5 minutes\" is not a duration",
     "write wall_time = \"5m\""},
    {"[limits]\nwall_time = \"1d\"", "bad-unit", 2, 13, "\"1d\"", "write wall_time = \"24h\""},
    {"[limits]\nwall_time = \"0s\"", "out-of-range", 2, 13, "from 1ms to 8760h",
     "write wall_time = \"1ms\""},
    {"[limits]\ncpus = \"two\"", "wrong-type", 2, 8, "\"two\" is a string, not a number",
     "write cpus = 1.5"},
    {"[limits]\ncpus = nan", "out-of-range", 2, 8, "nan is not from 0.01 to 4096", "write cpus"},
    {"[limits]\ncpus = inf", "out-of-range", 2, 8, "inf", "write cpus"},
    {"[limits]\ncpus = 0", "out-of-range", 2, 8, "0 is not from 0.01", "write cpus = 0.01"},
    {"[limits]\nprocesses = \"128\"", "wrong-type", 2, 13, "\"128\" is a string, not an integer",
     "write processes = 128"},
    {"[limits]\nprocesses = -1", "out-of-range", 2, 13, "-1 is not from 1 to",
     "write processes = 1"},
    {"[limits]\nprocesses = 1.5", "wrong-type", 2, 13, "1.5 is a number, not an integer",
     "write processes"},
    {"[filesystem.outputs]\nmax_files = -1", "out-of-range", 2, 13, "-1 is negative",
     "max_files = 0"},
    {"[session]\nidle = \"0s\"", "out-of-range", 2, 8, "from 1ms to 8760h", "write idle = \"1ms\""},
    {"[session]\ncalls = 257", "out-of-range", 2, 9, "from 1 to 256", "write calls = 256"},
    {"[session]\ncontexts = 65", "out-of-range", 2, 12, "from 0 to 64", "write contexts = 64"},
    {"[session]\ncpu_time = 60", "wrong-type", 2, 12, "60 is an integer, not a duration",
     "write cpu_time = \"1m\""},
    {"[limits]\ndisk = \"0B\"", "out-of-range", 2, 8, "from 64K", "write disk = \"64K\""},
    {"[network]\nmode = \"allowlist\"", "unknown-word", 2, 8,
     "\"allowlist\" is not one of \"none\", \"allow-list\", \"host\"",
     "did you mean \"allow-list\"?"},
    {"[network]\nmode = false", "wrong-type", 2, 8, "false is a boolean, not a word",
     "write mode = \"allow-list\"; allow ="},
    {"[network]\nmode = \"on\"", "unknown-word", 2, 8, "\"on\" is not one of",
     "\"host\" is the host's network"},
    {"[network]\nmode = 1979-05-27", "wrong-type", 2, 8, "a date", "\"none\" shuts it off"},
    {"name = \"a\\u0000b\"", "nul-in-text", 1, 8, "has a NUL", "kernel"},
    // lists
    {"[filesystem]\nread = \"/srv\"", "wrong-type", 2, 8,
     "\"/srv\" is a string, not a list of paths", "write read = [\"/srv\"]"},
    {"[filesystem]\nread = [5]", "wrong-type", 2, 9, "5 is an integer, not a string", "quotes"},
    {"[filesystem]\nread = { replac = [] }", "wrong-type", 2, 8, "{…} is a table", "write read"},
    {"[filesystem]\nread = { replace = [], more = 1 }", "unknown-key", 2, 24,
     "filesystem.read.more", "replace"},
    {"[environment]\npass = [\"A=B\"]", "bad-variable", 2, 9, "\"A=B\" is not the name",
     "environment.set"},
    {"[environment]\npass = [\"\"]", "empty-text", 2, 9, "empty value", ""},
    {"[environment]\nuser = \"root\"", "bad-user", 2, 8, "\"root\" can't be the name",
     "not root or nobody"},
    {"[filesystem]\nprivate = [\"data\"]", "bad-path", 2, 12, "\"data\" is not an absolute path",
     "/data"},
    {"[interpreters]\nallow = [\"python3 -c\"]", "bad-command", 2, 10, "\"python3 -c\"",
     "one name"},
    {"[syscalls]\nallow = [\"Ptrace\"]", "bad-call-name", 2, 10, "\"Ptrace\"", "@debug"},
    {"[syscalls]\ndeny = [\"@\"]", "bad-call-name", 2, 9, "\"@\"", "@debug"},
    {"[network]\nallow = [\"https://example.com\"]", "bad-destination", 2, 10, "is a URL",
     "\"example.com:443\""},
    {"[network]\nallow = [\"example.com:70000\"]", "bad-destination", 2, 10, "not a port number",
     "8000-8100"},
    {"[network]\nallow = [\"exa mple.com:1\"]", "bad-destination", 2, 10, "has a blank",
     "HOST:PORT"},
    {"[network]\nallow = [\"10.0.0.0/33:1\"]", "bad-destination", 2, 10, "is not a prefix length",
     "\"10.0.0.0/8:443\""},
    {"[network]\nallow = [\"[::1:443\"]", "bad-destination", 2, 10, "closing bracket", "HOST:PORT"},
    {"[network]\nallow = [\"a.*.com:443\"]", "bad-destination", 2, 10, "has a *",
     "\"*.example.org:443\""},
    {"[network]\nallow = [\"example.com:53\"]", "bad-destination", 2, 10, "port 53",
     "without a rule"},
    {"[network]\npublish = [\"0.0.0.0:80:80\"]", "bad-publication", 2, 12, "loopback",
     "127.0.0.1:8080:80"},
    {"[filesystem.outputs]\ncollect = [\"../x\"]", "bad-pattern", 2, 12, "leaves the workspace",
     "out/**"},
    {"[filesystem]\ndeny = [\"secret.pem\"]", "bad-pattern", 2, 9, "every file of that name",
     "\"**/secret.pem\""},
    {"[filesystem]\ndeny = [\"**/\"]", "bad-pattern", 2, 9, "names nothing", "**/.env"},
    // paths and grants
    {"[filesystem]\nread = [\"$HOME/x\"]", "bad-path", 2, 9, "variables are not expanded", "~"},
    {"[filesystem]\nread = [\"~bob/x\"]", "bad-path", 2, 9, "another user", "write the path out"},
    {"[filesystem]\nread = [\"/\"]", "forbidden-grant", 2, 9, "\"/\" can't be granted",
     "directories that are needed"},
    {"[filesystem]\nwrite = [\"/home/../proc/self\"]", "forbidden-grant", 2, 10,
     "\"/proc/self\" can't be granted", "its own /proc"},
    {"[filesystem]\nread = [\"/sys\"]", "forbidden-grant", 2, 9, "\"/sys\"", "no /sys"},
    {"[filesystem]\nread = [\"/dev/sda\"]", "forbidden-grant", 2, 9, "\"/dev/sda\"",
     "its own /dev"},
    {"[filesystem]\nread = [{ source = \"/srv\", target = \"/dev\" }]", "forbidden-grant", 2, 37,
     "\"/dev\"", "its own /dev"},
    {"[filesystem]\nread = [{ source = \"/srv\", target = \"x\" }]", "bad-path", 2, 37,
     "target \"x\" is not absolute", "\"/data\""},
    {"[filesystem]\nread = [{ target = \"/x\" }]", "missing-key", 2, 9, "without source",
     "source ="},
    {"[filesystem]\nread = [{ source = \"/x\", optional = 1 }]", "wrong-type", 2, 37,
     "optional = 1", "optional = true"},
    {"[filesystem]\nwrite = [{ source = \"/x\", special = \"yes\" }]", "wrong-type", 2, 37,
     "special = \"yes\"", "special = true"},
    {"[filesystem]\nread = [{ source = \"/x\", special = true }]", "wrong-type", 2, 36,
     "no meaning in filesystem.read", "filesystem.write"},
    {"[filesystem]\nread = [{ source = \"/x\", sorce = \"/y\" }]", "unknown-key", 2, 26,
     "filesystem.read.sorce", "did you mean \"source\"?"},
    {"[filesystem]\nsystem = \"/\"", "forbidden-grant", 2, 10, "\"/\" can't be granted", ""},
    {"[filesystem.workspace]\nsource = \"~bob\"", "bad-path", 2, 10, "another user", ""},
    // tables
    {"[environment]\nset = [\"A=B\"]", "wrong-type", 2, 7, "is a list, not a table of strings",
     "{ NAME = \"value\" }"},
    {"[environment.set]\nA = 5", "wrong-type", 2, 5, "5 is an integer, not a string", "quotes"},
    {"[environment.set]\n\"A B\" = \"x\"", "bad-variable", 2, 1, "\"A B\"", "letters"},
    {"[environment.set]\nA = \"x\\u0000\"", "nul-in-text", 2, 5, "NUL", ""},
    {"[interpreters.extensions]\npy = \"python3\"", "wrong-type", 2, 6,
     "not a list of program names", "write py = [\"python3\"]"},
    {"[interpreters.extensions]\npy = []", "wrong-type", 2, 6, "not a list of program names",
     "python3"},
    {"[interpreters.extensions]\n\".py\" = [\"python3\"]", "bad-extension", 2, 1, "\".py\"",
     "without the dot"},
    // rules
    {"[syscalls]\nrule = [5]", "wrong-type", 2, 9, "a rule is a table", "[[syscalls.rule]]"},
    {"[[syscalls.rule]]\naction = \"deny\"", "missing-key", 1, 1, "without name", "name = "},
    {"[[syscalls.rule]]\nname = \"x\"", "missing-key", 1, 1, "without action", "\"deny\""},
    {"[[syscalls.rule]]\nname = \"@debug\"\naction = \"deny\"", "bad-call-name", 2, 8, "is a group",
     "syscalls.deny"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"alow\"", "unknown-word", 3, 10,
     "action = \"alow\"", "did you mean \"allow\"?"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nreason = 1", "wrong-type", 4, 10,
     "reason = 1", "reason"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhy = \"\"", "unknown-key", 4, 1,
     "syscalls.rule.why", "reason"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = 1", "wrong-type", 4, 8,
     "when is a table", "arg = 0"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { op = \"eq\", value = 1 }",
     "missing-key", 4, 8, "without arg", "arg = 0"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 6, op = \"eq\", value = 1 "
     "}",
     "out-of-range", 4, 16, "arg = 6", "first"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\" }",
     "missing-key", 4, 8, "without value", "value"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\", value = "
     "[1] }",
     "wrong-type", 4, 38, "does not fit", "op = \"in\""},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"in\", value = 1 "
     "}",
     "wrong-type", 4, 38, "does not fit", "a list"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"in\", value = "
     "[] }",
     "wrong-type", 4, 38, "does not fit", "a list"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"masked-eq\", "
     "value = [1] }",
     "wrong-type", 4, 45, "a mask and a value", ""},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\", value = "
     "\"AF_UNX\" }",
     "unknown-symbol", 4, 38, "\"AF_UNX\"", "did you mean \"AF_UNIX\"?"},
});
INSTANTIATE_TEST_SUITE_P(Each, PolicyMistake, testing::ValuesIn(kMistakes));

TEST(PolicyMistakes, CuresThatAreTomlParse) {
  for (const Mistake& mistake : kMistakes) {
    for (const Error& error : findings_of(mistake.text)) {
      const bool simple =
          error.code == "wrong-type" || error.code == "bad-unit" || error.code == "out-of-range";
      if (!simple || !error.hint.starts_with("write ") ||
          error.message.find("rule") != std::string::npos)
        continue;
      std::string line = error.hint.substr(6, error.hint.find(';') - 6);
      if (!error.message.starts_with("limits.")) continue;
      EXPECT_TRUE(parse_text("[limits]\n" + line, "p.toml", plain_context())) << line;
    }
  }
}

}  // namespace
}  // namespace sbx::policy
