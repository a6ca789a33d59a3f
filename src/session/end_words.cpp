#include "session/end_words.hpp"

namespace sbx::session {

const char* words_of_end(EndCause cause) {
  switch (cause) {
    case EndCause::kill:
      return "cancelled by SIGTERM: sbx session kill";
    case EndCause::stop:
      return "cancelled by SIGTERM: the session was stopped";
    case EndCause::lifetime:
      return "cancelled by SIGTERM: session.lifetime is over";
    case EndCause::owner:
      return nullptr;
  }
  return nullptr;
}

}  // namespace sbx::session
