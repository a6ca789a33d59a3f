#include "policy/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "base/text.hpp"
#include "policy/apply.hpp"
#include "policy/document.hpp"
#include "policy/locate.hpp"
#include "policy/narrowing.hpp"
#include "policy/reading.hpp"

namespace sbx::policy {
namespace {

constexpr std::size_t kDeepestExtends = 16;
constexpr std::size_t kMostTexts = 64;

/// Builds one policy out of its layers, weakest first.
class Merger {
 public:
  explicit Merger(const LoadContext& context) : context_(context), policy_(initial_policy()) {}

  /// Begins with a policy that later layers may only narrow.
  void begin_sealed(const Policy& policy, const Origin& place) {
    policy_ = policy;
    has_defaults_ = true;
    seal_ = Seal{policy, place};
  }

  void add_operand(const std::string& operand, std::string said_by = "--policy") {
    auto text = locate(operand, {.directory = context_.working_directory}, context_);
    if (!text)
      return add_error(std::move(text).error(),
                       {.file = std::move(said_by), .layer = Layer::command_line}, operand);
    add_text(std::move(*text));
  }

  /// One text after its parents. `stack_` holds the texts that led here.
  void add_text(PolicyText found) {
    texts_.push_back(std::move(found));  // a deque: the views of earlier ones stay
    const PolicyText& text = texts_.back();
    Reading reading(text.text(), place_of(text), findings_);
    const std::expected<Node, SyntaxError> document =
        text.builtin != nullptr ? unpack(*text.builtin) : read_toml(text.text());
    if (!document) {
      const SyntaxError& error = document.error();
      return reading.report(error.line, error.column, {error.code, error.message, error.hint});
    }
    stack_.push_back(&text);
    add_parents(*document, reading);
    stack_.pop_back();
    if (text.identity == "default" && text.builtin != nullptr) has_defaults_ = true;
    begin_with_defaults();
    applied_.push_back(text.identity);
    policy_.name = {text.stem, {.file = text.name, .layer = text.layer}};
    policy_.description = {};
    const auto first = static_cast<std::ptrdiff_t>(findings_.size());
    apply_document(*document, reading, policy_);
    std::ranges::stable_sort(
        findings_.begin() + first, findings_.end(), {},
        [](const Error& error) { return std::pair(error.origin->line, error.origin->column); });
    note_text(text);
    close_layer({.file = text.name, .layer = text.layer}, document->member("locked") != nullptr);
  }

  /// The user's settings are stronger than built-in policies, and weaker than policy files, a lock
  /// and the command line.
  void add_settings() {
    const Layer layer = policy_.isolation.origin.layer;
    const bool is_said = layer != Layer::key_default && layer != Layer::builtin;
    if (context_.isolation && !is_said && !seal_) policy_.isolation = *context_.isolation;
  }

  /// A layer of the command line: `--set`, or the named options.
  void add_overrides(const std::vector<Override>& overrides, bool named_options) {
    bool allows_host = false;
    bool locks = false;
    std::string first;
    for (const Override& one : overrides) {
      if ((one.option != "--set") != named_options) continue;
      if (first.empty()) first = one.option;
      allows_host = allows_host || one.option == "--allow-host";
      locks = locks || one.key == "locked";
      add_override(one);
    }
    if (allows_host) allow_host();
    if (!first.empty()) close_layer({.file = first, .layer = Layer::command_line}, locks);
  }

  void add_ways(const std::vector<std::string>& ways) {
    for (const std::string& way : ways)
      if (std::ranges::find(policy_.ways, way) == policy_.ways.end()) policy_.ways.push_back(way);
  }

  std::expected<Policy, Findings> finish() && {
    if (findings_.empty()) return std::move(policy_);
    for (Error& error : findings_) withhold(error);
    return std::unexpected(std::move(findings_));
  }

 private:
  [[nodiscard]] Reading::TextSource place_of(const PolicyText& text) const {
    return {.file = text.name,
            .layer = text.layer,
            .base = {.directory = text.directory, .home = context_.home}};
  }

