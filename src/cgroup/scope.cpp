#include "cgroup/scope.hpp"

#include <dbus/dbus.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/sys.hpp"
#include "cgroup/files.hpp"
#include "cgroup/owned_directory.hpp"

// The archive of libdbus refers to these for servers that systemd starts; sbx only asks.
extern "C" {
int sd_listen_fds(int /*unset*/) {
  return 0;
}
int sd_is_socket(int /*fd*/, int /*family*/, int /*type*/, int /*listening*/) {
  return 0;
}
}

namespace sbx::cgroup {
namespace {

constexpr int kAnswer = 500;               // milliseconds
constexpr std::uint64_t kMoved = 500'000;  // microseconds
constexpr long kLookEvery = 500'000;       // nanoseconds

/// Groups that container engines make below a user's manager.
constexpr std::array<std::string_view, 5> kContainers = {"libpod-", "docker-", "crio-",
                                                         "cri-containerd-", "podman-"};

std::string users_slice(uid_t uid) {
  return "/user.slice/user-" + std::to_string(uid) + ".slice/";
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_users_socket(const std::string& directory, const std::string& path, uid_t uid) {
  struct stat facts{};
  if (::lstat(directory.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != uid)
    return false;
  return ::lstat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode) && facts.st_uid == uid;
}

Error refused(std::string why) {
  return {.kind = ErrorKind::host, .code = "no-scope", .message = std::move(why)};
}

/// Appends one property, ("Name", <value>), of a transient unit.
template <class Put>
void append_property(DBusMessageIter& list, const char* name, const char* signature, Put put) {
  DBusMessageIter property;
  DBusMessageIter variant;
  dbus_message_iter_open_container(&list, DBUS_TYPE_STRUCT, nullptr, &property);
  dbus_message_iter_append_basic(&property, DBUS_TYPE_STRING, static_cast<void*>(&name));
  dbus_message_iter_open_container(&property, DBUS_TYPE_VARIANT, signature, &variant);
  put(variant);
  dbus_message_iter_close_container(&property, &variant);
  dbus_message_iter_close_container(&list, &property);
}

void append_text(DBusMessageIter& list, const char* name, const char* value) {
  append_property(list, name, "s", [&](DBusMessageIter& variant) {
    dbus_message_iter_append_basic(&variant, DBUS_TYPE_STRING, static_cast<void*>(&value));
  });
}

void append_properties(DBusMessageIter& list) {
  append_text(list, "Description", "sbx run");
  append_text(list, "CollectMode", "inactive-or-failed");
  append_property(list, "Delegate", "b", [](DBusMessageIter& variant) {
    const dbus_bool_t yes = 1;
    dbus_message_iter_append_basic(&variant, DBUS_TYPE_BOOLEAN, &yes);
  });
  append_property(list, "PIDs", "au", [](DBusMessageIter& variant) {
    DBusMessageIter pids;
    const auto self = static_cast<dbus_uint32_t>(::getpid());
    dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, "u", &pids);
    dbus_message_iter_append_basic(&pids, DBUS_TYPE_UINT32, &self);
    dbus_message_iter_close_container(&variant, &pids);
  });
}

struct Unref {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
};
using Message = std::unique_ptr<DBusMessage, Unref>;

/// StartTransientUnit(name, mode, properties, auxiliary units).
Message question(const std::string& unit) {
  Message message(
      dbus_message_new_method_call("org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                   "org.freedesktop.systemd1.Manager", "StartTransientUnit"));
  if (!message) return message;
  DBusMessageIter body;
  DBusMessageIter list;
  const char* const name = unit.c_str();
  const char* const mode = "fail";
  dbus_message_iter_init_append(message.get(), &body);
  dbus_message_iter_append_basic(&body, DBUS_TYPE_STRING, static_cast<const void*>(&name));
  dbus_message_iter_append_basic(&body, DBUS_TYPE_STRING, static_cast<const void*>(&mode));
  dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "(sv)", &list);
  append_properties(list);
  dbus_message_iter_close_container(&body, &list);
  dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "(sa(sv))", &list);
  dbus_message_iter_close_container(&body, &list);
  return message;
}

/// The words of a D-Bus error, owned.
class BusError {
 public:
  BusError() { dbus_error_init(&error_); }
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  ~BusError() { dbus_error_free(&error_); }
  [[nodiscard]] DBusError* get() { return &error_; }
  [[nodiscard]] std::string text() const {
    return error_.message == nullptr ? "no answer" : error_.message;
  }

