// Whatever an archive says: names are sound, and a file has the bytes that were announced.

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.hpp"
#include "transfer/archive.hpp"

using namespace sbx;
using transfer::FrameKind;

namespace {

int file_of(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("archive", MFD_CLOEXEC);
  must(::ftruncate(file, 0) == 0);
  must(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  must(::lseek(file, 0, SEEK_SET) == 0);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  transfer::Reader reader(file_of(data, size));
  std::uint64_t announced = 0;
  std::uint64_t arrived = 0;
  bool in_file = false;
  bool in_stream = false;
  bool takes = false;
  for (std::size_t frames = 0;; ++frames) {
    must(frames <= size / 40);  // the size of a header
    const auto frame = reader.next();
    if (!frame) break;
    must(frame->name.size() <= transfer::kLongestName && !frame->name.contains('\0'));
    must(frame->text.size() <= transfer::kLongestName && !frame->text.contains('\0'));
    must(frame->mode <= 0777);
    switch (frame->kind) {
      case FrameKind::file:
        announced = frame->size;
        arrived = 0;
        [[fallthrough]];
      case FrameKind::directory:
      case FrameKind::link:
        must(!in_file && !in_stream && transfer::is_sound_path(frame->name));
        in_file = frame->kind == FrameKind::file;
        break;
      case FrameKind::stream:
        must(!in_file && !in_stream && transfer::is_sound_path(frame->name));
        in_stream = true;
        break;
      case FrameKind::data:
        if ((takes = !takes)) {
          const auto taken = reader.take(-1);
          if (taken) must(reader.received() >= frame->size);
        }
        [[fallthrough]];
      case FrameKind::hole:
        must(in_stream ? frame->kind == FrameKind::data
                       : in_file && frame->size <= announced - arrived);
        if (in_file) arrived += frame->size;
        break;
      case FrameKind::complete:
        must(in_stream || (in_file && arrived == announced));
        in_file = in_stream = false;
        break;
      case FrameKind::fault:
        in_file = in_stream = false;
        must(!transfer::words_of(frame->reason, frame->number).empty());
        break;
      case FrameKind::listed:
        must(!in_file && !in_stream && transfer::is_sound_path(frame->name));
        must(frame->owner.empty() == frame->group.empty());
        must(frame->owner.empty() || transfer::is_account_name(frame->owner));
        break;
      case FrameKind::written:
        must(!in_file && !in_stream && frame->number <= 1);
        break;
      case FrameKind::end:
        must(!in_file && !in_stream && !reader.next());
        return 0;
    }
  }
  must(reader.received() <= size);
  return 0;
}