  /// A mistake in a file that may not be quoted is reported by its code and place alone.
  void withhold(Error& error) const {
    if (!error.origin || error.origin->layer != Layer::file) return;
    const auto text = std::ranges::find(texts_, error.origin->file, &PolicyText::name);
    if (text == texts_.end() || may_be_quoted(*text)) return;
    error.message = "this line is not a policy (" + error.code + ")";
    error.source_line.clear();
    error.hint = has_policy_name(*text)
                     ? "its text is shown only if it is a policy: schema = 1 comes first"
                     : "its text is shown only of files called NAME.toml";
  }

  /// Another user may have chosen the file that `extends` names: it must look like a policy and
  /// belong to the caller or root.
  static Status check_parent(const PolicyText& text) {
    const auto refuse = [&](std::string why, std::string hint) {
      return fail({.kind = ErrorKind::policy,
                   .code = "untrusted-parent",
                   .message = "extends: " + quoted(text.name) + " " + std::move(why),
                   .hint = std::move(hint)});
    };
    if (text.layer == Layer::builtin) return {};
    if (!has_policy_name(text))
      return refuse("is not called NAME.toml", "rename the file that it leads to");
    if (text.owner != 0 && text.owner != ::geteuid())
      return refuse("belongs to another user", "copy it: a policy is trusted as its owner is");
    return {};
  }

  /// Without a parent a policy begins with the keys' defaults. The list of credentials stands in
  /// the policy "default", for people to read.
  void begin_with_defaults() {
    if (has_defaults_) return;
    has_defaults_ = true;
    const Key* deny = find_key("filesystem.deny");
    for (const PackedPolicy& builtin : packed_policies()) {
      if (builtin.name != "default") continue;
      const Node document = unpack(builtin);
      const Member* filesystem = document.member("filesystem");
      const Member* list = filesystem != nullptr ? filesystem->value.member("deny") : nullptr;
      if (list == nullptr) continue;
      Reading reading(builtin.toml,
                      {.file = "default.toml",
                       .layer = Layer::builtin,
                       .base = {.directory = {}, .home = context_.home}},
                      findings_);
      apply(*deny, list->value, ListMode::append, reading, policy_);
    }
  }

  void add_error(Error error, Origin origin, std::string source_line) {
    error.origin = std::move(origin);
    error.source_line = std::move(source_line);
    findings_.push_back(std::move(error));
  }

  void add_parents(const Node& document, Reading& reading) {
    const Member* extends = document.member("extends");
    if (extends == nullptr) return;
    const auto* list = extends->value.as<Node::List>();
    const Node::List single{extends->value};
    for (const Node& parent : list != nullptr ? *list : single) {
      const auto* operand = parent.as<std::string>();
      if (operand == nullptr) {
        reading.report(parent, {"wrong-type",
                                "extends: " + short_text(parent) + " is not the name of a policy",
                                "write extends = \"default\""});
        continue;
      }
      add_parent(*operand, parent, reading);
    }
  }

  static LookIn look_in(const PolicyText& child) {
    const bool bare = child.name.find('/') == std::string::npos;
    return {.directory = child.self_contained ? std::string{} : child.directory,
            .display_directory = bare ? std::string{} : std::string(parent_path(child.name))};
  }

  void add_parent(const std::string& operand, const Node& at, Reading& reading) {
    const PolicyText& child = *stack_.back();
    if (stack_.size() > kDeepestExtends || texts_.size() >= kMostTexts) {
      const bool deep = stack_.size() > kDeepestExtends;
      return reading.report(
          at, {deep ? "extends-too-deep" : "too-many-policies",
               deep ? "extends is more than 16 deep" : "more than 64 policies are merged",
               "write one policy that says it all"});
    }
    const LoadContext builtins_only;  // its parents are built-ins too
    auto text =
        locate(operand, look_in(child), child.builtin != nullptr ? builtins_only : context_);
    if (!text)
      return add_error(std::move(text).error(), reading.origin(at),
                       std::string(line_of(child.text(), at.line)));
    if (auto trusted = check_parent(*text); !trusted)
      return add_error(std::move(trusted).error(), reading.origin(at),
                       std::string(line_of(child.text(), at.line)));
    const auto same = [&](const PolicyText* other) { return other->identity == text->identity; };
    if (const auto first = std::ranges::find_if(stack_, same); first != stack_.end()) {
      std::string cycle;
      for (auto each = first; each != stack_.end(); ++each) cycle += (*each)->name + " -> ";
      return reading.report(at,
                            {"extends-cycle", "extends goes in a circle: " + cycle + (*first)->name,
                             "take one of them out"});
    }
    // A parent of several policies is one layer, at its weakest place: applied again, it would undo
    // the settings of the policies that extend it.
    if (std::ranges::find(applied_, text->identity) != applied_.end())
      return add_ways(text->links);  // another way than the first, perhaps
    text->typed = false;
    add_text(std::move(*text));
  }

