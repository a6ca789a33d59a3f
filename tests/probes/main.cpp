#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe.hpp"

namespace probe {

int worked() {
  std::puts("worked");
  return kWorked;
}

int refused(int error) {
  std::printf("refused %s\n", strerrorname_np(error));
  return kRefused;
}

int answer(long result) {
  return result == -1 ? refused() : worked();
}

int unasked(const char* why) {
  std::fprintf(stderr, "probe: %s: %s\n", why, strerror(errno));
  return kUnasked;
}

long number(const char* text) {
  return std::strtol(text, nullptr, 0);
}

}  // namespace probe

int main(int argc, char** argv) {
  using namespace probe;
  const Table* tables[] = {&kProcessProbes, &kFileProbes,   &kSocketProbes, &kCallProbes,
                           &kEndingProbes,  &kBudgetProbes, &kMemoryProbes, &kDiskProbes};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const Table* table : tables) {
    for (std::size_t i = 0; i < table->count; ++i) {
      const Probe& candidate = table->probes[i];
      if (argc < 2) std::printf("%s %s\n", candidate.name, candidate.arguments);
      if (argc >= 2 && std::strcmp(candidate.name, argv[1]) == 0) {
        if (argc - 2 < candidate.least_arguments) {
          std::fprintf(stderr, "usage: probe %s %s\n", candidate.name, candidate.arguments);
          return kUnasked;
        }
        return candidate.ask(argv + 2);
      }
    }
  }
  if (argc >= 2) std::fprintf(stderr, "probe: no probe is called %s\n", argv[1]);
  return kUnasked;
}
