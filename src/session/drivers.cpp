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
extern const std::string_view k_bash_driver;

namespace {

const std::vector<Driver>& drivers() {
  static const std::vector<Driver> all = {
      {.language = "python",
       .extensions = {".py"},
       .text = k_python_driver,
       .unheard_signal = 47,  // UNHEARD of the driver
       .inspects = true,
       .waits = true,
       .tells_changes = true,
       .from_file = true,
       .arguments = {"-u", "-X", "utf8", "-c",
                     "first,*parts,last=open(5,encoding='utf-8').read().split('\f');"
                     "exec(compile(first+last,'<sbx>','exec'),"
                     "{'__name__':'__sbx__','parts_put_off':parts})"}},
      {.language = "javascript",
       .extensions = {".js"},
       .text = k_javascript_driver,
       .inspects = true,
       .waits = true,
       .tells_changes = true,
       .arguments = {"-e"}},
      {.language = "r",
       .extensions = {".R", ".r"},
       .text = k_r_driver,
       .inspects = true,
       .waits = true,
       .tells_changes = true,
       .from_file = true,
       .arguments = {"--vanilla", "/proc/self/fd/5"}},
      {.language = "bash",
       .extensions = {".sh", ".bash"},
       .text = k_bash_driver,
       .inspects = true,
       .from_file = true,
       .reads_plain = true,
       // The words of an interactive bash about its terminal are for nobody; descriptor 6 keeps its
       // standard error.
       .arguments = {
           "-c",
           "PROMPT_COMMAND='. /proc/self/fd/5; eval \"$PROMPT_COMMAND\"' exec -a bash \"$BASH\" "
           "--norc --noprofile --noediting +m +o history -i 6>&2 2>/dev/null"}}};
  return all;
}

}  // namespace

Result<const Driver*> find_driver(std::string_view language) {
  const plan::Language* const known = plan::language(language);
  if (known == nullptr)
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "unknown-language",
                      .message = "--lang does not know \"" + std::string(language) + "\"",
                      .hint = "it keeps state in " + languages_of_cells()});
  const auto found = std::ranges::find(drivers(), known->name, &Driver::language);
  if (found != drivers().end()) return &*found;
  return fail(Error{
      .kind = ErrorKind::usage,
      .code = "no-context-language",
      .message = "no interpreter keeps its state between cells in " + std::string(known->name),
      .hint = "it keeps state in " + languages_of_cells() + "; sbx session exec NAME --lang " +
              std::string(known->name) + " - runs a program in the session"});
}

const Driver* driver_of_script(std::string_view name) {
  for (const Driver& driver : drivers())
    for (const std::string_view extension : driver.extensions)
      if (name.ends_with(extension)) return &driver;
  return nullptr;
}

std::string languages_of_cells() {
  std::string names;
  for (const Driver& driver : drivers()) {
    if (!names.empty()) names += &driver == &drivers().back() ? " and " : ", ";
    names += driver.language;
  }
  return names;
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
