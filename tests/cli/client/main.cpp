#include <sbx/run.hpp>

#include <cstdio>
#include <string>
#include <variant>

// client SBX: checks runs of each kind through the library. client SBX wait: a run that reads a million bytes and
// then lasts a minute.
int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[2]) == "wait")
    return sbx::run_program(
               {argv[1], {}, {"--", "sh", "-c", "head -c 1000000 >/dev/null; sleep 60"}})
                   .result
               ? 0
               : 6;
  const sbx::RunAnswer exited = sbx::run_program(
      {argv[1], {"--policy", "strict"}, {"--", "sh", "-c", "echo \"outcome\"; exit 7"}});
  if (!exited.result || exited.result->exit_status != 7 || exited.result->success) return 1;
  if (exited.result->status != "exited" ||
      exited.result->record.find("sbx.run/1") == std::string::npos)
    return 2;
  const sbx::RunAnswer over =
      sbx::run_program({argv[1], {"--timeout", "100ms"}, {"--", "sleep", "60"}});
  if (!over.result || over.result->status != "over-budget" || over.result->exit_status != 124)
    return 3;
  const sbx::RunAnswer good = sbx::run_program({argv[1], {}, {"true"}});
  if (!good.result || !good.result->success) return 4;
  const sbx::RunAnswer denied =
      sbx::run_program({argv[1], {"--set", "syscalls.deny=[\"uname\"]"}, {"uname"}});
  if (!denied.result || !denied.result->outcome || denied.result->outcome->denials.size() != 1)
    return 7;
  std::printf("%llu ms, denied: %s\n",
              static_cast<unsigned long long>(denied.result->outcome->usage.wall_ms),
              denied.result->outcome->denials[0].what.c_str());
  if (denied.result->outcome->denials[0].what != "uname") return 8;
  const sbx::Outcome& outcome = *exited.result->outcome;
  if (outcome.out.text != "outcome\n" || std::get<sbx::Exited>(outcome.verdict).code != 7) return 9;
  if (std::get<sbx::OverBudget>(over.result->outcome->verdict).budget != sbx::Budget::wall_time)
    return 10;
  const sbx::RunAnswer wrong = sbx::run_program({argv[1], {"--policy", "nosuch"}, {"true"}});
  if (!wrong.result || wrong.result->outcome || wrong.result->error->code != "unknown-policy")
    return 11;
  const sbx::RunAnswer none = sbx::run_program({"/nonexistent/sbx", {}, {"true"}});
  if (none.result || none.error.errno_value == 0) return 5;
  std::puts("client: good");
  return 0;
}
