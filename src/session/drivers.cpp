#include "session/drivers.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/sys.hpp"
#include "plan/program/languages.hpp"

namespace sbx::session {

// Made while sbx is built: embed_drivers.cmake.
extern const std::string_view k_python_driver;
extern const std::string_view k_javascript_driver;
extern const std::string_view k_r_driver;

namespace {

constexpr const char* kKnown = "it keeps state in python, javascript and r";

const std::vector<Driver>& drivers() {
  static const std::vector<Driver> all = {
      {.language = "python",
       .text = k_python_driver,
       .from_file = true,
       .arguments = {"-u", "-X", "utf8", "-c",
                     "exec(compile(open(5,encoding='utf-8').read(),'<sbx>','exec'),"
                     "{'__name__':'__sbx__'})"}},
      {.language = "javascript",
       .text = k_javascript_driver,
       .repeats_interrupt = true,
       .arguments = {"-e"}},
      {.language = "r",
       .text = k_r_driver,
       .from_file = true,
       .arguments = {"--vanilla", "/proc/self/fd/5"}}};
  return all;
}

}  // namespace

Result<const Driver*> find_driver(std::string_view language) {
  const plan::Language* const known = plan::language(language);
  if (known == nullptr)
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "unknown-language",
                      .message = "--lang does not know \"" + std::string(language) + "\"",
                      .hint = kKnown});
  const auto found = std::ranges::find(drivers(), known->name, &Driver::language);
  if (found != drivers().end()) return &*found;
  return fail(Error{
      .kind = ErrorKind::usage,
      .code = "no-context-language",
      .message = "no interpreter keeps its state between cells in " + std::string(known->name),
      .hint = std::string(kKnown) + "; sbx session exec NAME --lang " + std::string(known->name) +
              " - runs a program in the session"});
}

std::vector<std::string> arguments_of(const Driver& driver) {
  std::vector<std::string> words(driver.arguments.begin(), driver.arguments.end());
  if (!driver.from_file) words.emplace_back(driver.text);
  return words;
}

Result<UniqueFd> file_of(const Driver& driver) {
  if (!driver.from_file) return UniqueFd();
  UniqueFd file(::memfd_create("sbx_driver", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto failed = [] {
    return fail_errno(ErrorKind::host, "cannot-write", "cannot make a file in memory");
  };
  if (!file.valid()) return failed();
  SBX_TRY(sys::write_all(file.get(), driver.text));
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::lseek(file.get(), 0, SEEK_SET) < 0 || ::fcntl(file.get(), F_ADD_SEALS, seals) != 0)
    return failed();
  return file;
}

}  // namespace sbx::session