  void note_text(const PolicyText& text) {
    if (!text.note.empty()) policy_.notes.push_back(text.note);
    policy_.source = text.layer == Layer::builtin ? "built-in" : text.identity;
    if (text.layer == Layer::builtin || text.self_contained) return;
    policy_.files.push_back(text.identity);
    add_ways(text.links);
  }

  void add_override(const Override& one) {
    const std::string typed = one.option == "--set" ? one.key + "=" + one.toml : one.toml;
    Reading reading(typed,
                    {.file = one.option,
                     .layer = Layer::command_line,
                     .base = {.directory = context_.working_directory, .home = context_.home}},
                    findings_);
    if (is_section(one.key)) return set_section(one, reading);
    set_key(one, one.key, {}, reading);
  }

  /// The one value of an override; null where its text is not one.
  static std::optional<Node> value_of(const Override& one) {
    auto document = read_toml("v = " + one.toml);
    const auto* members = document ? document->as<Node::Table>() : nullptr;
    if (members == nullptr || members->size() != 1 || members->front().name != "v")
      return std::nullopt;
    return members->front().value;
  }

  /// `network={ mode = "allow-list", allow = ["example.org:443"] }`: its keys, one by one.
  void set_section(const Override& one, Reading& reading) {
    const auto value = value_of(one);
    const auto* keys = value ? value->as<Node::Table>() : nullptr;
    if (keys == nullptr) {
      return reading.report(0, 0,
                            {"unknown-key", quoted(one.key) + " is a table of keys, not a key",
                             "set its keys one by one, or as " + one.key + "={ KEY = VALUE }"});
    }
    for (const Member& member : *keys)
      set_key(one, one.key + "." + member.name, member.value, reading);
  }

  /// `value`: nothing, to read it from the override.
  void set_key(const Override& one, const std::string& name, std::optional<Node> value,
               Reading& reading) {
    const Key* key = find_key(name);
    std::string member;
    if (key == nullptr) {
      // environment.set.NAME
      const auto dot = name.rfind('.');
      const Key* table =
          dot == std::string::npos ? nullptr : find_key(std::string_view(name).substr(0, dot));
      if (table == nullptr || !table->is_table()) return unknown_override(name, reading);
      key = table;
      member = name.substr(dot + 1);
    }
    if (key->of_text()) {
      return reading.report(
          0, 0,
          {"not-settable", name + " belongs to a policy file and can't be set here",
           key->type == Type::parents ? "name further policies with -p" : "leave it out"});
    }
    if (!is_utf8(one.toml))
      return reading.report(0, 0,
                            {"invalid-utf8", name + ": " + quoted(one.toml) + " is not UTF-8",
                             "policies are UTF-8: change into it and write \".\", or grant the "
                             "directory that holds it"});
    if (!value) value = value_of(one);
    if (!value) {
      return reading.report(
          0, 0,
          {"toml-syntax", name + ": " + quoted(one.toml) + " is not one TOML value",
           reading.cure(name, key->is_list() || key->is_table() || key->type == Type::boolean ||
                                      key->type == Type::count || key->type == Type::number ||
                                      one.toml.find_first_of("'\"\n") != std::string::npos
                                  ? example(*key)
                                  : quoted(one.toml))});
    }
    if (!member.empty())
      value = Node{.value = Node::Table{Member{.name = member, .value = std::move(*value)}}};
    apply(*key, *value, one.append ? ListMode::append : ListMode::replace, reading, policy_);
  }

  static void unknown_override(const std::string& name, Reading& reading) {
    const std::string_view meant = suggest_key(name);
    reading.report(
        0, 0,
        {"unknown-key", "unknown key " + short_text(Node{.value = name}),
         meant.empty() ? "sbx-policy(5) lists the keys" : "did you mean " + quoted(meant) + "?"});
  }

