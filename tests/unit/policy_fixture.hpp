#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "policy/load.hpp"

namespace sbx::policy {

inline LoadContext plain_context() {
  return {.home = "/home/me",
          .working_directory = "/home/me/work",
          .policy_directories = {},
          .default_policy = {}};
}

/// The findings of one text, which must have at least one.
inline Findings findings_of(std::string_view text) {
  auto policy = parse_text(text, "p.toml", plain_context());
  EXPECT_FALSE(policy) << text;
  return policy ? Findings{} : std::move(policy).error();
}

inline Policy parsed(std::string_view text) {
  auto policy = parse_text(text, "p.toml", plain_context());
  if (policy) return std::move(*policy);
  for (const Error& error : policy.error())
    ADD_FAILURE() << error.code << ": " << error.text() << "\n" << text;
  return {};
}

inline std::vector<std::string> codes(const Findings& findings) {
  std::vector<std::string> list;
  for (const Error& error : findings) list.push_back(error.code);
  return list;
}

template <class T>
std::vector<T> values(const SourcedList<T>& list) {
  std::vector<T> plain;
  for (const auto& entry : list) plain.push_back(entry.value);
  return plain;
}

/// A directory of policy files, which is the working directory of its loads.
class PolicyDirectory : public testing::Test {
 protected:
  PolicyDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sbx-policy-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
    std::filesystem::create_directories(root_ / "home");
    std::filesystem::create_directories(root_ / "work");
    std::filesystem::create_directories(root_ / "named");
    context_ = {.home = path("home"),
                .working_directory = path("work"),
                .policy_directories = {path("named")},
                .default_policy = {}};
  }
  ~PolicyDirectory() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string path(std::string_view below) const { return (root_ / below).string(); }

  void write_file(std::string_view below, std::string_view text) const {
    std::filesystem::create_directories((root_ / below).parent_path());
    std::ofstream(root_ / below, std::ios::binary) << text;
  }

  [[nodiscard]] std::expected<Policy, Findings> load_all(
      const std::vector<std::string>& operands, const std::vector<Override>& overrides = {}) const {
    std::vector<PolicyOperand> list;
    for (const std::string& operand : operands) list.push_back({operand});
    return load(list, overrides, context_);
  }

  [[nodiscard]] Policy loaded(const std::vector<std::string>& operands,
                              const std::vector<Override>& overrides = {}) const {
    auto policy = load_all(operands, overrides);
    if (policy) return std::move(*policy);
    for (const Error& error : policy.error()) ADD_FAILURE() << error.code << ": " << error.text();
    return {};
  }

  /// The single finding of a load.
  [[nodiscard]] Error finding(const std::vector<std::string>& operands,
                              const std::vector<Override>& overrides = {}) const {
    auto policy = load_all(operands, overrides);
    if (policy) {
      ADD_FAILURE() << "nothing was found";
      return {};
    }
    EXPECT_THAT(codes(policy.error()), testing::SizeIs(1)) << policy.error().front().text();
    return policy.error().front();
  }

  std::filesystem::path root_;
  LoadContext context_;
};

inline Override set(std::string key, std::string toml) {
  return {std::move(key), std::move(toml), "--set", false};
}
inline Override option(std::string name, std::string key, std::string toml) {
  return {std::move(key), std::move(toml), std::move(name), true};
}

}  // namespace sbx::policy