 private:
  DBusError error_{};
};

bool is_in(const std::string& unit) {
  const auto own = read_text(AT_FDCWD, "/proc/self/cgroup");
  return own && own->find("/" + unit) != std::string::npos;
}

}  // namespace

bool is_login(std::string_view path, uid_t uid) {
  const std::string slice = users_slice(uid);
  if (!path.starts_with(slice)) return false;
  path.remove_prefix(slice.size());
  const std::string_view last = last_part(path);
  if (path == last) return last.starts_with("session-") && last.ends_with(".scope");
  if (!path.starts_with("user@" + std::to_string(uid) + ".service/")) return false;
  if (!last.ends_with(".scope") && !last.ends_with(".service")) return false;
  return std::ranges::none_of(kContainers,
                              [&](std::string_view prefix) { return last.starts_with(prefix); });
}

bool is_limited(const GroupPath& own, uid_t uid) {
  const std::string end = own.mount + users_slice(uid);
  for (std::string directory = own.directory(); directory.starts_with(end);
       directory.resize(directory.rfind('/'))) {
    const std::string quota = read_text(AT_FDCWD, directory + "/cpu.max").value_or("max");
    if (read_number(AT_FDCWD, directory + "/memory.max") || !quota.starts_with("max")) return true;
  }
  return false;
}

struct ScopeRequest::Connection {
  DBusConnection* bus = nullptr;
  DBusPendingCall* pending = nullptr;

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (pending != nullptr) dbus_pending_call_unref(pending);
    if (bus == nullptr) return;
    dbus_connection_close(bus);
    dbus_connection_unref(bus);
  }
};

ScopeRequest::ScopeRequest() = default;
ScopeRequest::ScopeRequest(ScopeRequest&&) noexcept = default;
ScopeRequest& ScopeRequest::operator=(ScopeRequest&&) noexcept = default;
ScopeRequest::~ScopeRequest() = default;

ScopeRequest ScopeRequest::send(uid_t uid) {
  ScopeRequest request;
  const std::string directory = "/run/user/" + std::to_string(uid);
  const std::string socket = directory + "/bus";
  if (!is_users_socket(directory, socket, uid)) {
    request.problem_ = "the user has no session bus at " + socket;
    return request;
  }
  request.unit_ = unique_name() + ".scope";
  request.connection_ = std::make_unique<Connection>();
  Connection& connection = *request.connection_;
  BusError error;
  connection.bus = dbus_connection_open_private(("unix:path=" + socket).c_str(), error.get());
  if (connection.bus != nullptr) {
    dbus_connection_set_exit_on_disconnect(connection.bus, 0);
    const Message message = question(request.unit_);
    if (message && dbus_bus_register(connection.bus, error.get()) != 0 &&
        dbus_connection_send_with_reply(connection.bus, message.get(), &connection.pending,
                                        kAnswer) != 0 &&
        connection.pending != nullptr) {
      dbus_connection_flush(connection.bus);
      return request;
    }
  }
  request.problem_ = "the user's systemd can't be asked: " + error.text();
  return request;
}

Status ScopeRequest::finish() {
  if (!problem_.empty()) return fail(refused(problem_));
  dbus_pending_call_block(connection_->pending);
  const Message answer(dbus_pending_call_steal_reply(connection_->pending));
  BusError error;
  if (!answer || dbus_set_error_from_message(error.get(), answer.get()) != 0)
    return fail(refused("the user's systemd makes no scope: " + error.text()));
  // The answer is that a job is queued.
  constexpr timespec kStep{.tv_sec = 0, .tv_nsec = kLookEvery};
  const std::uint64_t end = sys::now_microseconds() + kMoved;
  while (!is_in(unit_)) {
    if (sys::now_microseconds() > end)
      return fail(refused("the user's systemd did not make the scope in time"));
    (void)::nanosleep(&kStep, nullptr);  // shorter is fine
  }
  return {};
}

}  // namespace sbx::cgroup
