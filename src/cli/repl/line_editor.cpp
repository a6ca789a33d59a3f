#include "cli/repl/line_editor.hpp"

#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "cli/repl/history.hpp"
#include "cli/repl/wide.hpp"

namespace sbx::cli {
namespace {

constexpr std::string_view kPasteEnd = "\033[201~";

struct Binding {
  const wchar_t* keys;
  const wchar_t* does;
};
constexpr Binding kKeys[] = {
    {L"^R", L"em-inc-search-prev"},
    {L"^W", L"ed-delete-prev-word"},
    {L"^I", L"sbx-complete"},
    {L"\\e[200~", L"sbx-paste"},
    {L"\\e[3~", L"ed-delete-next-char"},
    {L"\\e[H", L"ed-move-to-beg"},
    {L"\\e[F", L"ed-move-to-end"},
    {L"\\e[1~", L"ed-move-to-beg"},
    {L"\\e[4~", L"ed-move-to-end"},
    {L"\\e[1;5C", L"em-next-word"},
    {L"\\e[1;5D", L"ed-prev-word"},
};

/// libedit asks the locale which characters are wide and how they are written. Where this machine
/// has none with UTF-8 they are shown as numbers; what is typed is kept.
void use_utf8() {
  for (const char* const name : {"C.UTF-8", "", "en_US.UTF-8"}) {
    locale_t made = ::newlocale(LC_CTYPE_MASK, name, nullptr);
    if (made == nullptr) continue;
    locale_t before = ::uselocale(made);
    // Not nl_langinfo_l(): linked statically, glibc 2.36 answers that for the locale "C".
    if (std::string_view(::nl_langinfo(CODESET)) == "UTF-8") return;
    ::uselocale(before);
    ::freelocale(made);
  }
}

std::size_t columns() {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

bool is_dumb() {
  const char* const terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) == "dumb";
}

void emit(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

/// What all of them begin with, in whole characters.
std::string common_beginning(const std::vector<std::string>& matches) {
  std::string_view common = matches.front();
  for (const std::string& each : matches) {
    const auto [end, ignored] = std::ranges::mismatch(common, each);
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  while (!is_utf8(common)) common.remove_suffix(1);
  return std::string(common);
}

std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0U) != 0x80; }));
}

}  // namespace

std::string in_columns(const Questions::Completion& completion, std::size_t width) {
  constexpr std::size_t kGap = 2;
  const std::size_t point = completion.replaces.rfind('.');
  const std::size_t hidden = point == std::string::npos ? 0 : point + 1;
  std::vector<std::string> names;
  std::size_t longest = 1;
  for (const std::string& match : completion.matches) {
    names.push_back(match.substr(hidden));
    longest = std::max(longest, length_of(names.back()));
  }
  const std::size_t across = std::max<std::size_t>(1, width / (longest + kGap));
  const std::size_t rows = (names.size() + across - 1) / across;
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t at = row; at < names.size(); at += rows) {
      text += names[at];
      if (at + rows < names.size()) text.append(longest + kGap - length_of(names[at]), ' ');
    }
    text += '\n';
  }
  return text;
}

