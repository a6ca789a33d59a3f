#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/request.hpp"
#include "policy/load.hpp"

/// What was typed, and nothing that was looked up: no file is read and no descriptor touched to
/// fill an Invocation.
namespace sbx::cli {

enum class Color : std::uint8_t { automatic, always, never };

/// How the answer is given.
struct OutputOptions {
  bool json = false;        ///< the record on stdout, the child's output inside it
  std::string report_file;  ///< --report, empty if none
  int report_fd = -1;       ///< --report-fd, -1 if none
  bool github = false;  ///< a log that GitHub's runner reads
  bool dry_run = false;
  bool trace_time = false;
  bool quiet = false;
  bool verbose = false;
  Color color = Color::automatic;
};

/// What becomes of the private workspace.
struct BringOutOptions {
  std::string folder;  ///< --out, empty if none
  std::vector<std::string> collect;  ///< --collect; none: the policy's patterns
  bool diff = false;
  bool apply = false;
  std::vector<std::string> patterns;  ///< of --apply; none: everything
  bool yes = false;
  std::string keep;  ///< --keep, empty if none
};

/// Where variables of the child come from, in the order typed: later ones win.
struct VariableSource {
  enum class Kind : std::uint8_t { assignment, file, descriptor };
  Kind kind = Kind::assignment;
  std::string text;  ///< NAME=VALUE, the file's name
  int descriptor = -1;
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
  bool patch = false;             ///< changes diff --patch
  bool all = false;               ///< stop --all

  std::vector<policy::PolicyOperand> policies;
  std::vector<policy::Override> sets;         ///< --set, weaker than the named options
  std::vector<policy::Override> named;        ///< --timeout and its like
  std::vector<policy::Override> allow_hosts;  ///< --allow-host: also turns "none" into "allow-list"
  std::vector<VariableSource> variables;
  plan::RunRequest request;
  OutputOptions output;
  BringOutOptions bring_out;
};

}  // namespace sbx::cli
