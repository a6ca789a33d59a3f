#include "agent/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "session/json.hpp"

namespace sbx::agent {

Result<Log> Log::open(const std::string& path, const Person& person) {
  if (path.empty()) return Log(UniqueFd(), person);
  auto file = sys::open_at(
      AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (!file) {
    file.error().message = "--log: " + file.error().message;
    file.error().hint = "name a file in a directory that is there; it is made if it is not";
    return fail(std::move(file).error());
  }
  struct stat facts{};
  if (::fstat(file->get(), &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & 077U) == 0)
    return Log(std::move(*file), person);
  return fail(Error{
      .kind = ErrorKind::usage,
      .code = "bad-value",
      .message = "--log: '" + printable(path) + "' is not a file that only its owner can read",
      .hint = "chmod 600 it, or name a file that is not there"});
}

void Log::write(const std::string& what, const Json* arguments, const Json& result) {
  if (!file_.valid()) return;
  const Json& content = session::part(result, "content");
  const std::string text = content.empty() ? "" : session::member_or(content.front(), "text", "");
  Json line{{"time", ::time(nullptr)}, {"call", what}};
  if (arguments != nullptr) line["arguments"] = *arguments;
  line["answer"] = text.substr(0, text.find('\n'));
  if (const Json& meta = session::part(result, "_meta"); meta.contains("sbx/record"))
    line["record"] = session::part(meta, "sbx/record");
  append(line);
}

void Log::note(const std::string& words) {
  append({{"time", ::time(nullptr)}, {"call", nullptr}, {"answer", words}});
}

void Log::append(const Json& line) {
  if (!file_.valid()) return;
  if (sys::write_all(file_.get(), dump(line))) return;
  person_.tell("sbx: --log can't be written: no call is logged from here on\n");
  file_.reset();
}

}  // namespace sbx::agent
