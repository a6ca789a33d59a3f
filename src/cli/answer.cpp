#include "cli/answer.hpp"

#include <fmt/format.h>
#include <time.h>

#include <sbx/outcome.hpp>

#include "record/words.hpp"

namespace sbx::cli {

int print(const std::string& text) {
  return record::print_answer(text) ? kDone : exit_status::kCouldNot;
}

std::string time_text(std::int64_t seconds) {
  const time_t time = seconds;
  tm local{};
  if (seconds == 0 || ::localtime_r(&time, &local) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::string minute_text(std::int64_t seconds) {
  const std::string text = time_text(seconds);
  return text.substr(0, text.rfind(':'));
}

}  // namespace sbx::cli
