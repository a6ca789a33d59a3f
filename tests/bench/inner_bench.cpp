// The inner parts of a start and of a record, and how their cost grows: `cmake --build
// build/release --target inner-bench`.
#include <benchmark/benchmark.h>

#include "network/dns_message.hpp"
#include "policy/network_match.hpp"
#include "record/record.hpp"
#include "start.hpp"

namespace sbx::bench {
namespace {

void load_policy(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load());
}
BENCHMARK(load_policy);

void compile_filter(benchmark::State& state) {
  const policy::Policy policy = load();
  for (auto _ : state) benchmark::DoNotOptimize(plan::compile_filter(policy.syscalls, {}));
}
BENCHMARK(compile_filter);

void make_plan(benchmark::State& state) {
  const host::CannedHost canned;
  const policy::Policy policy = load();
  for (auto _ : state) benchmark::DoNotOptimize(decide(policy, canned.host));
}
BENCHMARK(make_plan);

void whole_start(benchmark::State& state) {
  const host::CannedHost canned;
  for (auto _ : state) benchmark::DoNotOptimize(start(canned.host));
}
BENCHMARK(whole_start);

void read_dns_query(benchmark::State& state) {
  network::dns::Bytes message{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  for (const std::string label : {"www", "example", "org"}) {
    message.push_back(static_cast<std::uint8_t>(label.size()));
    message.insert(message.end(), label.begin(), label.end());
  }
  for (const std::uint8_t byte : {0, 0, 1, 0, 1}) message.push_back(byte);
  for (auto _ : state) benchmark::DoNotOptimize(network::dns::parse_query(message));
}
BENCHMARK(read_dns_query);

void write_record(benchmark::State& state) {
  const host::CannedHost canned;
  const policy::Policy policy = load();
  const plan::Plan plan = decide(policy, canned.host);
  Outcome outcome;
  for (int i = 0; i < state.range(0); ++i) {
    outcome.denials.push_back({.kind = DenialKind::syscall,
                               .what = "ptrace" + std::to_string(i),
                               .count = 1,
                               .process = "python3",
                               .rule = "not in syscalls.base",
                               .allow_with = "syscalls.allow = [\"ptrace\"]",
                               .risk = {}});
  }
  const run::Request request{.id = "r_0123456789abcdef"};
  const run::Answer answer{.policy = policy, .plan = plan, .outcome = outcome};
  for (auto _ : state) benchmark::DoNotOptimize(record::record_text(request, answer));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(write_record)->RangeMultiplier(10)->Range(1, 10'000)->Complexity();

/// A start with `count` entries in one list, each made by `entry`.
template <class Entry>
void grow(benchmark::State& state, const char* key, Entry entry) {
  host::CannedHost canned;
  std::string list = "[";
  for (int i = 0; i < state.range(0); ++i) list += entry(canned, i) + ",";
  list += "]";
  const std::vector<policy::Override> overrides{{.key = key, .toml = list, .option = "--set"}};
  for (auto _ : state) {
    const policy::Policy policy = load(overrides);
    const plan::Plan plan = decide(policy, canned.host);
    const spawn::Block packed = pack(plan);
    benchmark::DoNotOptimize(packed.bytes().data());
  }
  state.SetComplexityN(state.range(0));
}

void grants(benchmark::State& state) {
  grow(state, "filesystem.read", [](host::CannedHost& host, int i) {
    const std::string path = "/srv/data/" + std::to_string(i);
    host.files->file(path);
    return "\"" + path + "\"";
  });
}
BENCHMARK(grants)->RangeMultiplier(10)->Range(1, 10'000)->Complexity()->Unit(
    benchmark::kMicrosecond);

void denies(benchmark::State& state) {
  grow(state, "filesystem.deny",
       [](host::CannedHost&, int i) { return "\"/srv/secret/" + std::to_string(i) + "\""; });
}
BENCHMARK(denies)->RangeMultiplier(10)->Range(1, 10'000)->Complexity()->Unit(
    benchmark::kMicrosecond);

void network_rules(benchmark::State& state) {
  grow(state, "network.allow", [](host::CannedHost&, int i) {
    return "\"host" + std::to_string(i) + ".example.org:443\"";
  });
}
BENCHMARK(network_rules)
    ->RangeMultiplier(10)
    ->Range(1, 10'000)
    ->Complexity()
    ->Unit(benchmark::kMicrosecond);

void variables(benchmark::State& state) {
  grow(state, "environment.pass",
       [](host::CannedHost&, int i) { return "\"NAME_" + std::to_string(i) + "\""; });
}
BENCHMARK(variables)->RangeMultiplier(10)->Range(1, 10'000)->Complexity()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace sbx::bench

BENCHMARK_MAIN();
