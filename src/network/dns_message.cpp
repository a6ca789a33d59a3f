#include "network/dns_message.hpp"

#include <algorithm>
#include <array>

#include "policy/network_names.hpp"
#include "policy/network_rules.hpp"

namespace sbx::network::dns {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::size_t kLongestName = 255;  // on the wire, with its lengths (RFC 1035, 2.3.4)
constexpr std::uint16_t kInternet = 1;
constexpr std::uint16_t kAnyClass = 255;
constexpr std::uint16_t kOption = 41;  // OPT, RFC 6891
/// Larger answers are fragmented on some paths. The gateway only has to announce the limit.
constexpr std::uint16_t kOurLimit = 1232;
constexpr unsigned kMostAdditional = 16;
constexpr std::uint8_t kResponse = 0x80;

/// Reads forward within a message; a read beyond its end makes it fail from then on.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  std::span<const std::uint8_t> take(std::size_t count) {
    if (failed_ || count > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  std::uint8_t byte() {
    const auto taken = take(1);
    return failed_ ? std::uint8_t{0} : taken[0];
  }
  std::uint16_t number() {
    const auto high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_;
  bool failed_ = false;
};

/// Builds an answer.
class Writer {
 public:
  void byte(unsigned value) { bytes_.push_back(static_cast<std::uint8_t>(value)); }
  void number(unsigned value) {
    byte(value >> 8 & 0xff);
    byte(value & 0xff);
  }
  void bytes(std::span<const std::uint8_t> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  void header(const Query& query, Rcode rcode, unsigned questions, unsigned answers) {
    number(query.id);
    byte(kResponse | (query.recursion_desired ? 1U : 0U));
    constexpr unsigned kRecursionAvailable = 0x80;
    byte(kRecursionAvailable | (query.checking_disabled ? 0x10U : 0U) |
         (static_cast<unsigned>(rcode) & 0xf));
    number(questions);
    number(answers);
    number(0);
    number(query.edns ? 1 : 0);
  }
  void options(const Query& query, Rcode rcode) {
    if (!query.edns) return;
    byte(0);
    number(kOption);
    number(kOurLimit);
    byte(static_cast<unsigned>(rcode) >> 4);
    byte(0);  // version
    number(query.dnssec_ok ? 0x8000 : 0);
    number(0);
  }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

std::unexpected<Unanswerable> ignored(std::string why) {
  return std::unexpected(Unanswerable{{}, std::move(why)});
}

/// An error without the question, which may not have been understood.
std::unexpected<Unanswerable> refusal(const Query& query, Rcode rcode, std::string why) {
  Writer writer;
  writer.header(query, rcode, 0, 0);
  writer.options(query, rcode);
  return std::unexpected(Unanswerable{writer.take(), std::move(why)});
}

std::string shown_label(std::span<const std::uint8_t> label) {
  std::string text;
  for (const std::uint8_t byte : label) {
    if (byte > ' ' && byte < 0x7f && byte != '.' && byte != '\\' && byte != '"') {
      text += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
      continue;
    }
    text += '\\';
    for (const int digit : {byte / 100, byte / 10 % 10, byte % 10})
      text += static_cast<char>('0' + digit);
  }
  return text;
}

bool is_plain_label(std::span<const std::uint8_t> label) {
  // A dot within a label would make it two labels once it is text.
  return std::ranges::all_of(label, [](std::uint8_t byte) { return byte < 0x80 && byte != '.'; });
}

/// Reads the name of the question. Empty: fine; else what is wrong with it.
std::string read_name(Reader& reader, Query& query) {
  const std::size_t begin = reader.at();
  std::string text;
  bool plain = true;
  for (;;) {
    const std::uint8_t length = reader.byte();
    if (reader.failed()) return "a name that goes on after the end";
    if (length == 0) break;
    // Before the first question there is nothing but the header to point to.
    if (length >= 0xc0) return "a compressed name in the question";
    if (length >= 0x40) return "a label of an unknown type";
    const auto label = reader.take(length);
    if (reader.failed()) return "a label that goes on after the end";
    // The last byte, 0, is part of the length too.
    if (reader.at() - begin + 1 > kLongestName) return "a name of more than 255 bytes";
    plain = plain && is_plain_label(label);
    query.shown += (query.shown.empty() ? "" : ".") + shown_label(label);
    if (plain) {
      text += text.empty() ? "" : ".";
      text.append(label.begin(), label.end());
    }
  }
  if (query.shown.empty()) query.shown = ".";
  if (!plain) return {};
  if (auto name = policy::canonical_name(text)) query.name = std::move(*name);
  return {};
}

/// Skips the owner of an additional record.
bool skip_name(Reader& reader) {
  for (;;) {
    const std::uint8_t length = reader.byte();
    if (reader.failed()) return false;
    if (length == 0) return true;
    if (length >= 0xc0) {
      (void)reader.byte();
      return !reader.failed();
    }
    if (length >= 0x40) return false;
    (void)reader.take(length);
  }
}

/// Reads EDNS. Returns what is wrong with it; empty: nothing.
std::string read_additional(Reader& reader, unsigned count, Query& query, unsigned& version) {
  if (count > kMostAdditional) return "too many records";
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t begin = reader.at();
    if (!skip_name(reader)) return "a malformed record";
    const bool root = reader.at() == begin + 1;
    const std::uint16_t type = reader.number();
    const std::uint16_t klass = reader.number();
    (void)reader.byte();  // extended rcode
    const unsigned said_version = reader.byte();
    const std::uint16_t flags = reader.number();
    (void)reader.take(reader.number());
    if (reader.failed()) return "a record that goes on after the end";
    if (type != kOption) continue;
    if (!root || query.edns) return "a malformed EDNS record";
    query.edns = true;
    query.dnssec_ok = (flags & 0x8000) != 0;
    query.largest_answer = std::max<std::uint16_t>(klass, kSmallestLimit);
    version = said_version;
  }
  return {};
}

}  // namespace

std::expected<Query, Unanswerable> parse_query(std::span<const std::uint8_t> message) {
  if (message.size() < kHeader) return ignored("shorter than a header");
  Reader reader(message, 0);
  Query query{.id = reader.number()};
  const std::uint8_t flags = reader.byte();
  if ((flags & kResponse) != 0) return ignored("a response");
  query.recursion_desired = (flags & 1) != 0;
  query.checking_disabled = (reader.byte() & 0x10) != 0;
  const unsigned questions = reader.number();
  const unsigned answers = reader.number();
  const unsigned authorities = reader.number();
  const unsigned additional = reader.number();
  if ((flags >> 3 & 0xf) != 0) return refusal(query, Rcode::not_implemented, "not a query");
  if (questions != 1) {
    return refusal(query, Rcode::format_error, std::to_string(questions) + " questions");
  }
  if (answers != 0 || authorities != 0)
    return refusal(query, Rcode::format_error, "a query that has answers");

  if (std::string wrong = read_name(reader, query); !wrong.empty())
    return refusal(query, Rcode::format_error, std::move(wrong));
  query.type = reader.number();
  query.klass = reader.number();
  if (reader.failed()) return refusal(query, Rcode::format_error, "half a question");
  const auto question = message.subspan(kHeader, reader.at() - kHeader);
  query.question.assign(question.begin(), question.end());

  unsigned version = 0;
  if (std::string wrong = read_additional(reader, additional, query, version); !wrong.empty())
    return refusal(query, Rcode::format_error, std::move(wrong));
  if (version != 0) return refusal(query, Rcode::bad_version, "an unknown version of EDNS");
  return query;
}

Bytes write_answer(const Query& query, const Answer& answer) {
  Writer writer;
  writer.header(query, answer.rcode, 1, answer.address ? 1 : 0);
  writer.bytes(query.question);
  if (answer.address) {
    const bool v4 = answer.address->family == policy::Family::v4;
    constexpr unsigned kNameOfTheQuestion = 0xc000 | kHeader;
    writer.number(kNameOfTheQuestion);
    writer.number(static_cast<unsigned>(v4 ? Type::a : Type::aaaa));
    writer.number(kInternet);
    writer.number(answer.ttl_seconds >> 16);
    writer.number(answer.ttl_seconds & 0xffff);
    const std::span<const std::uint8_t> bytes(answer.address->bytes.data(), v4 ? 4 : 16);
    writer.number(static_cast<unsigned>(bytes.size()));
    writer.bytes(bytes);
  }
  writer.options(query, answer.rcode);
  return writer.take();
}

Answer answer_for(const Query& query, const policy::Address& address, std::uint32_t ttl_seconds) {
  if (query.klass != kInternet && query.klass != kAnyClass)
    return {.rcode = Rcode::not_implemented};
  const Type wanted = address.family == policy::Family::v4 ? Type::a : Type::aaaa;
  // ANY gets what is there (RFC 8482 leaves that open); every other type is empty, not absent.
  if (query.type != static_cast<std::uint16_t>(wanted) &&
      query.type != static_cast<std::uint16_t>(Type::any))
    return {};
  return {.address = address, .ttl_seconds = ttl_seconds};
}

std::optional<Answer> own_name(const Query& query) {
  constexpr std::uint32_t kDay = 86400;
  constexpr std::string_view kSelf = "sandbox";
  const bool local = query.name == "localhost" || query.name.ends_with(".localhost");
  if (!local && query.name != kSelf) return std::nullopt;
  const bool v6 = query.type == static_cast<std::uint16_t>(Type::aaaa);
  const policy::Address loopback =
      v6 && local ? *policy::parse_v6("::1") : policy::Address::v4(127, 0, 0, 1);
  return answer_for(query, loopback, kDay);
}

Bytes framed(const Bytes& message) {
  Bytes result;
  result.reserve(message.size() + 2);
  result.push_back(static_cast<std::uint8_t>(message.size() >> 8));
  result.push_back(static_cast<std::uint8_t>(message.size() & 0xff));
  result.insert(result.end(), message.begin(), message.end());
  return result;
}

bool Stream::add(std::span<const std::uint8_t> bytes) {
  if (waiting_.size() + bytes.size() > kLargestMessage + 2) return false;
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return true;
}

std::optional<Bytes> Stream::next() {
  std::size_t begin = 0;
  std::size_t length = 0;
  while (waiting_.size() - begin >= 2) {
    length = static_cast<std::size_t>(waiting_[begin]) << 8 | waiting_[begin + 1];
    if (length != 0) break;
    begin += 2;
  }
  std::optional<Bytes> message;
  if (length != 0 && waiting_.size() - begin - 2 >= length) {
    const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(begin + 2);
    message.emplace(first, first + static_cast<std::ptrdiff_t>(length));
    begin += 2 + length;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(begin));
  return message;
}

}  // namespace sbx::network::dns