/// libedit's state, and what its callbacks need.
class LineEditor::Terminal {
 public:
  Terminal(int signals, Complete complete) : signals_(signals), complete_(std::move(complete)) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (edit_ != nullptr) ::el_end(edit_);
    if (history_ != nullptr) ::history_wend(history_);
  }

  bool begin() {
    use_utf8();
    edit_ = ::el_init("sbx", stdin, stdout, stderr);
    history_ = ::history_winit();
    if (edit_ == nullptr || history_ == nullptr) return false;
    HistEventW event{};
    ::history_w(history_, &event, H_SETSIZE, static_cast<int>(History::kMost));
    ::history_w(history_, &event, H_SETUNIQUE, 1);
    ::el_wset(edit_, EL_CLIENTDATA, this);
    ::el_wset(edit_, EL_EDITOR, L"emacs");
    ::el_wset(edit_, EL_SIGNAL, 0);
    ::el_wset(edit_, EL_HIST, ::history_w, history_);
    ::el_wset(edit_, EL_GETCFN, &Terminal::get_character);
    ::el_wset(edit_, EL_PROMPT, &Terminal::get_prompt);
    ::el_wset(edit_, EL_ADDFN, L"sbx-complete", L"Complete a name", &Terminal::get_completion);
    ::el_wset(edit_, EL_ADDFN, L"sbx-paste", L"Insert pasted text", &Terminal::get_pasted);
    for (const Binding& key : kKeys) ::el_wset(edit_, EL_BIND, key.keys, key.does, nullptr);
    // Without a locale libedit takes these for keys with Meta.
    for (wchar_t letter = 0xa0; letter <= 0xff; ++letter)
      ::el_wset(edit_, EL_BIND, std::wstring(1, letter).c_str(), L"ed-insert", nullptr);
    return true;
  }

  void remember(const std::string& text) {
    HistEventW event{};
    ::history_w(history_, &event, H_ENTER, to_wide(text).c_str());
  }

  Line read(const std::string& prompt, const std::string& indent) {
    prompt_ = to_wide(prompt);
    line_ = {};
    const OwnSignals own(*this);
    if (!is_dumb()) emit("\033[?2004h");  // pasted text comes in brackets
    if (!indent.empty()) ::el_wpush(edit_, to_wide(indent).c_str());
    ::el_wset(edit_, EL_PREP_TERM, 1);  // before the prompt: who sees it types keys, not lines
    int count = 0;
    const wchar_t* const text = ::el_wgets(edit_, &count);
    if (!is_dumb()) emit("\033[?2004l");
    if (line_.end != Line::End::line) {
      emit("\n");
      return line_;
    }
    if (text == nullptr || count <= 0) return {.end = Line::End::end_of_input};
    line_.text = from_wide(std::wstring_view(text, static_cast<std::size_t>(count)));
    if (line_.text.ends_with('\n')) line_.text.pop_back();
    return line_;
  }

 private:
  /// While a line is read, the signals that concern the terminal come through a descriptor too.
  class OwnSignals {
   public:
    explicit OwnSignals(Terminal& terminal) : terminal_(terminal) {
      sigset_t taken;
      ::sigemptyset(&taken);
      for (const int signal : {SIGWINCH, SIGTSTP}) ::sigaddset(&taken, signal);
      ::sigprocmask(SIG_BLOCK, &taken, &before_);
      terminal_.changes_ = UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    OwnSignals(const OwnSignals&) = delete;
    OwnSignals& operator=(const OwnSignals&) = delete;
    ~OwnSignals() {
      terminal_.changes_.reset();
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }

   private:
    Terminal& terminal_;
    sigset_t before_{};
  };

  static Terminal& of(EditLine* edit) {
    void* data = nullptr;
    ::el_wget(edit, EL_CLIENTDATA, &data);
    return *static_cast<Terminal*>(data);
  }
  static wchar_t* get_prompt(EditLine* edit) { return of(edit).prompt_.data(); }
  static int get_character(EditLine* edit, wchar_t* letter) { return of(edit).character(letter); }
  static unsigned char get_completion(EditLine* edit, wint_t /*key*/) {
    return of(edit).complete();
  }
  static unsigned char get_pasted(EditLine* edit, wint_t /*key*/) { return of(edit).paste(); }

  /// 1, or 0 at the end of input, or -1 where the line ends otherwise.
  int character(wchar_t* letter) {
    std::string bytes;
    for (;;) {
      if (!wait()) return -1;
      char byte = 0;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return 0;  // EIO: the terminal is gone
      // Ctrl-D, typed while a cell ran: the terminal still gathered lines, for which it marks the
      // place with NUL (Linux, drivers/tty/n_tty.c), and that is left when single keys are read.
      // Ctrl-Space is NUL too, so this one can't mean the end; libedit would take the key after it
      // as it is, as after Ctrl-V.
      if (byte == '\0' && bytes.empty()) continue;
      bytes += byte;
      const bool is_whole = sequence_length(bytes) != 0;
      const bool goes_on = !is_whole && may_go_on(bytes);
      if (goes_on) continue;
      *letter = to_wide(bytes).back();
      return 1;
    }
  }

  /// Whether more bytes can make a character of these.
  static bool may_go_on(std::string_view bytes) {
    const auto lead = static_cast<unsigned char>(bytes[0]);
    const std::size_t needs = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    return bytes.size() < needs &&
           std::ranges::all_of(
               bytes.substr(1),
               [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80; });
  }

  /// Until there is something to read; false where a signal ends the line.
  bool wait() {
    for (;;) {
      pollfd watched[3] = {
          {STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}, {changes_.get(), POLLIN, 0}};
      if (::poll(watched, 3, -1) < 0) continue;
      signalfd_siginfo info{};
      if (watched[1].revents != 0 && ::read(signals_, &info, sizeof info) == sizeof info) {
        line_.signal = static_cast<int>(info.ssi_signo);
        line_.end = line_.signal == SIGINT ? Line::End::interrupted : Line::End::signal;
        if (line_.signal == SIGINT) emit("^C");
        return false;
      }
      if (watched[2].revents != 0 && ::read(changes_.get(), &info, sizeof info) == sizeof info)
        take_change(static_cast<int>(info.ssi_signo));
      if (watched[0].revents != 0) return true;
    }
  }

  void take_change(int signal) {
    if (signal == SIGWINCH) return ::el_resize(edit_);
    ::el_wset(edit_, EL_PREP_TERM, 0);
    (void)::raise(SIGSTOP);
    ::el_wset(edit_, EL_PREP_TERM, 1);
    ::el_wset(edit_, EL_REFRESH);
  }

  unsigned char complete() {
    const LineInfoW& info = *::el_wline(edit_);
    const std::string before = from_wide(
        std::wstring_view(info.buffer, static_cast<std::size_t>(info.cursor - info.buffer)));
    const std::size_t begin = before.rfind('\n') + 1;  // 0 where there is none
    if (before.find_first_not_of(" \t", begin) == std::string::npos) return insert(L"    ");
    const Questions::Completion found = complete_(before);
    if (found.matches.empty()) return CC_ERROR;
    const std::string common = common_beginning(found.matches);
    if (common.size() > found.replaces.size())
      return insert(to_wide(common.substr(found.replaces.size())).c_str());
    if (found.matches.size() == 1) return CC_NORM;
    emit("\n" + in_columns(found, columns()));
    return CC_REDISPLAY;
  }

  unsigned char insert(const wchar_t* text) {
    return ::el_winsertstr(edit_, text) == 0 ? CC_REFRESH : CC_ERROR;
  }

  /// Line feeds in it are part of the text: the whole becomes one cell.
  unsigned char paste() {
    std::wstring text;
    const std::wstring end = to_wide(kPasteEnd);
    wchar_t letter = 0;
    while (!text.ends_with(end)) {
      if (character(&letter) != 1) return CC_EOF;
      if (letter == L'\n' && text.ends_with(L'\r')) continue;
      text += letter;
    }
    text.resize(text.size() - end.size());
    std::ranges::replace(text, L'\r', L'\n');
    while (text.ends_with(L'\n')) text.pop_back();
    return insert(text.c_str());
  }

  int signals_;
  Complete complete_;
  EditLine* edit_ = nullptr;
  HistoryW* history_ = nullptr;
  UniqueFd changes_;
  std::wstring prompt_;
  Line line_;
};

LineEditor::LineEditor(std::unique_ptr<Terminal> terminal) : terminal_(std::move(terminal)) {}
LineEditor::LineEditor(LineEditor&&) noexcept = default;
LineEditor& LineEditor::operator=(LineEditor&&) noexcept = default;
LineEditor::~LineEditor() = default;

std::optional<LineEditor> LineEditor::open(int signals, Complete complete) {
  auto terminal = std::make_unique<Terminal>(signals, std::move(complete));
  if (!terminal->begin()) return std::nullopt;
  return LineEditor(std::move(terminal));
}

void LineEditor::remember(const std::string& text) {
  terminal_->remember(text);
}

Line LineEditor::read(const std::string& prompt, const std::string& indent) {
  return terminal_->read(prompt, indent);
}

void LineEditor::begin_fresh_line() const {
  if (is_dumb()) return;
  // If the cursor is not in the first column, a line of blanks ends in the next line; the return
  // leads there.
  emit("\033[0m" + std::string(columns(), ' ') + "\r\033[K");
}

}  // namespace sbx::cli
