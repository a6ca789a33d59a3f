// Runs a fuzz target over files and directories of seeds, without a fuzzer.

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/sys.hpp"
#include "fuzz.hpp"

namespace {

std::vector<std::string> files_of(const std::string& path) {
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return {path};
  std::vector<std::string> files;
  while (const dirent* const entry = ::readdir(directory)) {
    if (entry->d_name[0] != '.') files.push_back(path + "/" + entry->d_name);
  }
  ::closedir(directory);
  std::ranges::sort(files);
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::string& file : files_of(argv[i])) {
      const auto content = sbx::sys::read_file(file, std::size_t{1} << 20);
      if (!content) {
        (void)std::fprintf(stderr, "%s\n", content.error().text().c_str());
        return 1;
      }
      (void)std::fprintf(stderr, "%s\n", file.c_str());  // the last line names a seed that crashes
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content->data()),
                             content->size());
      ++count;
    }
  }
  (void)std::printf("%d seeds\n", count);
  return count == 0 ? 1 : 0;
}
