#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tell.hpp"
#include "changes/bring_out.hpp"
#include "plan/request.hpp"
#include "policy/load.hpp"
#include "run/variables.hpp"

/// Only what was typed: filling an Invocation reads no file and touches no descriptor.
namespace sbx::cli {

/// Form and destination of the answer.
struct OutputOptions {
  bool json = false;        ///< the record on stdout, including the child's output
  std::string report_file;  ///< --report, empty if none
  int report_fd = -1;       ///< --report-fd, -1 if none
  int events_fd = -1;       ///< --events-fd, -1 if none
  bool github = false;      ///< the log is read by GitHub's runner
  bool dry_run = false;
  bool trace_time = false;
  bool quiet = false;
  bool verbose = false;
  Color color = Color::automatic;
};

/// session eval, run --cells.
struct CellOptions {
  std::string context;       ///< --context, empty if none
  std::string results;       ///< --results, a directory; empty if none
  bool stream = false;       ///< --stream
  std::string notebook;      ///< run --cells, empty if none
  bool is_notebook = false;  ///< run --cells was typed, perhaps without its value
  bool keep_going = false;   ///< run --keep-going
  std::vector<std::pair<std::string, std::string>> parameters;  ///< run --parameter: name, value
};

/// mcp.
struct McpOptions {
  bool shares_contexts = false;   ///< --shared-context
  std::size_t max_text = 20'000;  ///< --max-text
  std::string log;                ///< --log, empty if none
  bool allows_apply = false;      ///< --allow-apply
  bool is_structured = false;     ///< --structured
  bool hashes = false;            ///< mcp tools --sha256
};

/// mcp install, remove, check.
struct McpInstallOptions {
  bool for_project = false;  ///< --scope project
  std::string name = "sbx";  ///< --name
  bool replaces_shell = false;
  bool prints = false;                 ///< --print
  std::vector<std::string> passed_on;  ///< what follows "--"
};

/// session get --as, ls --depth, rm -r.
struct FileOptions {
  std::string as;  ///< empty if none
  std::uint64_t offset = 0;
  std::uint64_t limit = 0;  ///< 0: none
  std::uint64_t depth = 1;
  bool recursive = false;
};

struct Invocation {
  std::string command;                ///< "run", "policy show", "help"; empty for bare `sbx`
  std::vector<std::string> operands;  ///< of commands other than run
  bool help = false;
  bool version = false;
  bool effective = false;  ///< policy show --effective
  bool origin = false;     ///< policy show --origin
  std::string format;      ///< policy check --format; empty: for people
  std::string name;        ///< policy init --name

  bool die_with_parent = false;
  bool patch = false;       ///< changes diff --patch
  bool all = false;         ///< stop --all, session stop --all
  bool detach = false;      ///< session exec -d
  bool follow = false;      ///< session logs -f
  bool open_stdin = false;  ///< session exec --stdin open
  bool end = false;         ///< session send --end
  std::string session;      ///< run --session, empty if none
  CellOptions cell;
  McpOptions mcp;
  McpInstallOptions install;
  FileOptions file;

  std::vector<policy::PolicyOperand> policies;
  std::vector<policy::Override> sets;         ///< --set; weaker than the named options
  std::vector<policy::Override> named;        ///< --timeout and other options with a name
  std::vector<policy::Override> allow_hosts;  ///< --allow-host: also turns "none" into "allow-list"
  std::vector<run::VariableSource> variables;
  plan::RunRequest request;
  OutputOptions output;
  changes::BringOutOptions bring_out;
};

}  // namespace sbx::cli
