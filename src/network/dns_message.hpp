#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/addresses.hpp"

/// DNS messages of the sandbox's resolver (RFC 1035, 6891): pure, every length checked. One
/// question, one answer; nothing is forwarded.
namespace sbx::network::dns {

using Bytes = std::vector<std::uint8_t>;

enum class Rcode : std::uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  bad_version = 16,
};
enum class Type : std::uint16_t { a = 1, ns = 2, ptr = 12, txt = 16, aaaa = 28, any = 255 };

inline constexpr std::size_t kLargestMessage = 65535;
inline constexpr std::size_t kSmallestLimit = 512;

struct Query {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  std::uint16_t type = 0;
  std::uint16_t klass = 1;
  /// Canonical as policy::canonical_name has it, or empty where the name is not a host name.
  std::string name;
  /// For people: the name with what can't be printed as "\DDD". Never empty ("." for the root).
  std::string shown;
  Bytes question;  ///< as it came (letter case kept, RFC 5452), for the answer
  bool edns = false;
  bool dnssec_ok = false;
  std::uint16_t largest_answer = kSmallestLimit;  ///< over UDP; 512 to 65535
};

/// A message that is not a query to answer by name. `answer` is what to send: empty for nothing (a
/// response, or too short to have an id).
struct Unanswerable {
  Bytes answer;
  std::string why;  ///< "a response", "2 questions"
};

/// Reads one message. A compressed name in the question is malformed: before it there is nothing to
/// point to.
[[nodiscard]] std::expected<Query, Unanswerable> parse_query(std::span<const std::uint8_t> message);

/// The answer: with an address (A or AAAA must fit the query's type), or empty with `rcode`.
struct Answer {
  Rcode rcode = Rcode::no_error;
  std::optional<policy::Address> address;
  std::uint32_t ttl_seconds = 0;
};
[[nodiscard]] Bytes write_answer(const Query& query, const Answer& answer);

/// What is answered about a name by its question's type when the name is allowed and stands for
/// `address`: the address to A (of a v6 one to AAAA) and ANY, an empty answer to all others. Class
/// other than IN: not implemented.
[[nodiscard]] Answer answer_for(const Query& query, const policy::Address& address,
                                std::uint32_t ttl_seconds);
/// "localhost" and what is below it (RFC 6761) and the sandbox's own host name: answered without
/// asking anybody. Empty for every other name.
[[nodiscard]] std::optional<Answer> own_name(const Query& query);

/// TCP: each message follows its length in two bytes.
[[nodiscard]] Bytes framed(const Bytes& message);
/// The messages of one TCP stream, handed in as they come.
class Stream {
 public:
  /// False: more than a stream may have waiting (64 KiB and a length): close it.
  [[nodiscard]] bool add(std::span<const std::uint8_t> bytes);
  /// The next whole message; empty when more is needed. A message of length 0 is left out.
  [[nodiscard]] std::optional<Bytes> next();

 private:
  Bytes waiting_;
};

}  // namespace sbx::network::dns
