#include "supervise/streams/escape_filter.hpp"

namespace sbx::supervise {
namespace {

constexpr unsigned char kEscape = 0x1b;
constexpr unsigned char kBell = 0x07;
constexpr unsigned char kEnquiry = 0x05;  // the terminal answers with its answerback text
constexpr unsigned char kCancel = 0x18;
constexpr unsigned char kSubstitute = 0x1a;
constexpr std::size_t kLongestSequence = 128;
constexpr std::size_t kLongestString = 4096;

bool plain(unsigned char byte) {
  return byte >= 0x20 && byte < 0x7f;
}

void append_visible(unsigned char byte, std::string& output) {
  static constexpr char kDigits[] = "0123456789abcdef";
  if (byte < 0x20 || byte == 0x7f) {
    output += '^';
    output += static_cast<char>(byte ^ 0x40);
  } else if (byte < 0x7f) {
    output += static_cast<char>(byte);
  } else {
    output += "\\x";
    output += kDigits[byte >> 4];
    output += kDigits[byte & 0xf];
  }
}

/// Length of the UTF-8 character that starts with this byte; 0 if none does.
std::size_t length_of(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

/// Restricts second bytes so that no character has two encodings: a lenient terminal could
/// otherwise read an over-long control character.
bool may_follow(unsigned char lead, std::size_t position, unsigned char byte) {
  if (position != 1) return byte >= 0x80 && byte <= 0xbf;
  switch (lead) {
    case 0xe0:
      return byte >= 0xa0 && byte <= 0xbf;
    case 0xed:
      return byte >= 0x80 && byte <= 0x9f;
    case 0xf0:
      return byte >= 0x90 && byte <= 0xbf;
    case 0xf4:
      return byte >= 0x80 && byte <= 0x8f;
    default:
      return byte >= 0x80 && byte <= 0xbf;
  }
}

/// The sequences allowed to an interactive program: complete sequences that the terminal doesn't
/// answer. All others, including reports (c, n, t, x, $p, >q, ?u), printing (i) and checksums, are
/// dropped.
struct AllowedCsi {
  std::string_view lead;    ///< private marker, intermediate, or empty
  std::string_view finals;  ///< final bytes
};
constexpr AllowedCsi kAllowedCsi[] = {
    {"", "@ABCDEFGHIJKLMPSTXZ`abdefghlmrsu"},  // cursor, erase, scroll, modes, colours, margins
    {"?", "hlmrsJK"},                          // private modes, their saving, selective erase
    {">", "mu"},                               // key modes: modifyOtherKeys, kitty push
    {"<", "u"},                                // kitty pop
    {"=", "u"},                                // kitty set
    {" ", "q@A"},                              // cursor shape, scroll left and right
    {"!", "p"},                                // soft reset
};

bool allowed_csi(std::string_view body) {  // without "ESC ["
  std::string_view marker;
  if (!body.empty() && body.front() >= 0x3c && body.front() <= 0x3f) marker = body.substr(0, 1);
  const std::size_t last = body.size() - 1;
  if (last >= 1 && body[last - 1] >= 0x20 && body[last - 1] <= 0x2f) {
    if (!marker.empty()) return false;
    marker = body.substr(last - 1, 1);
  }
  for (const AllowedCsi& row : kAllowedCsi)
    if (row.lead == marker) return row.finals.find(body[last]) != std::string_view::npos;
  return false;
}

}  // namespace

void EscapeFilter::feed(std::string_view input, std::string& output) {
  std::size_t at = 0;
  while (at < input.size()) {
    if (state_ == State::ground) {
      const std::size_t start = at;
      while (at < input.size() && plain(static_cast<unsigned char>(input[at]))) ++at;
      output.append(input, start, at - start);
      if (at == input.size()) return;
    }
    step(static_cast<unsigned char>(input[at++]), output);
  }
}

void EscapeFilter::finish(std::string& output) {
  if (state_ != State::string && state_ != State::string_escape) reject_held(output);
  held_.clear();
  state_ = State::ground;
}

void EscapeFilter::step(unsigned char byte, std::string& output) {
  switch (state_) {
    case State::ground:
      return ground(byte, output);
    case State::utf8:
      return utf8(byte, output);
    case State::escape:
      return escape(byte, output);
    case State::escape_intermediate:
      return escape_intermediate(byte, output);
    case State::csi:
      return csi(byte, output);
    case State::string:
      return string(byte);
    case State::string_escape:
      state_ = State::ground;
      if (byte == '\\') return;
      held_.assign(1, static_cast<char>(kEscape));  // ESC ends a string, starts the next
      state_ = State::escape;
      return escape(byte, output);
  }
}

void EscapeFilter::ground(unsigned char byte, std::string& output) {
  if (plain(byte)) {
    output += static_cast<char>(byte);
  } else if (byte < 0x80) {
    control(byte, output);
  } else if ((expected_ = length_of(byte)) != 0) {
    held_.assign(1, static_cast<char>(byte));
    state_ = State::utf8;
  } else {
    held_.assign(1, static_cast<char>(byte));
    reject_held(output);
  }
}

void EscapeFilter::control(unsigned char byte, std::string& output) {
  if (byte == kEscape) {
    held_.assign(1, static_cast<char>(byte));
    state_ = State::escape;
  } else if (byte == '\t' || byte == '\n' || byte == '\r') {
    output += static_cast<char>(byte);
  } else if (policy_ == EscapePolicy::visible) {
    append_visible(byte, output);
  } else if (byte != kEnquiry) {
    output += static_cast<char>(byte);
  }
}

void EscapeFilter::utf8(unsigned char byte, std::string& output) {
  const auto lead = static_cast<unsigned char>(held_.front());
  if (!may_follow(lead, held_.size(), byte)) {
    reject_held(output);
    return step(byte, output);
  }
  held_ += static_cast<char>(byte);
  if (held_.size() < expected_) return;
  const bool is_control = lead == 0xc2 && byte < 0xa0;  // U+0080 to U+009F
  if (is_control) return reject_held(output);
  pass_held(output);
}

void EscapeFilter::escape(unsigned char byte, std::string& output) {
  if (byte == '[') {
    held_ += static_cast<char>(byte);
    state_ = State::csi;
    return;
  }
  if (policy_ == EscapePolicy::visible || byte < 0x20 || byte >= 0x7f) {
    reject_held(output);
    return step(byte, output);
  }
  held_ += static_cast<char>(byte);
  if (std::string_view("]P_^X").find(static_cast<char>(byte)) != std::string_view::npos) {
    held_.clear();
    expected_ = 0;
    state_ = State::string;
  } else if (byte < 0x30) {
    state_ = State::escape_intermediate;
  } else if (byte == 'Z') {  // DECID: asks the terminal for its identity
    reject_held(output);
  } else {
    pass_held(output);
  }
}

void EscapeFilter::escape_intermediate(unsigned char byte, std::string& output) {
  if (byte < 0x20 || byte >= 0x7f) {
    reject_held(output);
    return step(byte, output);
  }
  held_ += static_cast<char>(byte);
  if (byte < 0x30 && held_.size() < kLongestSequence) return;
  // Character sets and line attributes. Excluded: "ESC % @", which ends UTF-8, and "ESC SP G",
  // which makes the terminal answer in 8-bit controls.
  const bool known = std::string_view("()*+#").find(held_[1]) != std::string_view::npos;
  if (known && held_.size() == 3) return pass_held(output);
  reject_held(output);
}

void EscapeFilter::csi(unsigned char byte, std::string& output) {
  const bool shown = policy_ == EscapePolicy::visible;
  const bool parameter = shown ? byte >= 0x30 && byte <= 0x3b : byte >= 0x20 && byte <= 0x3f;
  if (parameter && held_.size() < kLongestSequence) {
    held_ += static_cast<char>(byte);
    return;
  }
  if (shown && byte == 'm') {
    held_ += 'm';
    return pass_held(output);
  }
  if (!shown && byte >= 0x40 && byte < 0x7f) {
    held_ += static_cast<char>(byte);
    return allowed_csi(std::string_view(held_).substr(2)) ? pass_held(output) : reject_held(output);
  }
  reject_held(output);
  step(byte, output);
}

void EscapeFilter::string(unsigned char byte) {
  if (byte == kEscape) {
    state_ = State::string_escape;
  } else if (byte == kBell || byte == kCancel || byte == kSubstitute ||
             ++expected_ > kLongestString) {
    state_ = State::ground;
  }
}

void EscapeFilter::reject_held(std::string& output) {
  if (policy_ == EscapePolicy::visible) {
    for (const char held : held_) append_visible(static_cast<unsigned char>(held), output);
  } else if (held_.size() == 1 && static_cast<unsigned char>(held_.front()) >= 0xa0) {
    output += held_;  // a byte of an 8-bit character set
  }
  held_.clear();
  state_ = State::ground;
}

void EscapeFilter::pass_held(std::string& output) {
  output += held_;
  held_.clear();
  state_ = State::ground;
}

}  // namespace sbx::supervise
