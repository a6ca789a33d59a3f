#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/sys.hpp"
#include "transfer/archive.hpp"
#include "transfer/host.hpp"
#include "transfer/inside.hpp"
#include "workspace/collect.hpp"

namespace sbx::transfer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

auto left(const std::string& path, const std::string& why) {
  return AllOf(Field(&workspace::Left::path, path), Field(&workspace::Left::why, HasSubstr(why)));
}

/// inside_main() in a process of its own, between pipes.
struct Inside {
  pid_t pid = -1;
  UniqueFd to;
  UniqueFd from;

  int wait() const {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }
};

/// Three directories: `host` and `out` of the host, `box` for the working directory in the sandbox.
class TransferTest : public testing::Test {
 protected:
  TransferTest() {
    (void)std::signal(SIGPIPE, SIG_IGN);
    (void)std::signal(SIGXFSZ, SIG_IGN);
    std::string name = testing::TempDir() + "/sbx-transfer-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = fs::canonical(name);
    for (const char* each : {"host", "out", "box"}) fs::create_directory(at(each));
  }
  ~TransferTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  [[nodiscard]] fs::path at(const std::string& name) const { return root_ / name; }
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    fs::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << text;
    ASSERT_EQ(::chmod(at(name).c_str(), mode), 0);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(at(name));
    std::string text(fs::file_size(at(name)), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }
  [[nodiscard]] struct stat facts(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(::lstat(at(name).c_str(), &found), 0) << name;
    return found;
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& below) const {
    std::vector<std::string> list;
    for (const auto& each : fs::recursive_directory_iterator(at(below)))
      list.push_back(fs::relative(each.path(), at(below)));
    std::ranges::sort(list);
    return list;
  }
  /// Type, mode and content of everything below a directory.
  [[nodiscard]] std::map<std::string, std::string> everything(const std::string& below) const {
    std::map<std::string, std::string> found;
    for (const std::string& each : names(below)) {
      const struct stat is = facts(below + "/" + each);
      const std::string content = S_ISREG(is.st_mode) ? read(below + "/" + each)
                                  : S_ISLNK(is.st_mode)
                                      ? fs::read_symlink(at(below) / each).string()
                                      : "";
      const std::string mode = S_ISLNK(is.st_mode) ? "link" : std::to_string(is.st_mode);
      found[each] = mode + " " + std::to_string(is.st_mtim.tv_sec) + " " + content;
    }
    return found;
  }

