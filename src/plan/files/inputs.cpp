#include "plan/files/inputs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/text.hpp"
#include "plan/files/grants.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr mode_t kOwnersAccess = 0600;  // the program may change its copy

// Private to every run, and never granted.
constexpr std::array<std::string_view, 3> kPrivate = {"/tmp", "/var/tmp", "/dev/shm"};

Origin typed() {
  return {.file = "--in", .layer = Layer::command_line};
}

std::unexpected<Error> refuse_input(const std::string& what, std::string why, std::string hint,
                                    int errno_value = 0) {
  return fail({.kind = ErrorKind::usage,
               .code = "bad-input",
               .message = "--in: cannot copy " + what + (why.empty() ? "" : ": ") + std::move(why),
               .errno_value = errno_value,
               .hint = std::move(hint)});
}

std::string in_quotes(const std::string& path) {
  return "'" + path + "'";
}

/// Absolute, on the host.
Result<std::string> source_path(const host::Host& host, const std::string& written) {
  if (written == "~" || written.starts_with("~/")) {
    if (!host.home.empty()) return host.home + written.substr(1);
    return refuse_input(in_quotes(written), "the caller has no home", "write the path out");
  }
  if (!written.starts_with('/') && host.working_directory.empty())
    return refuse_input(in_quotes(written), "the working directory of the caller has no path",
                        "write the path out");
  return joined(host.working_directory.empty() ? "/" : host.working_directory, written);
}

/// Absolute, inside. A trailing slash means: into that directory.
std::string target_path(const Input& input, const std::string& working_directory,
                        const std::string& home) {
  std::string target = input.target;
  if (target == "~" || target.starts_with("~/")) target.replace(0, 1, home);
  const std::string_view last = base_name(target);
  const bool into = last.empty() || last == "." || last == ".." || input.target == "~";
  target = joined(working_directory, target);
  if (into) {
    target += '/';
    target += base_name(normal(joined("/", input.source)));
  }
  return normal(target);
}

class Inputs {
 public:
  Inputs(const policy::Policy& policy, const host::Host& host, const DenyRules& denials,
         const InputPlaces& places)
      : policy_(policy), host_(host), denials_(denials), places_(places) {}

  Status add(const Input& input) {
    const std::string written = SBX_TRY(source_path(host_, input.source));
    const auto real = host_.files->canonical(written);
    if (!real)
      return refuse_input(in_quotes(input.source), {},
                          real.error().errno_value == EACCES
                              ? cure_of_unread(normal(written), real.error())
                              : hint_for(input),
                          real.error().errno_value);
    for (const std::string& name : {written, *real})
      if (const DenyRule* rule = denials_.covers(name))
        return denied_grant("copy '" + input.source + "' in", *rule, typed());
    const host::FileFacts facts = SBX_TRY(host_.files->look(*real));
    SBX_TRY(check_source(input, *real, facts));
    const std::string target = places_.view.settled(
        target_path(input, places_.working_directory, home_of(policy_.environment)));
    SBX_TRY(check_target(input, target));
    auto content = host_.files->read_head(*real, kMostInputBytes - total_ + 1);
    if (!content)
      return refuse_input(in_quotes(input.source), {}, cure_of_unread(*real, content.error()),
                          content.error().errno_value);
    total_ += content->size();
    SBX_TRY(check_total(input));
    Mount step = file_step(std::move(*content), target, (facts.mode & 0777U) | kOwnersAccess);
    step.as<mount::File>()->copied_from = *real;
    step.origin = typed();
    steps_.push_back(std::move(step));
    return {};
  }

  std::vector<Mount> take() { return std::move(steps_); }

 private:
  [[nodiscard]] std::string cure_of_unread(const std::string& path, const Error& error) const {
    return error.errno_value == EACCES ? cure_of_unreadable(host_, path) + ", or leave out --in"
                                       : "leave out --in";
  }

  /// The name may be one that has a colon.
  [[nodiscard]] std::string hint_for(const Input& input) const {
    constexpr const char* kNameFile = "name a file that is there, by its path";
    if (input.target.empty()) return kNameFile;
    const auto whole = source_path(host_, input.source + ":" + input.target);
    if (!whole || !host_.files->canonical(*whole)) return kNameFile;
    return "a colon that belongs to a name is written \\: as in --in " +
           shell_word(input.source + "\\:" + input.target);
  }

