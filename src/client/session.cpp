#include "client/session.hpp"

#include <utility>

#include "run/launch.hpp"

namespace sbx::client {

Result<session::Client> Session::connect() const {
  return session::Client::connect(host_, name_);
}

template <class Object, class... Streams>
Result<Object*> Session::begin(std::shared_ptr<Object> object, typename Object::Hooks hooks,
                               Streams... streams) {
  forget_ended();
  Running& running = running_.emplace_back(Running{.object = object});
  // Only then: the hook belongs to the object.
  hooks.ended = [&running, told = std::move(hooks.ended)](auto ended) {
    if (told) told(std::move(ended));
    running.has_ended = true;
  };
  const Status begun = object->attach(loop_, std::move(hooks), streams...);
  if (begun) return object.get();
  running.has_ended = true;
  return fail(begun.error());
}

Result<Cell*> Session::eval(protocol::EvalRequest request, Cell::Hooks hooks) {
  if (request.id.empty()) request.id = run::make_run_id();
  return begin(std::make_shared<Cell>(SBX_TRY(connect()), std::move(request)), std::move(hooks));
}

Result<Call*> Session::call(protocol::CallRequest request, Call::Hooks hooks,
                            std::span<const int> streams) {
  if (request.id.empty()) request.id = run::make_run_id();
  return begin(std::make_shared<Call>(SBX_TRY(connect()), std::move(request)), std::move(hooks),
               streams);
}

Result<Listing*> Session::list(const std::string& path, Listing::Hooks hooks) {
  return begin(std::make_shared<Listing>(SBX_TRY(connect()), path), std::move(hooks));
}

void Session::forget_ended() {
  std::erase_if(running_, [](const Running& each) { return each.has_ended; });
}

Status Session::finish() {
  for (;;) {
    forget_ended();
    if (running_.empty()) return {};
    SBX_TRY(loop_.run_once());
  }
}

Status Session::stop() {
  session::Client connection = SBX_TRY(connect());
  return connection.stop_and_wait();
}

}  // namespace sbx::client
