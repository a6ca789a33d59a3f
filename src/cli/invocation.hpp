#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tell.hpp"
#include "changes/bring_out.hpp"
#include "plan/request.hpp"
#include "policy/load.hpp"
#include "run/variables.hpp"

/// What was typed, and nothing that was looked up: no file is read and no descriptor touched to
/// fill an Invocation.
namespace sbx::cli {

/// How the answer is given.
struct OutputOptions {
  bool json = false;        ///< the record on stdout, the child's output inside it
  std::string report_file;  ///< --report, empty if none
  int report_fd = -1;       ///< --report-fd, -1 if none
  int events_fd = -1;       ///< --events-fd, -1 if none
  bool github = false;      ///< a log that GitHub's runner reads
  bool dry_run = false;
  bool trace_time = false;
  bool quiet = false;
  bool verbose = false;
  Color color = Color::automatic;
};

struct Invocation {
  std::string command;                ///< "run", "policy show", "help"; empty for bare `sbx`
  std::vector<std::string> operands;  ///< of the commands other than run
  bool help = false;
  bool version = false;
  bool effective = false;  ///< policy show --effective
  bool origin = false;     ///< policy show --origin
  std::string format;      ///< policy check --format, empty for people
  std::string name;        ///< policy init --name

  bool die_with_parent = false;
  bool patch = false;  ///< changes diff --patch
  bool all = false;    ///< stop --all

  std::vector<policy::PolicyOperand> policies;
  std::vector<policy::Override> sets;         ///< --set, weaker than the named options
  std::vector<policy::Override> named;        ///< --timeout and its like
  std::vector<policy::Override> allow_hosts;  ///< --allow-host: also turns "none" into "allow-list"
  std::vector<run::VariableSource> variables;
  plan::RunRequest request;
  OutputOptions output;
  changes::BringOutOptions bring_out;
};

}  // namespace sbx::cli
