// What a client of `sbx mcp` writes: however its bytes arrive, the lines are the same, each is
// answered by one line of JSON at most, and nothing of it reaches a model or a terminal as a
// control character.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/rendering.hpp"
#include "base/event_loop.hpp"
#include "base/json_read.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "base/visible_text.hpp"
#include "fuzz.hpp"
#include "mcp/message.hpp"
#include "mcp/wire.hpp"

using namespace sbx;

namespace {

/// The lines of a client that writes these parts, with a turn of the loop after each.
std::vector<std::string> heard(const std::vector<std::string_view>& parts) {
  EventLoop loop = std::move(*EventLoop::make());
  auto in = std::move(*sys::make_pipe());
  auto out = std::move(*sys::make_pipe());
  mcp::Wire wire(std::move(in.read), std::move(out.write));
  std::vector<std::string> lines;
  bool ended = false;
  must(wire.attach(loop, {.line = [&](const std::string& line) { lines.push_back(line); },
                          .too_long = [] { must(false); },
                          .ended = [&] { ended = true; }})
           .has_value());
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    must(::write(in.write.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()));
    must(loop.run_once().has_value());
  }
  in.write.reset();
  while (!ended) must(loop.run_once().has_value());
  return lines;
}

Json sent(const std::string& text) {
  must(!text.contains('\n') && is_utf8(text));
  Json message = read_json(text);
  must(message.is_object() && message["jsonrpc"] == "2.0");
  return message;
}

void answer(const std::string& line) {
  const auto message = mcp::read_message(line);
  if (const auto* const problem = std::get_if<mcp::Problem>(&message)) {
    const Json told = sent(mcp::problem_text(*problem));
    must(told["id"] == problem->id && told["error"]["code"].is_number_integer());
  } else if (const auto* const request = std::get_if<mcp::Request>(&message)) {
    must(request->params.is_object() && request->bytes == line.size());
    must(request->id.is_null() || request->id.is_string() || request->id.is_number());
    const Json told =
        sent(mcp::answer_text(request->id, request->era, agent::result_of_text(request->method)));
    must(told["id"] == request->id);
    must(told["result"].contains("resultType") == (request->era == mcp::Era::modern));
    (void)mcp::legacy_version(request->params);
  }
}

void show(const std::string& text) {
  const auto is_control = [](char each) {
    return (static_cast<unsigned char>(each) < ' ' && each != '\n' && each != '\t') || each == 0x7F;
  };
  const std::string shown = visible_text(text);
  must(is_utf8(shown) && std::ranges::none_of(shown, is_control));
  must(visible_text(shown) == shown);
  constexpr std::size_t kMost = 20;
  const std::string line = visible_line(text, kMost);
  must(is_utf8(line) && !line.contains('\n') && std::ranges::none_of(line, is_control));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOfPipe = 60'000;
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kOfPipe));
  const std::vector<std::string> lines = heard({bytes});
  const std::size_t cut = bytes.empty() ? 0 : data[bytes.size() - 1] % (bytes.size() + 1);
  must(heard({bytes.substr(0, cut), bytes.substr(cut)}) == lines);
  for (const std::string& line : lines) {
    answer(line);
    show(line);
  }
  return 0;
}
