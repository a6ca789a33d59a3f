#include "amounts.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace probe {

std::size_t mebibytes(const char* text) {
  return static_cast<std::size_t>(number(text)) * kMiB;
}

int refused_for_a_while() {
  const int error = errno;
  usleep(400'000);
  return refused(error);
}

int write_fully(int fd, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = write(fd, block, std::min(size - done, sizeof block));
    if (wrote < 0) return -1;
    done += static_cast<std::size_t>(wrote);
  }
  return 0;
}

int wait_for_children() {
  int bad = 0;
  int status = 0;
  while (wait(&status) > 0)
    if (status != 0) ++bad;
  return bad == 0 ? worked() : refused(ECHILD);
}

}  // namespace probe
