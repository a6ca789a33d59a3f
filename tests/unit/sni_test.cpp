#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "network/sni.hpp"

namespace sbx::network {
namespace {

using State = ClientHello::State;
using Bytes = std::vector<std::uint8_t>;

Bytes number(std::size_t value, int bytes) {
  Bytes result;
  for (int i = bytes - 1; i >= 0; --i)
    result.push_back(static_cast<std::uint8_t>(value >> (8 * i) & 0xff));
  return result;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes result;
  for (const Bytes& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

Bytes counted(const Bytes& body, int length_bytes) {
  return joined({number(body.size(), length_bytes), body});
}

Bytes text(std::string_view text) {
  return {text.begin(), text.end()};
}

Bytes extension(std::size_t type, const Bytes& body) {
  return joined({number(type, 2), counted(body, 2)});
}

Bytes host_name(std::string_view name, std::uint8_t type = 0) {
  return joined({{type}, counted(text(name), 2)});
}

Bytes server_name(std::string_view name) {
  return extension(0, counted(host_name(name), 2));
}

struct HelloParts {
  Bytes version = {3, 3};
  Bytes session = Bytes(32, 7);
  Bytes suites = {0x13, 1, 0x13, 2};
  Bytes compression = {0};
  Bytes extensions{};
};

Bytes body_of(const HelloParts& parts) {
  return joined({parts.version, Bytes(32, 9), counted(parts.session, 1), counted(parts.suites, 2),
                 counted(parts.compression, 1), counted(parts.extensions, 2)});
}

Bytes handshake(const Bytes& body, std::uint8_t type = 1) {
  return joined({{type}, counted(body, 3)});
}

/// Splits a handshake into records of at most `size` bytes.
Bytes records(const Bytes& message, std::size_t size = 16384) {
  Bytes result;
  for (std::size_t at = 0; at < message.size(); at += size) {
    const std::size_t length = std::min(size, message.size() - at);
    const auto begin = message.begin() + static_cast<std::ptrdiff_t>(at);
    result = joined({result,
                     {22, 3, 1},
                     number(length, 2),
                     Bytes(begin, begin + static_cast<std::ptrdiff_t>(length))});
  }
  return result;
}

Bytes hello(const Bytes& extensions) {
  return records(handshake(body_of({.extensions = extensions})));
}

State state_of(const Bytes& bytes) {
  return read_client_hello(bytes).state;
}

TEST(Sni, IsFoundAmongOtherExtensionsInItsCanonicalForm) {
  const Bytes bytes = hello(joined(
      {extension(10, Bytes(6, 1)), server_name("API.Example.com"), extension(43, Bytes(3, 4))}));
  const ClientHello seen = read_client_hello(bytes);
  EXPECT_EQ(seen.state, State::named);
  EXPECT_EQ(seen.name, "api.example.com");
  EXPECT_FALSE(seen.encrypted);
}

TEST(Sni, IsFoundHoweverTheHelloIsCutIntoRecords) {
  const Bytes message = handshake(body_of({.extensions = server_name("api.example.com")}));
  for (std::size_t size = 1; size <= message.size(); ++size) {
    const ClientHello seen = read_client_hello(records(message, size));
    EXPECT_EQ(seen.state, State::named) << size;
    EXPECT_EQ(seen.name, "api.example.com") << size;
  }
}

TEST(Sni, EveryBeginningNeedsMoreAndWhatFollowsChangesNothing) {
  const Bytes bytes = records(handshake(body_of({.extensions = server_name("a.example")})), 50);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(state_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}),
              State::more)
        << length;
  EXPECT_EQ(state_of(bytes), State::named);
  EXPECT_EQ(state_of(joined({bytes, Bytes(100, 0xff)})), State::named);
}

TEST(Sni, EncryptedHelloIsToldAndItsOuterNameIsTheName) {
  const ClientHello seen = read_client_hello(
      hello(joined({extension(0xfe0d, Bytes(40, 2)), server_name("front.example")})));
  EXPECT_EQ(seen.state, State::named);
  EXPECT_EQ(seen.name, "front.example");
  EXPECT_TRUE(seen.encrypted);
}

TEST(Sni, AHelloWithoutANameIsSaidSo) {
  EXPECT_EQ(state_of(hello(extension(10, Bytes(6, 1)))), State::no_name);
  EXPECT_EQ(state_of(hello({})), State::no_name);
  Bytes without = body_of({});
  without.resize(without.size() - 2);  // TLS 1.2 permits omitting the extensions
  EXPECT_EQ(state_of(records(handshake(without))), State::no_name);
}

TEST(Sni, WhatIsNoHostNameIsABadName) {
  for (const std::string_view name :
       {"", "127.0.0.1", "::1", "[::1]", "a..example", "*.example.com", "a b.example",
        "a.example:443", "user@a.example", "0x7f.1",
        "b\xc3\xbc"
        "cher.example"})
    EXPECT_EQ(state_of(hello(server_name(name))), State::bad_name) << name;
  EXPECT_EQ(state_of(hello(server_name(std::string_view("a.example\0.evil", 15)))),
            State::bad_name);
  EXPECT_EQ(state_of(hello(server_name(std::string(64, 'a') + ".example"))), State::bad_name);
}

TEST(Sni, TwoNamesAreABadName) {
  // Two extensions, two names in one, a name of another type: servers differ in which one they use.
  const Bytes good = server_name("good.example");
  const Bytes evil = server_name("evil.example");
  EXPECT_EQ(state_of(hello(joined({good, evil}))), State::bad_name);
  EXPECT_EQ(state_of(hello(joined({good, good}))), State::bad_name);
  const Bytes both =
      extension(0, counted(joined({host_name("good.example"), host_name("evil.example")}), 2));
  EXPECT_EQ(state_of(hello(both)), State::bad_name);
  EXPECT_EQ(state_of(hello(extension(0, counted(host_name("good.example", 1), 2)))),
            State::bad_name);
  EXPECT_EQ(state_of(hello(extension(0, counted({}, 2)))), State::bad_name);
  EXPECT_EQ(state_of(hello(extension(0, {}))), State::bad_name);
  const Bytes trailing = extension(0, joined({counted(host_name("good.example"), 2), {0}}));
  EXPECT_EQ(state_of(hello(trailing)), State::bad_name);
}

TEST(Sni, OtherProtocolsAreToldFromTheirFirstBytes) {
  EXPECT_EQ(state_of(text("GET / HTTP/1.1\r\n")), State::not_tls);
  EXPECT_EQ(state_of(text("SSH-2.0-OpenSSH_9.2\r\n")), State::not_tls);
  EXPECT_EQ(state_of({0x80, 0x2e, 1, 3, 1}), State::not_tls) << "an SSL 2 hello";
  EXPECT_EQ(state_of({22, 2}), State::not_tls);
  EXPECT_EQ(state_of({23, 3, 3, 0, 5}), State::not_tls) << "application data";
  EXPECT_EQ(state_of({22, 3, 1, 0, 0}), State::not_tls) << "an empty record";
  EXPECT_EQ(state_of({22, 3, 1, 0x40, 1}), State::not_tls) << "a record of 16,385 bytes";
  EXPECT_EQ(state_of(records(handshake(Bytes(10, 0), 2))), State::not_tls) << "a server's hello";
  EXPECT_EQ(state_of({}), State::more);
  EXPECT_EQ(state_of({22}), State::more);
}

TEST(Sni, AnotherRecordWithinTheHelloIsNotTls) {
  const Bytes message = handshake(body_of({.extensions = server_name("a.example")}));
  const Bytes first(message.begin(), message.begin() + 20);
  const Bytes rest(message.begin() + 20, message.end());
  EXPECT_EQ(state_of(joined({records(first), {20, 3, 3, 0, 1, 1}, records(rest)})), State::not_tls);
}

TEST(Sni, MalformedHellosAreNotTls) {
  const auto broken = [](const HelloParts& parts) {
    return state_of(records(handshake(body_of(parts))));
  };
  EXPECT_EQ(broken({.version = {2, 0}}), State::not_tls);
  EXPECT_EQ(broken({.session = Bytes(33, 1)}), State::not_tls);
  EXPECT_EQ(broken({.suites = {}}), State::not_tls);
  EXPECT_EQ(broken({.suites = Bytes(3, 1)}), State::not_tls);
  EXPECT_EQ(broken({.compression = {}}), State::not_tls);
  EXPECT_EQ(broken({.extensions = {0, 0, 0}}), State::not_tls);
  EXPECT_EQ(broken({.extensions = {0, 0, 0, 9, 1}}), State::not_tls);
  EXPECT_EQ(state_of(records(handshake({}))), State::not_tls);
  Bytes longer = body_of({.extensions = server_name("a.example")});
  longer.push_back(0);
  EXPECT_EQ(state_of(records(handshake(longer))), State::not_tls);
}

TEST(Sni, NothingBeyond16KibibytesIsLookedAt) {
  const Bytes padding = extension(21, Bytes(15000, 0));
  EXPECT_EQ(state_of(hello(joined({padding, server_name("a.example")}))), State::named);
  const Bytes much = extension(21, Bytes(16300, 0));
  EXPECT_EQ(state_of(hello(joined({much, server_name("a.example")}))), State::too_large);
  // Decided as soon as the length is known.
  const Bytes large = joined({{22, 3, 1, 0x10, 0}, {1}, number(70000, 3)});
  EXPECT_EQ(state_of(large), State::too_large);
  // Records of one byte each: six bytes for every one.
  const Bytes small = records(handshake(body_of({.extensions = extension(21, Bytes(4000, 0))})), 1);
  EXPECT_EQ(state_of(small), State::too_large);
  EXPECT_EQ(state_of({small.begin(), small.begin() + 16383}), State::more);
}

}  // namespace
}  // namespace sbx::network
