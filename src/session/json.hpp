#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"

/// Parts of messages, and what `sbx session` prints with --json.
namespace sbx::session {

/// Bytes as they are.
void put_binary(Json& object, const char* key, std::string_view bytes);
/// Empty where there are none.
[[nodiscard]] std::string binary_of(const Json& object, const char* key);

/// An answer of schema "sbx.session/1" with these members.
[[nodiscard]] Json headed(const Json& body);

/// What a call's record needs of the denials of the session's network.
[[nodiscard]] Json denials_to_json(const std::vector<Denial>& denials);
[[nodiscard]] std::vector<Denial> denials_from(const Json& list);

}  // namespace sbx::session
