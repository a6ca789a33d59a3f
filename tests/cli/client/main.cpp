#include <sbx/run.hpp>
#include <sbx/session.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <variant>

namespace {

/// Calls and cells of one session; 0 if all is as it should be.
int use_session(const std::string& program) {
  sbx::SessionAnswer started = sbx::Session::start({.program = program, .name = "from-cpp"});
  if (!started.session || started.session->name() != "from-cpp") return 20;
  const sbx::Session session = std::move(*started.session);
  const sbx::SessionAnswer again = sbx::Session::start({.program = program, .name = "from-cpp"});
  if (again.session || again.error.message.find("exists already") == std::string::npos) return 21;
  const sbx::RunAnswer wrote = session.exec({.command = {"--", "sh", "-c", "echo 42 >/tmp/file"}});
  if (!wrote.result || !wrote.result->success) return 22;
  const sbx::RunAnswer read = session.exec({.command = {"--", "cat", "/tmp/file"}});
  if (!read.result || !read.result->outcome || read.result->outcome->out.text != "42\n") return 23;

  const sbx::CellAnswer set = session.eval({.code = "x = int(open('/tmp/file').read())"});
  if (!set.result || !set.result->success || set.result->state != "new") return 24;
  const sbx::CellAnswer value = session.eval({.code = "print('said')\nx + 1"});
  if (!value.result || value.result->out.text != "said\n" || value.result->values.size() != 1 ||
      value.result->values[0].at("text/plain") != "43")
    return 25;
  const sbx::CellAnswer raised = session.eval({.code = "1 / 0"});
  if (!raised.result || raised.result->success || raised.result->state != "kept" ||
      raised.result->raised->name != "ZeroDivisionError")
    return 26;
  const sbx::CellAnswer wrong = session.eval({.code = "1", .language = "cobol"});
  if (!wrong.result || !wrong.result->error || wrong.result->error->code != "unknown-language")
    return 27;

  const sbx::CommandAnswer calls = session.command("calls");
  if (calls.exit_status != 0 || calls.json.find("\"calls\":[") == std::string::npos) return 28;
  const sbx::CommandAnswer none = session.command("logs", {"99"});
  if (none.exit_status == 0 || none.messages.find("99") == std::string::npos) return 29;
  return 0;
}

/// The session has ended with its object.
bool session_has_ended(const std::string& program) {
  const sbx::RunAnswer late =
      sbx::Session::named("from-cpp", program).exec({.command = {"--", "true"}});
  return late.result && late.result->error && late.result->error->code == "no-such-session";
}

}  // namespace

// client SBX: checks runs of each kind through the library. client SBX wait: a run that reads a
// million bytes and then lasts a minute.
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
  const sbx::RunAnswer unknown = sbx::run_program({argv[1], {"--policy", "nosuch"}, {"true"}});
  if (!unknown.result || unknown.result->outcome || unknown.result->error->code != "unknown-policy")
    return 11;
  const sbx::RunAnswer none = sbx::run_program({"/nonexistent/sbx", {}, {"true"}});
  if (none.result || none.error.errno_value == 0) return 5;
  if (const int wrong = use_session(argv[1]); wrong != 0) return wrong;
  if (!session_has_ended(argv[1])) return 30;
  std::puts("client: good");
  return 0;
}
