#pragma once

/// The directories of a run's private disk, which is a tmpfs or a directory of the state home. PID
/// 1 makes them; the supervisor reads them once the run is over.
namespace sbx::private_disk {

// Of scratch mounts: what MountKind::scratch names as its source.
inline constexpr const char* kTmp = "tmp";
inline constexpr const char* kShm = "shm";
inline constexpr const char* kHome = "home";
inline constexpr const char* kWorkspace = "work";  ///< of an empty workspace
/// Of filesystem.private: with a number after it. Made when it is mounted.
inline constexpr const char* kOwn = "own";

/// Holds a directory for each overlay and copy. Its name is the mount's `disk_place`, a decimal
/// number.
inline constexpr const char* kOverlays = "over";
// In such a directory:
inline constexpr const char* kUpper = "upper";  ///< what the program writes; the files of a copy
inline constexpr const char* kVeil = "veil";    ///< whiteouts of what filesystem.deny hides
inline constexpr const char* kOverlayWork = "work";
/// Made when the names of each file were linked, and before the program starts: older files of the
/// upper directory, by ctime, are as they were copied. Absent: none were linked.
inline constexpr const char* kLinked = "linked";

}  // namespace sbx::private_disk