  Status check_source(const Input& input, const std::string& real,
                      const host::FileFacts& facts) const {
    const std::string what = in_quotes(input.source);
    if (facts.type == host::FileType::directory)
      return refuse_input(
          what, "it is a directory",
          "--read DIR shows a directory read-only, --workspace DIR:overlay gives the "
          "program a copy of it to work in");
    if (facts.type != host::FileType::regular)
      return refuse_input(what, "it is not a regular file",
                          "standard input takes pipes and the like");
    if (policy_.locked.value && places_.view.inside(real).empty())
      return fail({.kind = ErrorKind::policy,
                   .code = "widens-locked",
                   .message = "--in: the policy is locked at " + policy_.locked.origin.text() +
                              " and does not grant " + what,
                   .origin = typed(),
                   .hint = "a locked policy can only be narrowed: leave this out"});
    return {};
  }

  Status check_total(const Input& input) const {
    const std::uint64_t disk = policy_.limits.disk.value.count;
    if (total_ <= kMostInputBytes && total_ <= disk) return {};
    const bool cap = total_ > kMostInputBytes;
    return fail({.kind = ErrorKind::usage,
                 .code = "input-too-large",
                 .message = "--in: with '" + input.source + "' the files are larger than " +
                            (cap ? "64 MiB together" : "limits.disk = " + to_text(Bytes{disk})),
                 .hint = cap ? "--read FILE shows a file without copying it"
                             : "--disk SIZE gives more room; --read FILE shows a file without "
                               "copying it"});
  }

  Status check_target(const Input& input, const std::string& target) const {
    const std::string what = in_quotes(input.source) + " to '" + target + "'";
    const auto other = std::ranges::find(steps_, target, &Mount::target);
    if (other != steps_.end())
      return refuse_input(what, "'" + other->source() + "' is copied there", "--in FILE:TARGET");
    // A mount is at this path, or leads there.
    for (const Mount& step : places_.steps)
      if (is_within(step.target, target))
        return refuse_input(what, "it is there already", "--in FILE:TARGET names another place");
    const Cover* over = places_.view.over(target);
    if (over == nullptr) return check_private(what, target);
    if (over->live)
      return refuse_input(what, "'" + over->target + "' is a live directory of the host",
                          "copy it there yourself, or choose a target outside of it");
    if (!over->writable)
      return refuse_input(what, "'" + over->target + "' is read-only",
                          "choose a target in the working directory, /tmp or the home, or --read "
                          "FILE:TARGET");
    return over->source.empty() ? Status() : check_free(what, *over, target);
  }

  [[nodiscard]] Status check_private(const std::string& what, const std::string& target) const {
    const auto is_below = [&](std::string_view place) {
      return is_within(target, place) && target != place;
    };
    if (std::ranges::any_of(kPrivate, is_below) || is_below(home_of(policy_.environment)))
      return {};
    return refuse_input(
        what, "the program can't write there",
        "choose a target in the working directory, /tmp or the home, or --read FILE:TARGET");
  }

  /// In a private copy of a directory the name must be free, and no link may lead elsewhere.
  [[nodiscard]] Status check_free(const std::string& what, const Cover& over,
                                  const std::string& target) const {
    const std::string place = over.source + std::string(below(target, over.target));
    if (const auto there = host_.files->look(place))
      return refuse_input(what, "the workspace has something of that name",
                          there->type == host::FileType::directory
                              ? "a slash at the end of the target copies into the directory"
                              : "leave --in out to use what is there, or name another place: --in "
                                "FILE:TARGET");
    if (std::string obstacle = obstacle_on_the_way(host_, place, over.source); !obstacle.empty())
      return refuse_input(what, std::move(obstacle), "choose another target");
    return {};
  }

  const policy::Policy& policy_;
  const host::Host& host_;
  const DenyRules& denials_;
  const InputPlaces& places_;
  std::vector<Mount> steps_;
  std::uint64_t total_ = 0;
};

}  // namespace

Result<std::vector<Mount>> input_steps(const policy::Policy& policy, const host::Host& host,
                                       const std::vector<Input>& inputs, const DenyRules& denials,
                                       const InputPlaces& places) {
  Inputs all(policy, host, denials, places);
  for (const Input& input : inputs) SBX_TRY(all.add(input));
  return all.take();
}

}  // namespace sbx::plan
