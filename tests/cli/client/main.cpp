#include <sbx/run.hpp>

#include <cstdio>

int main(int, char** argv) {
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
  const sbx::RunAnswer none = sbx::run_program({"/nonexistent/sbx", {}, {"true"}});
  if (none.result || none.error.errno_value == 0) return 5;
  std::puts("client: good");
  return 0;
}
