#include "session/end_words.hpp"

namespace sbx::session {

const char* words_of_call_end(EndCause cause) {
  switch (cause) {
    case EndCause::kill:
      return "sbx session kill cancelled the call";
    case EndCause::stop:
      return "the session was stopped, and the call with it";
    case EndCause::lifetime:
      return "session.lifetime is over, and the session with its calls";
    case EndCause::owner:
      return nullptr;
  }
  return nullptr;
}

const char* words_of_context_end(EndCause cause) {
  switch (cause) {
    case EndCause::stop:
      return "cancelled by SIGTERM: the session was stopped";
    case EndCause::lifetime:
      return "cancelled by SIGTERM: session.lifetime is over";
    case EndCause::kill:
    case EndCause::owner:
      return nullptr;
  }
  return nullptr;
}

}  // namespace sbx::session
