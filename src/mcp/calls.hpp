#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "agent/facts.hpp"
#include "agent/jobs.hpp"
#include "agent/log.hpp"
#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "client/application.hpp"
#include "client/file_work.hpp"
#include "client/place.hpp"
#include "client/task.hpp"
#include "mcp/message.hpp"
#include "mcp/tools.hpp"
#include "mcp/wire.hpp"

namespace sbx::mcp {

/// Calls of tools, from their request to its answer.
class Calls {
 public:
  Calls(EventLoop& loop, Wire& wire, const agent::Options& options, const agent::Facts& facts,
        client::Starter& starter, agent::Log log);
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// A request of tools/call: answers it, now or later.
  void take(Request request);
  /// Ends the call with this id; one that only waits for a job leaves that alone.
  void cancel(const Json& id);
  /// After each turn of the loop.
  void clean_up() { retired_.clear(); }
  [[nodiscard]] bool are_answered() const { return pending_.empty(); }
  /// Says of what has no answer yet that it gets none.
  void answer_all();
  /// Ends everything, the session too. False: changes are lost, and the operator has heard which.
  [[nodiscard]] bool end();

 private:
  /// What has not been answered.
  struct Pending {
    Request request;
    const Tool* tool = nullptr;
    Json arguments;
    agent::JobPointer job;
    std::shared_ptr<client::FileWork> files;
    std::shared_ptr<client::Changes> changes;
    EventLoop::TimerId wait = EventLoop::kNoTimer;
    EventLoop::TimerId progress = EventLoop::kNoTimer;
  };

  void begin(const std::string& key);
  void begin_inside(const std::string& key, Pending& pending);
  void answer(const std::string& key, Json result);
  void refuse(const std::string& key, const std::string& sentence);
  [[nodiscard]] Pending* find(const std::string& key);
  void forget(const std::string& key);
  void show_progress(const std::string& key, Pending& pending, std::uint64_t began);

  void await(const std::string& key, Pending& pending, const agent::JobPointer& job);
  void wait_for(const std::string& key, Pending& pending);
  void ended(const agent::JobPointer& job);
  void use_files(const std::string& key, Pending& pending);
  void show_changes(const std::string& key, Pending& pending);
  void apply_changes(const std::string& key, const Pending& pending);

  EventLoop& loop_;
  Wire& wire_;
  const agent::Facts& facts_;
  agent::Log log_;
  client::Place place_;
  client::Retired retired_;
  agent::Jobs jobs_;
  std::map<std::string, Pending> pending_;                        ///< by id
  std::size_t bytes_ = 0;                                         ///< of their lines
  std::list<std::shared_ptr<client::Application>> applications_;  ///< under way
};

}  // namespace sbx::mcp