  [[nodiscard]] Inside start(const std::vector<std::string>& words,
                             rlim_t largest_file = RLIM_INFINITY) const {
    auto to = sys::make_pipe();
    auto from = sys::make_pipe();
    Inside inside;
    inside.pid = ::fork();
    if (inside.pid == 0) {
      const rlimit limit{.rlim_cur = largest_file, .rlim_max = largest_file};
      if (::chdir(at("box").c_str()) != 0 || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(9);
      ::setenv("HOME", at("box/home").c_str(), 1);
      ::dup2(to->read.get(), STDIN_FILENO);
      ::dup2(from->write.get(), STDOUT_FILENO);
      for (const int fd : {to->read.get(), to->write.get(), from->read.get(), from->write.get()})
        ::close(fd);
      std::vector<const char*> arguments;
      for (const std::string& word : words) arguments.push_back(word.c_str());
      ::_exit(inside_main(arguments));
    }
    inside.to = std::move(to->write);
    inside.from = std::move(from->read);
    return inside;
  }

  struct Put {
    Sent sent;
    Result<Report> report;
    int status = 0;
  };
  [[nodiscard]] Put put(const std::vector<std::string>& names, const std::string& target = {},
                        rlim_t largest_file = RLIM_INFINITY) const {
    std::vector<std::string> sources;
    sources.reserve(names.size());
    for (const std::string& each : names) sources.push_back(at("host").string() + "/" + each);
    const auto words = put_arguments(sources, target);
    EXPECT_TRUE(words);
    Inside inside = start(*words, largest_file);
    Put done;
    done.sent = send_files(inside.to.get(), sources);
    inside.to.reset();
    done.report = read_report(inside.from.get());
    done.status = inside.wait();
    return done;
  }

  [[nodiscard]] Receiving receiving(std::vector<std::string> paths,
                                    workspace::OutLimits limits = kWide) const {
    return {.paths = std::move(paths), .limits = limits, .place = at("out")};
  }
  [[nodiscard]] Unpacked receive(int from, const Receiving& what) const {
    const auto target = workspace::prepare_target(at("out"));
    auto done = receive_files(from, target->get(), what);
    EXPECT_TRUE(done);
    return done ? std::move(*done) : Unpacked();
  }
  struct Got {
    Unpacked done;
    int status = 0;
  };
  [[nodiscard]] Got get(const std::vector<std::string>& paths,
                        workspace::OutLimits limits = kWide) const {
    const auto words = get_arguments(paths, limits);
    EXPECT_TRUE(words);
    Inside inside = start(*words);
    Got got;
    got.done = receive(inside.from.get(), receiving(paths, limits));
    inside.from.reset();
    got.status = inside.wait();
    return got;
  }

  /// An archive that no honest end would send.
  class Forged {
   public:
    Forged() : fd_(::memfd_create("archive", MFD_CLOEXEC)), writer_(fd_.get()) {}
    Forged& frame(const Frame& frame) {
      EXPECT_TRUE(writer_.put(frame));
      return *this;
    }
    Forged& file(const std::string& name, const std::string& content = "x") {
      frame({.kind = FrameKind::file, .mode = 0644, .size = content.size(), .name = name});
      if (!content.empty()) {
        frame({.kind = FrameKind::data, .size = content.size()});
        EXPECT_TRUE(writer_.bytes(content));
      }
      return frame({.kind = FrameKind::complete});
    }
    Forged& directory(const std::string& name) {
      return frame({.kind = FrameKind::directory, .mode = 0755, .name = name});
    }
    Forged& link(const std::string& name, const std::string& text) {
      return frame({.kind = FrameKind::link, .name = name, .text = text});
    }
    Forged& end() { return frame({.kind = FrameKind::end}); }
    /// Its descriptor, at the beginning.
    int fd() {
      EXPECT_TRUE(writer_.flush());
      ::lseek(fd_.get(), 0, SEEK_SET);
      return fd_.get();
    }
    std::string bytes() {
      auto text = sys::read_all(fd(), std::size_t{1} << 30);
      return text ? *text : "";
    }

   private:
    UniqueFd fd_;
    Writer writer_;
  };
  [[nodiscard]] Unpacked receive_bytes(const std::string& bytes, const Receiving& what) const {
    const UniqueFd fd(::memfd_create("archive", MFD_CLOEXEC));
    EXPECT_TRUE(sys::write_all(fd.get(), bytes));
    ::lseek(fd.get(), 0, SEEK_SET);
    return receive(fd.get(), what);
  }

  static constexpr workspace::OutLimits kWide{
      .max_bytes = 1 << 30, .max_files = 10'000, .max_depth = 100};
  fs::path root_;
};

std::vector<std::string> paths_of(const Unpacked& done) {
  std::vector<std::string> paths;
  for (const Brought& each : done.brought) paths.push_back(each.path);
  return paths;
}

TEST_F(TransferTest, ATreeGoesInAndComesOutAsItWas) {
  write("host/tree/a b", "one", 0755);
  write("host/tree/line\nbreak", "two", 0600);
  write("host/tree/\xff\xfe", "three");
  write("host/tree/" + std::string(255, 'n'), "four");
  write("host/tree/empty", "");
  write("host/tree/deep/er/large", std::string((3 << 20) + 7, 'l'), 0444);
  fs::create_directories(at("host/tree/none"));
  fs::create_symlink("../a b", at("host/tree/deep/link"));
  ASSERT_EQ(::chmod(at("host/tree/deep/er").c_str(), 0750), 0);
  const timespec old[2] = {{.tv_sec = 1'000'000'000}, {.tv_sec = 1'000'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, at("host/tree/deep/er").c_str(), old, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, at("host/tree/a b").c_str(), old, 0), 0);
  auto before = everything("host");
  const Put in = put({"tree"});
  EXPECT_TRUE(in.sent.is_whole);
  EXPECT_THAT(in.sent.left, IsEmpty());
  ASSERT_TRUE(in.report);
  EXPECT_EQ(in.report->files, 6U);
  EXPECT_EQ(in.report->bytes, in.sent.bytes);
  EXPECT_THAT(in.report->left, IsEmpty());
  EXPECT_EQ(in.status, 0);
  const Got out = get({"tree"});
  EXPECT_EQ(out.status, 0);
  EXPECT_FALSE(out.done.broken);
  EXPECT_FALSE(out.done.has_failures);
  EXPECT_THAT(out.done.left, IsEmpty());
  EXPECT_EQ(out.done.sum.files, 6U);
  EXPECT_EQ(out.done.brought.size(), 11U);
  auto inside = everything("box");
  auto after = everything("out");
  for (auto* all : {&before, &inside, &after}) all->erase("tree/deep/link");  // its time is its own
  EXPECT_EQ(inside, before);
  EXPECT_EQ(after, before);
  EXPECT_EQ(fs::read_symlink(at("out/tree/deep/link")), "../a b");
}

TEST_F(TransferTest, HolesStayHoles) {
  write("host/sparse", "begin");
  ASSERT_EQ(::truncate(at("host/sparse").c_str(), 16 << 20), 0);
  std::ofstream(at("host/sparse"), std::ios::app) << "end";
  ASSERT_EQ(::truncate(at("host/sparse").c_str(), 20 << 20), 0);
  EXPECT_EQ(put({"sparse"}).status, 0);
  EXPECT_EQ(get({"sparse"}).status, 0);
  EXPECT_EQ(read("out/sparse"), read("host/sparse"));
  EXPECT_EQ(facts("out/sparse").st_size, 20 << 20);
  EXPECT_LT(facts("out/sparse").st_blocks * 512, 1 << 20);
  EXPECT_LT(facts("box/sparse").st_blocks * 512, 1 << 20);
}

TEST_F(TransferTest, PutUnderstandsItsTarget) {
  write("host/file", "f");
  write("host/dir/in", "i");
  fs::create_directories(at("box/there"));
  fs::create_directories(at("box/home"));
  EXPECT_EQ(put({"file"}, "there").status, 0);
  EXPECT_EQ(put({"file"}, "new/er/").status, 0);
  EXPECT_EQ(put({"file"}, "named").status, 0);
  EXPECT_EQ(put({"file"}, "~/x").status, 0);
  EXPECT_EQ(put({"file", "dir"}, "both").status, 0);
  EXPECT_EQ(put({"dir"}, "renamed").status, 0);
  EXPECT_EQ(put({"dir/."}, "content").status, 0);
  EXPECT_EQ(put({"file"}, at("box/absolute")).status, 0);
  EXPECT_EQ(read("box/there/file"), "f");
  EXPECT_EQ(read("box/new/er/file"), "f");
  EXPECT_EQ(read("box/named"), "f");
  EXPECT_EQ(read("box/home/x"), "f");
  EXPECT_EQ(read("box/both/file"), "f");
  EXPECT_EQ(read("box/both/dir/in"), "i");
  EXPECT_EQ(read("box/renamed/in"), "i");
  EXPECT_EQ(read("box/content/in"), "i");
  EXPECT_EQ(read("box/absolute"), "f");
}

TEST_F(TransferTest, TwoOfANameAreAMistake) {
  for (const auto& words : {put_arguments({"a/x", "b/x/"}, ""), get_arguments({"a/x", "x"}, {})}) {
    ASSERT_FALSE(words);
    EXPECT_EQ(words.error().code, "bad-input");
  }
  EXPECT_TRUE(put_arguments({"a/x", "a/y"}, ""));
}

TEST_F(TransferTest, PutReplacesAFileAndNothingElse) {
  write("host/file", "new");
  write("box/file", "old");
  const auto before = facts("box/file").st_ino;
  const UniqueFd old(::open(at("box/file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(put({"file"}).status, 0);
  EXPECT_EQ(read("box/file"), "new");
  EXPECT_NE(facts("box/file").st_ino, before);
  fs::create_directories(at("box/d/file"));
  const Put refused = put({"file"}, "d");
  EXPECT_EQ(refused.status, 1);
  ASSERT_TRUE(refused.report);
  EXPECT_THAT(refused.report->left, ElementsAre(left("d/file", "Is a directory")));
  EXPECT_THAT(names("box"), UnorderedElementsAre("file", "d", "d/file"));
}

TEST_F(TransferTest, ATargetThatCannotBeMadeIsSaid) {
  write("host/file", std::string(4 << 20, 'x'));
  write("box/block", "");
  const Put done = put({"file"}, "block/below");
  EXPECT_EQ(done.status, 1);
  ASSERT_TRUE(done.report);
  EXPECT_THAT(done.report->left, ElementsAre(left("block/below", "Not a directory")));
}

TEST_F(TransferTest, WhatIsNoFileIsNamedAndNeverWaitedFor) {
  for (const std::string side : {"host", "box"}) {
    write(side + "/tree/file", "f");
    ASSERT_EQ(::mkfifo(at(side + "/tree/fifo").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(at(side + "/fifo").c_str(), 0600), 0);
    const UniqueFd here(::open(at(side + "/tree").c_str(), O_PATH | O_CLOEXEC));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string name = "/proc/self/fd/" + std::to_string(here.get()) + "/socket";
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  const Put in = put({"tree", "fifo"}, "in");
  EXPECT_THAT(in.sent.left,
              UnorderedElementsAre(left("tree/fifo", "a FIFO"), left("tree/socket", "a socket"),
                                   left(at("host/fifo"), "a FIFO")));
  EXPECT_FALSE(in.sent.has_failures);
  EXPECT_EQ(in.status, 0);
  EXPECT_THAT(names("box/in"), ElementsAre("tree", "tree/file"));
  const Got out = get({"tree", "fifo", "/dev/null"});
  EXPECT_THAT(out.done.left,
              UnorderedElementsAre(left("tree/fifo", "a FIFO"), left("tree/socket", "a socket"),
                                   left("fifo", "a FIFO"), left("/dev/null", "a device")));
  EXPECT_THAT(names("out"), ElementsAre("tree", "tree/file"));
}

TEST_F(TransferTest, WhatIsMissingIsNamedAndTheRestArrives) {
  write("host/file", "f");
  write("box/file", "f");
  const Put in = put({"nothing", "file"}, "in");
  EXPECT_TRUE(in.sent.has_failures);
  EXPECT_THAT(in.sent.left, ElementsAre(left(at("host/nothing"), "No such file")));
  EXPECT_EQ(read("box/in/file"), "f");
  const Got out = get({"nothing", "file"});
  EXPECT_EQ(out.status, 1);
  EXPECT_TRUE(out.done.has_failures);
  EXPECT_THAT(out.done.left, ElementsAre(left("nothing", "No such file")));
  EXPECT_EQ(read("out/file"), "f");
}

TEST_F(TransferTest, LinksThatLeadOutOfATreeAreNotSent) {
  write("host/tree/d/file", "f");
  write("host/secret", "s");
  fs::create_symlink("../secret", at("host/tree/out"));
  fs::create_symlink("d/../../secret", at("host/tree/round"));
  fs::create_symlink("/etc/passwd", at("host/tree/absolute"));
  fs::create_symlink("d/../d/file", at("host/tree/in"));
  fs::create_symlink("../in", at("host/tree/d/up"));
  fs::create_symlink("tree", at("host/named"));
  const Put in = put({"tree"});
  EXPECT_THAT(in.sent.left,
              UnorderedElementsAre(left("tree/out", "leads out"), left("tree/round", "leads out"),
                                   left("tree/absolute", "leads out")));
  EXPECT_EQ(read("box/tree/d/up"), "f");
  EXPECT_EQ(put({"named"}).status, 0);
  EXPECT_EQ(facts("box/named").st_mode & S_IFMT, S_IFDIR);
}

TEST_F(TransferTest, LinksComeOutOnlyToWhatCameOut) {
  write("box/tree/d/file", "f");
  write("out/mine", "m");
  fs::create_symlink("/etc/passwd", at("box/tree/absolute"));
  fs::create_symlink("../mine", at("box/tree/to-mine"));
  fs::create_symlink("../../../mine", at("box/tree/above"));
  fs::create_symlink("nothing", at("box/tree/nowhere"));
  fs::create_symlink("loop", at("box/tree/loop"));
  fs::create_symlink("..", at("box/tree/top"));
  fs::create_symlink("d/file", at("box/tree/good"));
  fs::create_symlink("../good", at("box/tree/d/chain"));
  fs::create_symlink("d", at("box/tree/e"));
  fs::create_symlink("e/../good", at("box/tree/through"));
  fs::create_symlink("absolute", at("box/tree/second"));
  const Got out = get({"tree"});
  EXPECT_FALSE(out.done.has_failures);
  std::vector<std::string> refused;
  for (const workspace::Left& each : out.done.left) refused.push_back(each.path);
  EXPECT_THAT(refused,
              UnorderedElementsAre("tree/absolute", "tree/to-mine", "tree/above", "tree/nowhere",
                                   "tree/loop", "tree/top", "tree/second"));
  EXPECT_EQ(read("out/tree/d/chain"), "f");
  EXPECT_EQ(read("out/tree/through"), "f");
}

TEST_F(TransferTest, ProtectedNamesMustBeNamedThemselves) {
  for (const char* each : {".envrc", "p/.git/hooks/pre-commit", "p/.git/HEAD",
                           "p/.vscode/tasks.json", "p/CLAUDE.md", "p/file"})
    write(std::string("box/") + each, "x");
  const Got tree = get({"p"});
  EXPECT_THAT(names("out"), ElementsAre("p", "p/.git", "p/.git/HEAD", "p/file"));
  EXPECT_THAT(tree.done.left, UnorderedElementsAre(left("p/.git/hooks", "protected"),
                                                   left("p/.vscode", "protected"),
                                                   left("p/CLAUDE.md", "protected")));
  EXPECT_THAT(get({"p/.git/hooks"}).done.left, ElementsAre(left("hooks", "protected")));
  EXPECT_THAT(get({"p/.git/."}).done.left, ElementsAre(left("hooks", "protected")));
  EXPECT_THAT(get({"p/.git/hooks/pre-commit", ".envrc"}).done.left, IsEmpty());
  EXPECT_EQ(read("out/pre-commit"), "x");
  EXPECT_EQ(read("out/.envrc"), "x");
}

TEST_F(TransferTest, AReportSaysWhatStoppedAPut) {
  Forged forged;
  for (const int error : {EFBIG, EROFS, ENOSPC})
    forged.frame({.kind = FrameKind::fault,
                  .reason = Reason::cannot_write,
                  .number = static_cast<std::uint32_t>(error),
                  .name = "x"});
  const auto report = read_report(forged.end().fd());
  ASSERT_TRUE(report);
  EXPECT_THAT(report->left, ElementsAre(left("x", "limits.file_size"), left("x", "/dev/shm"),
                                        left("x", "No space left on device")));
}

TEST_F(TransferTest, TheTargetIsNotCopiedIntoItself) {
  write("box/file", "x");
  write("box/out/old", "x");
  write("box/out/deep/file", "x");
  const auto words = get_arguments({"."}, kWide, at("box/out"));
  ASSERT_TRUE(words);
  Inside inside = start(*words);
  const Unpacked done = receive(inside.from.get(), receiving({"."}, kWide));
  inside.from.reset();
  EXPECT_EQ(inside.wait(), 0);
  EXPECT_THAT(names("out"), ElementsAre("file"));
  EXPECT_THAT(done.left, ElementsAre(left("out", "not copied into itself")));
}

TEST_F(TransferTest, PolicyFilesAndTemporaryNamesStay) {
  write("box/p/policy.toml", "x");
  write("box/p/.sbx-0123456789abcdef", "x");
  write("out/p/.sbx-00000000000000ff", "left by a killed sbx");
  Receiving what = receiving({"p"});
  what.policy_files = {at("out/p/policy.toml")};
  Inside inside = start(*get_arguments(what.paths, what.limits));
  const Unpacked done = receive(inside.from.get(), what);
  EXPECT_THAT(done.left, UnorderedElementsAre(left("p/policy.toml", "a policy file"),
                                              left("p/.sbx-0123456789abcdef", "sbx itself")));
  EXPECT_EQ(inside.wait(), 0);
}

TEST_F(TransferTest, WhatIsBeyondALimitIsLeftWithTheReason) {
  write("box/t/a", "12345");
  write("box/t/b", std::string(200, 'b'));
  write("box/t/c", "12345");
  write("box/t/d/e/f", "1");
  const Got bytes = get({"t"}, {.max_bytes = 100, .max_files = 100, .max_depth = 10});
  EXPECT_THAT(bytes.done.left, ElementsAre(left("t/b", "larger than the limit")));
  EXPECT_EQ(read("out/t/c"), "12345");
  const Got files = get({"t"}, {.max_bytes = 1000, .max_files = 3, .max_depth = 10});
  EXPECT_THAT(files.done.left, ElementsAre(left("t/d/e/f", "max_files")));
  const Got depth = get({"t"}, {.max_bytes = 1000, .max_files = 100, .max_depth = 2});
  EXPECT_THAT(depth.done.left, ElementsAre(left("t/d/e", "nested too deep")));
  EXPECT_EQ(depth.status, 0);
}

TEST_F(TransferTest, AFileThatShrinksWhileItIsReadIsTakenBack) {
  write("box/t/big", std::string(8 << 20, 'x'));
  write("box/t/next", "n");
  Inside inside = start(*get_arguments({"t"}, kWide));
  pollfd first{.fd = inside.from.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&first, 1, 60'000), 1);  // the pipe holds 1 MiB: the sender is far from the end
  ASSERT_EQ(::truncate(at("box/t/big").c_str(), 4 << 20), 0);
  const Unpacked done = receive(inside.from.get(), receiving({"t"}));
  EXPECT_FALSE(done.broken);
  EXPECT_TRUE(done.has_failures);
  EXPECT_THAT(done.left, ElementsAre(left("t/big", "shorter")));
  EXPECT_THAT(names("out"), ElementsAre("t", "t/next"));
  EXPECT_EQ(inside.wait(), 1);
}

TEST_F(TransferTest, WhatAFileGrowsByWhileItIsReadIsNotSent) {
  write("box/big", std::string(8 << 20, 'x'));
  Inside inside = start(*get_arguments({"big"}, kWide));
  pollfd first{.fd = inside.from.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&first, 1, 60'000), 1);
  std::ofstream(at("box/big"), std::ios::app) << std::string(1 << 20, 'y');
  const Unpacked done = receive(inside.from.get(), receiving({"big"}));
  EXPECT_FALSE(done.has_failures);
  EXPECT_EQ(inside.wait(), 0);
  EXPECT_EQ(read("out/big"), std::string(8 << 20, 'x'));
}

TEST_F(TransferTest, AFullDiskInsideNamesTheFile) {
  write("host/t/a", std::string(2 << 20, 'a'));
  write("host/t/b", "b");
  const Put done = put({"t"}, {}, 1 << 20);
  EXPECT_EQ(done.status, 1);
  ASSERT_TRUE(done.report);
  EXPECT_THAT(done.report->left, ElementsAre(left("t/a", "File too large")));
  EXPECT_EQ(done.report->files, 1U);
  EXPECT_THAT(names("box"), ElementsAre("t", "t/b"));
}

TEST_F(TransferTest, AFullDiskOutsideNamesTheFile) {
  write("box/t/a", std::string(2 << 20, 'a'));
  write("box/t/b", "b");
  write("box/t/sparse", "");
  ASSERT_EQ(::truncate(at("box/t/sparse").c_str(), 2 << 20), 0);
  Inside inside = start(*get_arguments({"t"}, kWide));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Unpacked done = receive(inside.from.get(), receiving({"t"}));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(done.has_failures);
  EXPECT_THAT(done.left, UnorderedElementsAre(left("t/a", "File too large"),
                                              left("t/sparse", "File too large")));
  EXPECT_THAT(names("out"), ElementsAre("t", "t/b"));
  EXPECT_EQ(inside.wait(), 0);
}

TEST_F(TransferTest, AHostThatHasSeenEnoughEndsTheSender) {
  write("box/big", std::string(8 << 20, 'x'));
  Inside inside = start(*get_arguments({"big"}, kWide));
  inside.from.reset();
  EXPECT_EQ(inside.wait(), 1);
}

TEST_F(TransferTest, ADeadSandboxEndsBothEnds) {
  write("host/big", std::string(8 << 20, 'x'));
  Inside inside = start(ls_arguments("."));  // reads nothing of what is sent, and ends
  EXPECT_EQ(inside.wait(), 0);
  EXPECT_FALSE(send_files(inside.to.get(), {at("host/big")}).is_whole);
  const auto report = read_report(inside.from.get());
  EXPECT_TRUE(report);  // an empty listing is an empty report
  const auto nothing = read_report(inside.from.get());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, "broken-transfer");
}

/// As the C library reads it; the number where there is none.
std::string name_in(const char* file, unsigned number) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.find(':');
    const auto password = line.find(':', name + 1);
    if (std::strtoul(line.c_str() + password + 1, nullptr, 10) == number)
      return line.substr(0, name);
  }
  return std::to_string(number);
}

TEST_F(TransferTest, ListingsNameEverythingThatIsThere) {
  write("box/d/file", "12345", 0640);
  write("box/d/odd\n\xff", "");
  fs::create_directory(at("box/d/sub"));
  fs::create_symlink("/nowhere", at("box/d/link"));
  ASSERT_EQ(::mkfifo(at("box/d/fifo").c_str(), 0600), 0);
  const Inside inside = start(ls_arguments("d"));
  const auto list = read_listing(inside.from.get());
  ASSERT_TRUE(list);
  ASSERT_EQ(list->entries.size(), 5U);
  EXPECT_EQ(list->entries[0].type, FileType::fifo);
  EXPECT_EQ(list->entries[1].name, "file");
  EXPECT_EQ(list->entries[1].bytes, 5U);
  EXPECT_EQ(list->entries[1].mode, 0640U);
  EXPECT_EQ(list->entries[1].modified.tv_sec, facts("box/d/file").st_mtim.tv_sec);
  EXPECT_EQ(list->entries[1].owner, name_in("/etc/passwd", facts("box/d/file").st_uid));
  EXPECT_EQ(list->entries[1].group, name_in("/etc/group", facts("box/d/file").st_gid));
  EXPECT_EQ(list->entries[2].leads_to, "/nowhere");
  EXPECT_EQ(list->entries[3].name, "odd\n\xff");
  EXPECT_EQ(list->entries[4].type, FileType::directory);
  EXPECT_EQ(inside.wait(), 0);

  const Inside one = start(ls_arguments("d/link"));
  const auto link = read_listing(one.from.get());
  ASSERT_TRUE(link);
  ASSERT_EQ(link->entries.size(), 1U);
  EXPECT_EQ(link->entries[0].name, "link");
  EXPECT_EQ(one.wait(), 0);

  const Inside none = start(ls_arguments("missing"));
  const auto missing = read_listing(none.from.get());
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->left, ElementsAre(left("missing", "No such file")));
  EXPECT_EQ(none.wait(), 1);

  const Inside many = start(ls_arguments("d"));
  const auto cut = read_listing(many.from.get(), 1, 2);
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->is_cut);
  EXPECT_EQ(cut->entries.size(), 2U);
  EXPECT_EQ(many.wait(), 0);
}

// What follows comes from no sbx.

TEST_F(TransferTest, AnOwnerOrGroupThatIsNoNameEndsTheListing) {
  const auto listing = [](const std::string& owner, const std::string& group) {
    Forged forged;
    forged.frame({.kind = FrameKind::listed, .name = "f", .owner = owner, .group = group});
    return read_listing(forged.end().fd()).has_value();
  };
  EXPECT_TRUE(listing("user", "1000"));
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("\033[2J"),
                                 std::string("\xff"), std::string(65, 'n')}) {
    EXPECT_FALSE(listing(bad, "group")) << bad;
    EXPECT_FALSE(listing("user", bad)) << bad;
  }
}

TEST_F(TransferTest, NamesThatLeadElsewhereEndTheTransfer) {
  const std::string long_name(256, 'n');
  for (const std::string& name :
       {std::string(".."), std::string("../x"), std::string("/etc/x"), std::string(),
        std::string("."), std::string("d/../x"), std::string("d//x"), std::string("d/"),
        std::string("./x"), std::string("a\0b", 3), long_name}) {
    for (const bool as_link : {false, true}) {
      Forged forged;
      forged.directory("d");
      if (as_link)
        forged.link(name, "d");
      else
        forged.file(name);
      const Unpacked done = receive(forged.end().fd(), receiving({"."}));
      ASSERT_TRUE(done.broken) << name;
      EXPECT_EQ(done.broken->code, "broken-transfer");
      EXPECT_THAT(names("out"), ElementsAre("d"));
    }
  }
  EXPECT_FALSE(fs::exists(at("x")));
}

TEST_F(TransferTest, ATruncatedArchiveLeavesWholeFilesOnly) {
  const std::string whole =
      Forged().directory("d").file("d/a", "12345").file("d/b", "67890").end().bytes();
  ASSERT_FALSE(receive_bytes(whole, receiving({"d"})).broken);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    fs::remove_all(at("out/d"));
    const Unpacked done = receive_bytes(whole.substr(0, size), receiving({"d"}));
    ASSERT_TRUE(done.broken) << size;
    EXPECT_TRUE(done.has_failures);
    EXPECT_EQ(names("out").size(), done.brought.size()) << size;
    for (const Brought& each : done.brought)
      if (each.type == FileType::file) EXPECT_EQ(read("out/" + each.path).size(), 5U);
  }
}

TEST_F(TransferTest, AnotherLanguageIsRefused) {
  for (const std::string& bytes : {std::string("PK\3\4 and more of it"), std::string("sbxfile\2"),
                                   std::string(10'000, '\xff')}) {
    const Unpacked done = receive_bytes(bytes, receiving({"."}));
    ASSERT_TRUE(done.broken);
    EXPECT_THAT(names("out"), IsEmpty());
  }
  const std::string good = Forged().file("f", "x").end().bytes();
  // Each byte of the first header, and not of the time.
  for (std::size_t at = 8; at < 8 + 40; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x80);
    const Unpacked done = receive_bytes(bad, receiving({"f"}));
    EXPECT_TRUE(done.broken || (at >= 8 + 24 && at < 8 + 36) || (at >= 10 && at < 12)) << at;
  }
}

TEST_F(TransferTest, FramesOutOfOrderEndTheTransfer) {
  const Frame file{.kind = FrameKind::file, .mode = 0644, .size = 3, .name = "f"};
  const Frame data{.kind = FrameKind::data, .size = 4};
  const Frame hole{.kind = FrameKind::hole, .size = 3};
  const Frame complete{.kind = FrameKind::complete};
  const Frame listed{.kind = FrameKind::listed, .name = "f"};
  const Frame written{.kind = FrameKind::written, .name = "f"};
  const Frame end{.kind = FrameKind::end};
  const Frame huge{.kind = FrameKind::hole, .size = ~std::uint64_t{0}};
  const Frame none{.kind = FrameKind::hole};
  for (const auto& frames : std::vector<std::vector<Frame>>{{data},
                                                            {complete},
                                                            {hole},
                                                            {file, data},
                                                            {file, complete},
                                                            {file, end},
                                                            {file, file},
                                                            {file, hole, hole},
                                                            {file, huge},
                                                            {file, none},
                                                            {file, hole, end},
                                                            {listed},
                                                            {written}}) {
    Forged forged;
    for (const Frame& each : frames) forged.frame(each);
    const Unpacked done = receive(forged.end().fd(), receiving({"f"}));
    EXPECT_TRUE(done.broken);
    EXPECT_THAT(names("out"), IsEmpty());
  }
  Forged good;
  good.frame(file).frame(hole).frame(complete);
  EXPECT_FALSE(receive(good.end().fd(), receiving({"f"})).broken);
  EXPECT_EQ(read("out/f"), std::string(3, '\0'));
}

TEST_F(TransferTest, OnlyWhatWasAskedForArrives) {
  Forged forged;
  forged.file("asked").file("Makefile").directory("d").file("d/x").end();
  const Unpacked done = receive(forged.fd(), receiving({"some/asked"}));
  EXPECT_THAT(names("out"), ElementsAre("asked"));
  EXPECT_THAT(done.left,
              UnorderedElementsAre(left("Makefile", "nobody asked"), left("d", "nobody asked")));
}

TEST_F(TransferTest, NothingIsWrittenThroughALinkOfTheArchive) {
  write("host/victim", "v");
  const std::string elsewhere = at("host");
  Forged forged;
  forged.link("d", elsewhere).file("d/victim", "bad").link("l", "../host/victim").file("l", "bad");
  const Unpacked done = receive(forged.end().fd(), receiving({"."}));
  EXPECT_EQ(read("host/victim"), "v");
  EXPECT_THAT(names("out"), IsEmpty());
  EXPECT_THAT(done.left, Contains(left("d/victim", "its directory was not sent")));
  EXPECT_THAT(done.left, Contains(left("l", "twice")));
  EXPECT_THAT(done.left, Contains(left("d", "not brought out")));
}

TEST_F(TransferTest, LinksOfTheHostAreReplacedOrRefusedNeverFollowed) {
  write("host/victim", "v");
  fs::create_directory(at("host/dir"));
  fs::create_symlink(at("host/victim"), at("out/file"));
  fs::create_symlink(at("host/dir"), at("out/d"));
  fs::create_symlink(at("host/dir"), at("out/other"));
  ASSERT_EQ(::mkfifo(at("out/fifo").c_str(), 0600), 0);
  Forged forged;
  forged.file("file", "new").directory("d").file("d/x").file("fifo").link("other", "file").end();
  const Unpacked done = receive(forged.fd(), receiving({"."}));
  EXPECT_EQ(read("host/victim"), "v");
  EXPECT_THAT(names("host/dir"), IsEmpty());
  EXPECT_EQ(facts("out/file").st_mode & S_IFMT, S_IFREG);
  EXPECT_EQ(fs::read_symlink(at("out/other")), "file");
  EXPECT_THAT(done.left, UnorderedElementsAre(left("d", "cannot make the directory"),
                                              left("fifo", "there is a FIFO")));
  EXPECT_TRUE(done.has_failures);
}

TEST_F(TransferTest, ANameComesOnce) {
  Forged forged;
  forged.file("a", "1").directory("a").file("a/x").file("a", "22").directory("b").file("b", "3");
  const Unpacked done = receive(forged.end().fd(), receiving({"."}));
  EXPECT_THAT(paths_of(done), ElementsAre("a", "b"));
  EXPECT_EQ(read("out/a"), "1");
  EXPECT_EQ(facts("out/b").st_mode & S_IFMT, S_IFDIR);
}

TEST_F(TransferTest, AMillionNamesAreBounded) {
  Forged forged;
  for (int i = 0; i < 1'000'000; ++i) forged.file("d" + std::to_string(i), "");
  const Unpacked done = receive(
      forged.end().fd(), receiving({"."}, {.max_bytes = 100, .max_files = 10, .max_depth = 5}));
  EXPECT_EQ(names("out").size(), 10U);
  EXPECT_EQ(done.left.size(), kMostLeft);
  ASSERT_TRUE(done.broken);
  EXPECT_EQ(done.broken->code, "outputs-exceeded");
}

TEST_F(TransferTest, DirectoriesAreBoundedInNumberAndDepth) {
  Forged wide;
  for (int i = 0; i < 100; ++i) wide.directory("d" + std::to_string(i));
  const workspace::OutLimits limits{.max_bytes = 100, .max_files = 10, .max_depth = 5};
  (void)receive(wide.end().fd(), receiving({"."}, limits));
  EXPECT_EQ(names("out").size(), 10U);
  Forged deep;
  std::string path = "d0";
  for (int i = 0; i < 2000; ++i, path += "/d") deep.directory(path);
  const Unpacked done = receive(deep.end().fd(), receiving({"."}, limits));
  EXPECT_THAT(done.left, ElementsAre(left("d0/d/d/d/d/d/d", "max_depth")));
}

TEST_F(TransferTest, SizesAreBoundedWhateverIsAnnounced) {
  const workspace::OutLimits limits{.max_bytes = 1000, .max_files = 10, .max_depth = 5};
  Forged liar;
  liar.frame({.kind = FrameKind::file, .size = std::uint64_t{1} << 62, .name = "huge"});
  for (int i = 0; i < 1'100'000; ++i) liar.frame({.kind = FrameKind::hole, .size = 1});
  const Unpacked done = receive(liar.end().fd(), receiving({"."}, limits));
  ASSERT_TRUE(done.broken);
  EXPECT_EQ(done.broken->code, "outputs-exceeded");
  EXPECT_THAT(names("out"), IsEmpty());
  Forged sum;
  sum.file("a", std::string(600, 'a')).file("b", std::string(600, 'b')).file("c", "c").end();
  EXPECT_THAT(receive(sum.fd(), receiving({"."}, limits)).left,
              ElementsAre(left("b", "max_bytes")));
  EXPECT_THAT(names("out"), ElementsAre("a", "c"));
}

TEST_F(TransferTest, ModesAndTimesOfTheArchiveAreTamed) {
  Forged forged;
  forged.frame({.kind = FrameKind::file,
                .mode = 0777,
                .modified = {.tv_sec = std::int64_t{1} << 60},
                .name = "f"});
  forged.frame({.kind = FrameKind::complete});
  forged.frame({.kind = FrameKind::directory, .mode = 0, .name = "d"}).end();
  const mode_t before = ::umask(027);
  EXPECT_FALSE(receive(forged.fd(), receiving({"."})).has_failures);
  EXPECT_EQ(::umask(before), 027U);
  EXPECT_EQ(facts("out/f").st_mode & 07777, 0750U);
  // time() is the clock of the last tick: up to 10 ms behind the one that the file was given.
  EXPECT_LE(facts("out/f").st_mtim.tv_sec,
            std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  EXPECT_EQ(facts("out/d").st_mode & 07777, 0700U);
}

TEST(TransferNames, RootNames) {
  for (const auto& [path, name] : std::vector<std::pair<const char*, const char*>>{{"a", "a"},
                                                                                   {"a/b", "b"},
                                                                                   {"a/b//", "b"},
                                                                                   {"~/x", "x"},
                                                                                   {"/x", "x"},
                                                                                   {"~", ""},
                                                                                   {"~/", ""},
                                                                                   {".", ""},
                                                                                   {"a/.", ""},
                                                                                   {"..", ""},
                                                                                   {"a/..", ""},
                                                                                   {"/", ""}})
    EXPECT_EQ(root_name(path), name) << path;
}

}  // namespace
}  // namespace sbx::transfer
