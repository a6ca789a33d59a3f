#include <gtest/gtest.h>
// rapidcheck/gtest.h uses what gtest.h declares.
#include <rapidcheck/gtest.h>

#include "policy/apply.hpp"
#include "policy/keys.hpp"
#include "policy/narrowing.hpp"
#include "policy/network_match.hpp"
#include "policy/network_rules.hpp"
#include "policy/write.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

/// Valid values for an entry; few, so that layers have some in common.
std::vector<std::string> pool(const Key& key) {
  switch (key.entry) {
    case Entry::any:
      return {"",         "plain",    "with \"quotes\" and \\", "two\nlines\ttab", "é ü ✓",
              "\x01\x7f", "'''\"\"\""};
    case Entry::command:
      return {"python3", "node", "a-b", "/opt/x"};
    case Entry::variable:
      return {"A", "B_2", "_C", "TZ", "unset"};
    case Entry::user:
      return {"user", "me_2", "a-b"};
    case Entry::call:
      return {"read", "clone3", "@debug", "@process-spawn"};
    case Entry::destination:
      return {"a.b.org:443",     "*.b.org:443",       "a.b.org:80,443", "10.0.0.0/8:1-9",
              "10.1.0.0/16:2-3", "udp://[fd00::1]:5", "c-d.org:*",      "c-d.org:80"};
    case Entry::publication:
      return {"127.0.0.1:80:80", "127.0.0.1:8080:80"};
    case Entry::path:
      return {"/srv", "/srv/a b", "/x/\"y\"", "/é", "/a/\n"};
    case Entry::inside:
      return {"/data", "/srv/a b", "/x/\"y\""};
    case Entry::system:
      return {"host", "/srv/root"};
    case Entry::source:
      return {".", "..", "a/b", "/abs"};
    case Entry::hidden:
      return {"**/.env", "**/a/**", "/home/me/.ssh"};
    case Entry::collected:
      return {"*.png", "out/**", "a b"};
  }
  return {};
}

rc::Gen<std::string> text_of(const Key& key) {
  return rc::gen::elementOf(pool(key));
}

rc::Gen<SyscallRule> random_rule() {
  return rc::gen::exec([] {
    SyscallRule rule;
    rule.name = *rc::gen::element<std::string>("socket", "clone", "ioctl");
    rule.action = *rc::gen::element(RuleAction::allow, RuleAction::deny);
    rule.reason = *rc::gen::element<std::string>("", "because \"so\"");
    rule.has_condition = *rc::gen::arbitrary<bool>();
    if (!rule.has_condition) return rule;
    rule.argument = *rc::gen::inRange(0, 6);
    rule.op = *rc::gen::element(RuleOperator::eq, RuleOperator::lt, RuleOperator::in,
                                RuleOperator::masked_eq);
    const std::size_t count = rule.op == RuleOperator::in ? *rc::gen::inRange<std::size_t>(1, 4)
                              : rule.op == RuleOperator::masked_eq ? 2
                                                                   : 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (*rc::gen::arbitrary<bool>()) {
        rule.values.push_back(2);
        rule.symbols.emplace_back("AF_INET");
      } else {
        rule.values.push_back(*rc::gen::element<std::uint64_t>(0, 7, ~0ULL, 1ULL << 63));
        rule.symbols.push_back(std::to_string(static_cast<std::int64_t>(rule.values.back())));
      }
    }
    return rule;
  });
}

rc::Gen<PathGrant> random_grant(const Key& key) {
  return rc::gen::exec([&key] {
    return PathGrant{.source = *text_of(key),
                     .target = *rc::gen::element<std::string>("", "/data", "/in side"),
                     .optional = *rc::gen::arbitrary<bool>(),
                     .special = key.name == "filesystem.write" && *rc::gen::arbitrary<bool>()};
  });
}

/// A few different entries.
template <class T>
SourcedList<T> random_list(const rc::Gen<T>& entry) {
  SourcedList<T> list;
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    T value = *entry;
    const auto same = [&](const Sourced<T>& there) {
      if constexpr (std::is_same_v<T, PathGrant>)
        return there.value.source == value.source && there.value.target == value.target;
      else
        return there.value == value;
    };
    if (std::ranges::none_of(list, same)) list.push_back({std::move(value), {}});
  }
  return list;
}

