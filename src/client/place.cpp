#include "client/place.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/kept.hpp"
#include "host/state.hpp"
#include "record/words.hpp"
#include "session/live_sessions.hpp"

namespace sbx::client {
namespace {

constexpr std::size_t kMostEnded = 10'000;

std::unexpected<Error> refused(const char* code, std::string why) {
  return fail(Error{.kind = ErrorKind::usage, .code = code, .message = std::move(why)});
}

}  // namespace

std::string make_id(char kind) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr std::size_t kLength = 8;
  const std::string bits = random_hex() + random_hex();  // of 5 bits each 4 are used twice over
  std::string id{kind, '-'};
  for (std::size_t i = 0; i < kLength; ++i) {
    const auto value = std::stoul(bits.substr(2 * i, 2), nullptr, 16);
    id += kLetters[value % kLetters.size()];
  }
  return id;
}

// ---- the session ----

Status check_keeping(const host::Host& host) {
  auto store = changes::Store::open_or_make(host::state_directory(host));
  if (store) return {};
  if (store.error().code == "no-state-directory")
    store.error().hint =
        "changes that nobody has applied are kept there: HOME, and XDG_STATE_HOME below it, say "
        "where";
  return fail(std::move(store).error());
}

void Place::prepare(Ready ready) {
  if (has_session()) return ready(true);
  waiting_.push_back(std::move(ready));
  if (waiting_.size() == 1) begin();
}

void Place::begin() {
  starting_ = rules_.session;
  if (starting_.empty())
    starting_ = rules_.prefix + "-" + std::to_string(::getpid()) + "-" + random_hex().substr(0, 4);
  else if (session::Client::connect(host_, starting_))
    return try_to_join();
  // A named one may end and come back, and each of its sets has a name of its own.
  constexpr std::size_t kLongestStart = 50;
  keep_as_.clear();
  if (rules_.keeps_changes)
    keep_as_ = rules_.session.empty()
                   ? starting_
                   : starting_.substr(0, kLongestStart) + "-" + random_hex().substr(0, 4);
  if (!keep_as_.empty())
    if (const Status keeps = check_keeping(host_); !keeps) {
      tell_(record::error_text(keeps.error(), {}));
      return answer_waiting(false);
    }
  const Status begun = starter_.start(loop_, starting_, keep_as_, [this](const auto& started) {
    // Another server may have started the named one meanwhile.
    if (started || (!rules_.session.empty() && started.error().code == "session-exists"))
      return try_to_join();
    tell_(record::error_text(started.error(), {}));
    answer_waiting(false);
  });
  if (!begun) answer_waiting(false);
}

void Place::try_to_join() {
  name_ = starting_;
  const Status held = hold();
  if (!held) tell_(record::error_text(held.error(), {}));
  answer_waiting(held.has_value());
}

void Place::answer_waiting(bool is_there) {
  for (const Ready& each : std::exchange(waiting_, {})) each(is_there);
}

/// Somebody else may have started it.
Status Place::check_joined() const {
  if (rules_.session.empty() || !rules_.accepts) return {};
  auto client = SBX_TRY(connect());
  return rules_.accepts(SBX_TRY(client.ask_soon(protocol::InfoRequest{})));
}

Status Place::hold() {
  SBX_TRY(check_joined());
  UniqueFd life = SBX_TRY(session::connect_to(host_, name_));
  SBX_TRY(
      loop_.watch(life.get(), EPOLLIN | EPOLLRDHUP, [this](std::uint32_t) { session_ended(); }));
  life_ = std::move(life);
  return {};
}

void Place::session_ended() {
  leave();
  for (auto each = contexts_.begin(); each != contexts_.end();) {
    if (each->open == 0)
      forget(each++, "its session is over");
    else
      ++each;
  }
  const auto store = changes::Store::open(host::state_directory(host_));
  const bool is_kept = !keep_as_.empty() && store && store->has(keep_as_);
  replaced_ = Replaced{.kept_as = is_kept ? keep_as_ : ""};
}

std::optional<Place::Replaced> Place::take_replaced() {
  return has_session() ? std::exchange(replaced_, {}) : std::nullopt;
}

Result<session::Client> Place::connect() const {
  return session::Client::connect(host_, name_);
}

void Place::leave() {
  if (!life_.valid()) return;
  loop_.forget(life_.get());
  life_.reset();
}

bool Place::end() {
  if (!has_session()) return true;
  leave();
  if (rules_.session.empty()) {
    const bool kept = keep();
    if (auto client = connect()) (void)client->stop_and_wait();
    return kept;
  }
  for (const Context& each : contexts_)
    if (auto client = connect())
      (void)client->ask_soon(protocol::RestartRequest{.context = {each.name}});
  return true;
}

