#pragma once

#include "policy/reading.hpp"

namespace sbx::policy {

/// Applies every key of a document; "schema" is checked and "extends" is left alone.
void apply_document(const Node& document, Reading& reading, Policy& policy);

}  // namespace sbx::policy
