#pragma once

#include <cerrno>
#include <cstddef>

/// A probe asks the kernel one question and answers with its exit status and one word on stdout:
/// 0 "worked": the thing is possible here; 1 "refused ERRNO": the kernel refused; 2: it could not
/// even be asked. The tests run the same probe inside a sandbox and, as its twin, outside or under
/// a policy that allows it.
namespace probe {

inline constexpr int kWorked = 0;
inline constexpr int kRefused = 1;
inline constexpr int kUnasked = 2;

/// Arguments after the probe's name, ended by a null pointer.
using Arguments = char**;

struct Probe {
  const char* name;
  const char* arguments;  ///< for the usage text
  int least_arguments;
  int (*ask)(Arguments);
};

/// A topic's probes.
struct Table {
  const Probe* probes;
  std::size_t count;
};

extern const Table kProcessProbes;
extern const Table kFileProbes;
extern const Table kSocketProbes;
extern const Table kCallProbes;
extern const Table kEndingProbes;
extern const Table kBudgetProbes;
extern const Table kMemoryProbes;
extern const Table kDiskProbes;

int worked();
int refused(int error = errno);
/// worked() for a result that is not -1, else refused().
int answer(long result);
int unasked(const char* why);
long number(const char* text);

}  // namespace probe