  /// Asking for a host under `none` asks for the mode in which hosts are allowed.
  void allow_host() {
    Sourced<NetworkMode>& mode = policy_.network.mode;
    const Origin option{.file = "--allow-host", .layer = Layer::command_line};
    // The stricter word must not lose in silence.
    if (mode.value == NetworkMode::none && mode.origin.file == "--net")
      return findings_.push_back({.kind = ErrorKind::policy,
                                  .code = "allow-host-with-none",
                                  .message = "--allow-host names a destination, and --net none "
                                             "allows none",
                                  .origin = option,
                                  .hint = "leave out one of the two"});
    if (mode.value == NetworkMode::none) mode = {NetworkMode::allow_list, option};
    if (mode.value != NetworkMode::host) return;
    findings_.push_back(
        {.kind = ErrorKind::policy,
         .code = "allow-host-with-host",
         .message = "--allow-host names a destination, and network.mode = \"host\" of " +
                    mode.origin.text() + " allows all",
         .origin = option,
         .hint = "leave out --allow-host, or set network.mode to \"allow-list\""});
  }

  /// What the layer may not do under a seal; then its own seal, which holds what stands so far.
  void close_layer(const Origin& layer, bool says_locked) {
    if (seal_) {
      for (Error& error : widenings(*seal_, policy_, layer)) {
        // A rule that an earlier layer widened was reported there.
        const bool told = std::ranges::any_of(findings_, [&](const Error& other) {
          return other.message == error.message && other.origin == error.origin;
        });
        if (told) continue;
        error.source_line = source_line(*error.origin);
        findings_.push_back(std::move(error));
      }
    }
    if (says_locked && policy_.locked.value) seal_ = Seal{policy_, policy_.locked.origin};
  }

  [[nodiscard]] std::string source_line(const Origin& origin) const {
    if (origin.line == 0) return {};
    const auto text = std::ranges::find(texts_, origin.file, &PolicyText::name);
    return text == texts_.end() ? std::string{} : std::string(line_of(text->text(), origin.line));
  }

  const LoadContext& context_;
  Policy policy_;
  Findings findings_;
  std::deque<PolicyText> texts_;
  std::vector<const PolicyText*> stack_;
  std::vector<std::string> applied_;  ///< identities
  bool has_defaults_ = false;
  std::optional<Seal> seal_;
};

}  // namespace

std::expected<Policy, Findings> load(const std::vector<PolicyOperand>& policies,
                                     const std::vector<Override>& overrides,
                                     const LoadContext& context) {
  Merger merger(context);
  merger.add_ways(context.settings_files);
  if (policies.empty())
    merger.add_operand(context.default_policy.empty() ? "default" : context.default_policy,
                       context.default_policy_file);
  for (const PolicyOperand& operand : policies) merger.add_operand(operand.text);
  merger.add_settings();
  merger.add_overrides(overrides, false);
  merger.add_overrides(overrides, true);
  return std::move(merger).finish();
}

std::expected<Policy, Findings> narrow(const Policy& policy, const std::vector<Override>& overrides,
                                       const std::string& sealed_by) {
  if (overrides.empty()) return policy;  // most calls: three copies fewer
  const LoadContext nothing;
  const Origin place{.file = sealed_by};
  Merger merger(nothing);
  merger.begin_sealed(policy, place);
  merger.add_overrides(overrides, false);
  merger.add_overrides(overrides, true);
  auto narrowed = std::move(merger).finish();
  if (narrowed) return narrowed;
  for (Error& error : narrowed.error()) {
    if (error.code != "widens-locked") continue;
    const std::size_t end = error.message.rfind(", and the policy is locked at ");
    error.message = error.message.substr(0, end) + ", and the policy of " + sealed_by + " is fixed";
    error.hint = "a call may only narrow it: leave this out, or start another session";
  }
  return narrowed;
}

std::expected<Policy, Findings> parse_text(std::string_view text, std::string_view file_name,
                                           const LoadContext& context) {
  PolicyText given{
      .content = std::string(text), .name = std::string(file_name), .self_contained = true};
  given.identity = given.name;
  given.directory = context.working_directory;
  const std::string_view stem = file_name.substr(file_name.rfind('/') + 1);
  given.stem = stem.ends_with(".toml") ? stem.substr(0, stem.size() - 5) : stem;
  Merger merger(context);
  merger.add_text(std::move(given));
  return std::move(merger).finish();
}

}  // namespace sbx::policy
