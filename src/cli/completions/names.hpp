#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The names that a user can type, from those who know them.
namespace sbx::cli::completion {

struct Offer {
  std::string word;
  std::string text{};  ///< what it means, a few words
};
using Offers = std::vector<Offer>;

/// Built-in policies, those of the machine and those of the user.
[[nodiscard]] Offers policies();
/// "limits.memory=", for --set.
[[nodiscard]] Offers keys();
/// Keys, groups of system calls, codes, words of a record: what `policy explain` knows.
[[nodiscard]] Offers explained();
/// Of `run`; of contexts, which keep a state.
[[nodiscard]] Offers languages();
[[nodiscard]] Offers languages_of_contexts();
/// Of `mcp install`.
[[nodiscard]] Offers clients();
/// Kept change sets.
[[nodiscard]] Offers sets();
/// Runs that are under way.
[[nodiscard]] Offers runs();
[[nodiscard]] Offers sessions();

/// The contexts of a live session.
[[nodiscard]] Offers contexts(const std::string& session);
enum class Which : unsigned char { running, background, running_background };
[[nodiscard]] Offers calls(const std::string& session, Which which);
/// The entries of the directory that the begun path names.
[[nodiscard]] Offers paths(const std::string& session, std::string_view begun);
/// The directories among them.
[[nodiscard]] Offers directories(const std::string& session, std::string_view begun);

}  // namespace sbx::cli::completion
