#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

/// The members of what a record lists, each named once: describe() tells them to the reader below,
/// which the library and `sbx why` use, or to those of protocol/entries.hpp, which write records
/// and carry them in messages. A new member is a line here. The keys and their order are those of
/// sbx-record(5).
namespace sbx::lib {

[[nodiscard]] inline std::string from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    int digit = -1;
    if (c >= 'A' && c <= 'Z') digit = c - 'A';
    if (c >= 'a' && c <= 'z') digit = c - 'a' + 26;
    if (c >= '0' && c <= '9') digit = c - '0' + 52;
    if (c == '+') digit = 62;
    if (c == '/') digit = 63;
    if (digit < 0) break;  // '=' is padding
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes += static_cast<char>(bits >> have & 0xff);
  }
  return bytes;
}

[[nodiscard]] constexpr const char* evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::kernel_counter:
      return "kernel-counter";
    case Evidence::signal:
      return "signal";
    case Evidence::sampled:
      return "sampled";
  }
  return "";
}

// What a description says of a member:
//   word   an enumerator by its name          name   bytes, exact also where they are no UTF-8
//   (key_b64) text   UTF-8                              count  a number of 0 or more, or null flag
//   true or false                      names  a list of names              mode   permission bits
// and if_set: the member is left out where it has its default.

template <class Members>
void describe(Members& members, Denial& denial) {
  members.word("kind", denial.kind, [](DenialKind kind) { return name_of(kind); });
  members.name("what", denial.what);
  members.count("count", denial.count);
  members.name("process", denial.process);
  members.name("rule", denial.rule);
  members.name("allow_with", denial.allow_with);
  members.text("risk", denial.risk);
  members.flag_if_set("during_call", denial.during_call);
  members.names_if_set("options", denial.options);
}

template <class Members>
void describe(Members& members, Hint& hint) {
  members.word("kind", hint.kind, [](HintKind kind) { return name_of(kind); });
  members.name("what", hint.what);
  members.name("text", hint.text);
  members.names("options", hint.options);
  members.flag("perhaps", hint.perhaps);
}

template <class Members>
void describe(Members& members, NetworkFailure& failure) {
  members.text("what", failure.what);
  members.text("why", failure.why);
  members.count("count", failure.count);
}

template <class Members>
void describe(Members& members, NetworkUse& use) {
  members.text("rule", use.rule);
  members.count("connections", use.connections);
  members.count("bytes_in", use.bytes_in);
  members.count("bytes_out", use.bytes_out);
}

template <class Members>
void describe(Members& members, LimitMet& met) {
  members.text("limit", met.limit);
  members.count("value", met.value);
  members.count("peak", met.peak);
  members.word("evidence", met.evidence, evidence_name);
}

template <class Members>
void describe(Members& members, Degraded& degraded) {
  std::string what = degraded.what();
  members.text("what", what);
  if constexpr (Members::kReads) degraded = Degraded::named(what);
  members.text("why", degraded.why);
  members.text_or_null("instead", degraded.instead);
}

template <class Members>
void describe(Members& members, Change& change) {
  members.name("path", change.path);
  members.word("change", change.change, [](ChangeKind kind) { return name_of(kind); });
  members.word("type", change.type, [](FileType type) { return name_of(type); });
  members.count("bytes", change.bytes);
  members.mode("mode", change.mode);
}

template <class Members>
void describe(Members& members, Hazard& hazard) {
  members.name("path", hazard.path);
  members.text("why", hazard.why);
}

template <class Members>
void describe(Members& members, LeftRunning& left) {
  members.count("count", left.count);
  members.name("process", left.process);
}

template <class Members>
void describe(Members& members, Usage& usage) {
  members.count("wall_ms", usage.wall_ms);
  members.count("user_ms", usage.user_ms);
  members.count("system_ms", usage.system_ms);
  members.count("memory_peak_bytes", usage.memory_peak_bytes);
  members.count("processes_peak", usage.processes_peak);
  members.count("written_bytes", usage.written_bytes);
}

/// Reads one object. It is untrusted input: a member that is missing or of another type keeps its
/// default.
template <class Json>
class MemberReader {
 public:
  static constexpr bool kReads = true;
  explicit MemberReader(const Json& object) : object_(object) {}

  template <class Enum, class Name>
  void word(const char* key, Enum& value, Name name_of_value) {
    const std::string given = plain(key);
    for (unsigned char i = 0; *name_of_value(static_cast<Enum>(i)) != '\0'; ++i)
      if (given == name_of_value(static_cast<Enum>(i))) value = static_cast<Enum>(i);
  }
  void name(const std::string& key, std::string& value) {
    const std::string exact = plain(key + "_b64");
    value = exact.empty() ? plain(key) : from_base64(exact);
  }
  void text(const char* key, std::string& value) { value = plain(key); }
  void text_or_null(const char* key, std::string& value) { value = plain(key); }
  template <class Number>
  void count(const char* key, Number& value) {
    if (const Json* found = find(key); found != nullptr && found->is_number_unsigned())
      value = found->template get<std::uint64_t>();
  }
  void flag(const char* key, bool& value) {
    if (const Json* found = find(key); found != nullptr && found->is_boolean())
      value = found->template get<bool>();
  }
  void flag_if_set(const char* key, bool& value) { flag(key, value); }
  void mode(const char* key, unsigned& value) {
    value = static_cast<unsigned>(std::strtoul(plain(key).c_str(), nullptr, 8));
  }
  void names(const std::string& key, std::vector<std::string>& value) {
    const Json* exact = find(key + "_b64");
    const Json* list = exact != nullptr ? exact : find(key);
    if (list == nullptr || !list->is_array()) return;
    for (const Json& each : *list) {
      if (!each.is_string()) continue;
      const auto word = each.template get<std::string>();
      value.push_back(exact != nullptr ? from_base64(word) : word);
    }
  }
  void names_if_set(const char* key, std::vector<std::string>& value) { names(key, value); }

 private:
  [[nodiscard]] const Json* find(const std::string& key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string plain(const std::string& key) const {
    const Json* found = find(key);
    return found != nullptr && found->is_string() ? found->template get<std::string>()
                                                  : std::string();
  }

  const Json& object_;
};

template <class Entry, class Json>
[[nodiscard]] Entry read_members(const Json& object) {
  Entry entry{};
  MemberReader<Json> reader(object);
  describe(reader, entry);
  return entry;
}

/// The entries of a list that are objects; none if it is not a list.
template <class Entry, class Json>
[[nodiscard]] std::vector<Entry> read_list(const Json& list) {
  std::vector<Entry> entries;
  if (!list.is_array()) return entries;
  for (const Json& each : list)
    if (each.is_object()) entries.push_back(read_members<Entry>(each));
  return entries;
}

}  // namespace sbx::lib