struct Randomize {
  const Key& key;

  void operator()(std::monostate) const {}
  void operator()(Sourced<bool>* at) const { at->value = *rc::gen::arbitrary<bool>(); }
  void operator()(Sourced<std::uint64_t>* at) const {
    // "1..256": the sessions' counts end before others begin to differ.
    const auto dots = key.accepts.find("..");
    const std::uint64_t least = std::stoull(std::string(key.accepts.substr(0, dots)));
    const std::uint64_t most = std::stoull(std::string(key.accepts.substr(dots + 2)));
    at->value = *rc::gen::inRange(least, std::min<std::uint64_t>(most, least + 1000) + 1);
  }
  void operator()(Sourced<double>* at) const { at->value = *rc::gen::inRange(1, 400'000) / 100.0; }
  void operator()(Sourced<Bytes>* at) const {
    const auto most = parse_bytes(key.accepts.substr(key.accepts.find("..") + 2));
    at->value = Bytes{*rc::gen::inRange<std::uint64_t>(
        1 << 20, std::min(most.value_or(Bytes{1ULL << 40}).count, std::uint64_t{1} << 40) + 1)};
  }
  void operator()(Sourced<Milliseconds>* at) const {
    const bool none = key.accepts.starts_with("0s") && *rc::gen::inRange(0, 4) == 0;
    at->value = Milliseconds{none ? 0 : *rc::gen::inRange(1, 3'600'000)};
  }
  void operator()(Sourced<std::string>* at) const { at->value = *text_of(key); }
  void operator()(Choice at) const {
    *at.value = *rc::gen::inRange<unsigned char>(0, static_cast<unsigned char>(words(key).size()));
  }
  void operator()(SourcedList<std::string>* at) const {
    *at = random_list<std::string>(text_of(key));
  }
  void operator()(SourcedList<PathGrant>* at) const {
    *at = random_list<PathGrant>(random_grant(key));
  }
  void operator()(SourcedList<SyscallRule>* at) const {
    *at = random_list<SyscallRule>(random_rule());
  }
  void operator()(TextTable* at) const {
    for (const char* name : {"A", "B", "unset"}) {
      if (*rc::gen::arbitrary<bool>())
        (*at)[name].value = *rc::gen::element<std::string>("", "x", "\"\n");
    }
  }
  void operator()(ListTable* at) const {
    for (const char* name : {"py", "js", "zig"}) {
      at->erase(name);
      if (*rc::gen::arbitrary<bool>())
        (*at)[name].value = {*rc::gen::element<std::string>("a", "b")};
    }
  }
};

rc::Gen<Policy> random_policy() {
  return rc::gen::exec([] {
    Policy policy = initial_policy();
    for (const Key& key : keys()) std::visit(Randomize{key}, key.slot(policy));
    return policy;
  });
}

TEST(PolicyRoundTrip, EveryBuiltinReadsBackAsItIsWritten) {
  for (const Builtin& one : builtins()) {
    const auto policy = load({{std::string(one.name)}}, {}, plain_context());
    ASSERT_TRUE(policy);
    const std::string text = write(*policy);
    const auto again = parse_text(text, "again.toml", plain_context());
    ASSERT_TRUE(again) << again.error().front().text() << "\n" << text;
    EXPECT_TRUE(same_rules(*policy, *again)) << one.name;
    EXPECT_EQ(write(*again), text);
  }
}

RC_GTEST_PROP(PolicyRoundTrip, RandomPoliciesReadBackAsTheyAreWritten, ()) {
  const Policy policy = *random_policy();
  const std::string text = write(policy);
  const auto again = parse_text(text, "again.toml", plain_context());
  if (!again) RC_FAIL(again.error().front().text() + "\n" + text);
  RC_ASSERT(same_rules(policy, *again));
  RC_ASSERT(write(*again) == text);
}

bool reaches(const Network& network, Transport transport, const std::string& host,
             std::uint16_t port) {
  const auto rules = network_rules(network);
  const auto address = host.contains(':') ? parse_v6(host) : parse_v4(host);
  const PlacedRule* rule = address ? rule_for_address(rules, transport, *address, port)
                                   : rule_for_name(rules, transport, host, port);
  return rule != nullptr;
}

/// Checks destinations within, between and outside of the rules of the pool.
bool reaches_no_more(const Network& less, const Network& more) {
  for (const Transport transport : {Transport::tcp, Transport::udp}) {
    for (const char* host : {"a.b.org", "x.b.org", "x.y.b.org", "b.org", "c-d.org", "a.c-d.org",
                             "10.0.0.1", "10.1.0.1", "11.0.0.1", "fd00::1", "fd00::2", "::2"}) {
      for (const std::uint16_t port :
           std::to_array<std::uint16_t>({1, 2, 3, 4, 5, 9, 10, 53, 80, 443, 65535})) {
        if (reaches(less, transport, host, port) && !reaches(more, transport, host, port))
          return false;
      }
    }
  }
  return true;
}

/// True if `now` allows no more than `before`; written independently of the code under test.
bool allows_no_more(const Policy& before, const Policy& now) {
  const auto subset = [](const auto& less, const auto& more) {
    return std::ranges::all_of(less, [&](const auto& entry) {
      return std::ranges::any_of(more, [&](const auto& there) {
        if constexpr (requires { entry.value.target; })
          return entry.value.source == there.value.source &&
                 entry.value.target == there.value.target &&
                 entry.value.special <= there.value.special;
        else
          return entry.value == there.value;
      });
    });
  };
  const auto same_table = [](const auto& a, const auto& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.value == y.second.value;
    });
  };
  const auto denies = [](const Sourced<SyscallRule>& rule) {
    return rule.value.action == RuleAction::deny;
  };
  SourcedList<SyscallRule> allow_rules;
  std::ranges::remove_copy_if(now.syscalls.rules, std::back_inserter(allow_rules), denies);
  const Filesystem& fs = now.filesystem;
  const Filesystem& fs0 = before.filesystem;
  const bool grants =
      subset(fs.read, fs0.read) && subset(fs.write, fs0.write) && subset(fs.sockets, fs0.sockets) &&
      subset(fs.seed, fs0.seed) && subset(fs.private_, fs0.private_) && subset(fs0.deny, fs.deny) &&
      subset(fs.outputs.collect, fs0.outputs.collect) && fs.system.value == fs0.system.value &&
      fs.workspace.source.value == fs0.workspace.source.value &&
      fs.workspace.mode.value <= fs0.workspace.mode.value &&
      fs.landlock.value >= fs0.landlock.value && fs.scan.value <= fs0.scan.value &&
      fs.outputs.max_bytes.value <= fs0.outputs.max_bytes.value &&
      fs.outputs.max_files.value <= fs0.outputs.max_files.value &&
      fs.outputs.max_depth.value <= fs0.outputs.max_depth.value;
  const bool interpreters = (before.interpreters.allow.empty() ||
                             (!now.interpreters.allow.empty() &&
                              subset(now.interpreters.allow, before.interpreters.allow))) &&
                            now.interpreters.venv.value == before.interpreters.venv.value &&
                            same_table(now.interpreters.extensions, before.interpreters.extensions);
  const bool environment = subset(now.environment.pass, before.environment.pass) &&
                           same_table(now.environment.set, before.environment.set) &&
                           now.environment.user.value == before.environment.user.value;
  const bool calls = now.syscalls.base.value <= before.syscalls.base.value &&
                     subset(now.syscalls.allow, before.syscalls.allow) &&
                     subset(before.syscalls.deny, now.syscalls.deny) &&
                     now.syscalls.denied.value <= before.syscalls.denied.value &&
                     subset(before.syscalls.rules, now.syscalls.rules) &&
                     subset(allow_rules, before.syscalls.rules);
  const bool network = now.network.mode.value <= before.network.mode.value &&
                       reaches_no_more(now.network, before.network) &&
                       now.network.private_.value <= before.network.private_.value &&
                       now.network.match_sni.value >= before.network.match_sni.value &&
                       subset(now.network.publish, before.network.publish) &&
                       now.network.named.value >= before.network.named.value;
  const Limits& l = now.limits;
  const Limits& l0 = before.limits;
  const bool limits =
      l.wall_time.value <= l0.wall_time.value && l.cpu_time.value <= l0.cpu_time.value &&
      l.cpus.value <= l0.cpus.value && l.memory.value <= l0.memory.value &&
      l.processes.value <= l0.processes.value && l.open_files.value <= l0.open_files.value &&
      l.file_size.value <= l0.file_size.value && l.disk.value <= l0.disk.value &&
      l.disk_files.value <= l0.disk_files.value && l.disk_on.value == l0.disk_on.value &&
      l.grace.value <= l0.grace.value;
  const bool output = now.output.stdout_.value <= before.output.stdout_.value &&
                      now.output.stderr_.value <= before.output.stderr_.value &&
                      now.output.passed.value <= before.output.passed.value &&
                      now.output.results.value <= before.output.results.value &&
                      now.output.exceed.value <= before.output.exceed.value;
  const Session& s = now.session;
  const Session& s0 = before.session;
  const auto is_off = [](const Sourced<Milliseconds>& sum) { return sum.value.count() == 0; };
  const bool session =
      s.idle.value <= s0.idle.value && s.lifetime.value <= s0.lifetime.value &&
      s.calls.value <= s0.calls.value && s.contexts.value <= s0.contexts.value &&
      (is_off(s0.cpu_time) || (!is_off(s.cpu_time) && s.cpu_time.value <= s0.cpu_time.value)) &&
      s.log.value <= s0.log.value && s.put_aside.value >= s0.put_aside.value;
  return grants && interpreters && environment && calls && network && limits && output && session &&
         now.enforcement.value <= before.enforcement.value &&
         now.isolation.value <= before.isolation.value && now.locked.value >= before.locked.value;
}