/// What nobody has applied must not go with the client. The session does the same where this
/// process is killed.
bool Place::keep() {
  auto client = connect();
  if (!client || keep_as_.empty()) return true;
  Task<protocol::KeepRequest> task(std::move(*client), {.set = {keep_as_}, .silent = true});
  const auto kept = task.run();
  if (!kept) {
    tell_(record::error_text(kept.error(), {}));
    return loses_nothing();
  }
  if (!kept->kept) return true;
  const auto& [name, count, bytes, lost] = *kept->kept;
  tell_("sbx: kept " + std::to_string(count) + (count == 1 ? " change" : " changes") +
        ": \"sbx changes diff " + name + "\" shows, \"sbx changes apply " + name + "\" applies " +
        (count == 1 ? "it" : "them") + "\n");
  for (const protocol::LeftFacts& each : lost.value_or(std::vector<protocol::LeftFacts>{}))
    tell_("sbx: not kept: " + printable(each.path) + ": " + printable(each.why) + "\n");
  return !lost || lost->empty();
}

/// Names what ends with a session that could not keep it.
bool Place::loses_nothing() {
  constexpr std::size_t kMostNamed = 20;
  auto client = connect();
  if (!client) return false;
  Task<protocol::ChangesRequest> task(std::move(*client), {.view = protocol::View::json});
  const auto seen = task.run();
  if (seen && seen->changes.empty()) return true;
  std::string names;
  std::size_t count = 0;
  for (const Change& each : seen ? seen->changes : std::vector<Change>())
    if (++count <= kMostNamed) names += (names.empty() ? "" : ", ") + printable(each.path);
  if (count > kMostNamed) names += " and " + std::to_string(count - kMostNamed) + " more";
  tell_("sbx: changes that were not applied are lost" + (names.empty() ? "" : ": " + names) + "\n");
  return false;
}

// ---- contexts ----

Result<Context*> Place::context(const std::string& id, const std::string& language) {
  const auto found = std::ranges::find(contexts_, id, &Context::id);
  const bool is_shared = id.empty() && rules_.shares_contexts;
  if (is_shared) {
    const auto same = std::ranges::find_if(contexts_, [&](const Context& each) {
      return each.language == (language.empty() ? "python" : language);
    });
    if (same != contexts_.end()) {
      ++same->open;
      return &*same;
    }
  }
  if (id.empty()) return fresh(language.empty() ? "python" : language);
  if (found == contexts_.end()) {
    const auto known = ended_.find(id);
    if (known == ended_.end()) return refused("no-such-context", "no context has that id");
    return refused("context-ended", "context " + id + " has ended (" + known->second + ")");
  }
  if (!language.empty() && found->language != language)
    return refused("other-language", "context " + id + " is one of " + found->language);
  ++found->open;
  return &*found;
}

Result<Context*> Place::fresh(const std::string& language) {
  if (rules_.most_contexts == 0)
    return refused("no-contexts", "the policy allows no contexts (session.contexts)");
  if (!make_room())
    return refused("contexts-busy", "all contexts are busy (session.contexts = " +
                                        std::to_string(rules_.most_contexts) + ")");
  return &contexts_.emplace_back(
      Context{.id = make_id('c'), .name = "m" + random_hex(), .language = language, .open = 1});
}

/// The one that is idle longest ends, where the session has no more places.
bool Place::make_room() {
  while (contexts_.size() >= rules_.most_contexts) {
    auto idle = contexts_.end();
    for (auto each = contexts_.begin(); each != contexts_.end(); ++each)
      if (each->open == 0 && (idle == contexts_.end() || each->used < idle->used)) idle = each;
    if (idle == contexts_.end()) return false;
    // Its end must come before the next one begins, so this waits for that.
    if (auto client = connect())
      (void)client->ask_soon(protocol::RestartRequest{.context = {idle->name}});
    forget(idle, "it was idle longest and its place was needed");
  }
  return true;
}

void Place::forget(std::list<Context>::iterator context, const std::string& why) {
  if (ended_.size() >= kMostEnded) ended_.erase(ended_.begin());
  ended_[context->id] = why;
  contexts_.erase(context);
}

void Place::release(Context& context) {
  context.used = sys::now_microseconds();
  if (context.open > 0) --context.open;
  if (!has_session() && context.open == 0) {
    const auto found = std::ranges::find(contexts_, &context, [](Context& each) { return &each; });
    return forget(found, "its session is over");
  }
}

}  // namespace sbx::client