class PolicyProperty : public PolicyDirectory {};

RC_GTEST_FIXTURE_PROP(PolicyProperty, LayerAfterALockIsRefusedOrAllowsNoMore, ()) {
  Policy base = *random_policy();
  base.locked.value = true;
  write_file("work/base.toml", write(base));
  // A few keys at random values: most layers set little, so that some of them narrow.
  Policy later = base;
  const auto changed = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(0, keys().size()));
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < changed.size() && i < 3; ++i) {
    const Key& key = keys()[changed[i]];
    if (key.of_text() || key.is_table()) continue;
    std::visit(Randomize{key}, key.slot(later));
  }
  write_file("work/later.toml", write(later));
  const auto result = load_all({"./base.toml", "./later.toml"});
  const auto before = load_all({"./base.toml"});
  RC_ASSERT(before.has_value());
  RC_CLASSIFY(result.has_value(), "accepted");
  if (result)
    RC_ASSERT(allows_no_more(*before, *result));
  else
    RC_ASSERT(result.error().front().code == "widens-locked");
}

RC_GTEST_PROP(PolicyProperty2, WideningsAreFoundExactlyWhereMoreIsAllowed, ()) {
  const Policy before = *random_policy();
  Policy now = before;
  const Key& key = keys()[*rc::gen::inRange<std::size_t>(0, keys().size())];
  std::visit(Randomize{key}, key.slot(now));
  const bool wider = !widenings({before, {}}, now, {}).empty();
  RC_CLASSIFY(wider, "wider");
  RC_ASSERT(wider == !allows_no_more(before, now));
}

RC_GTEST_PROP(PolicyProperty2, NoTextCrashesTheParser, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "[", "]", "{", "}", "=", ".", ",", "\"", "'", "\"\"\"", "\n", " ", "#", "limits", "memory",
      "\"1G\"", "1", "true", "[[", "]]", "syscalls.rule", "filesystem", "read", "replace", "unset",
      "environment.set", "\xff", "\\", "extends", "\"default\"", "-1e9", "1979-05-27"));
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  const auto policy = parse_text(text, "p.toml", plain_context());
  if (!policy) RC_ASSERT(!policy.error().empty());
}

}  // namespace
}  // namespace sbx::policy
