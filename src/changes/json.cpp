#include "changes/json.hpp"

#include <fmt/format.h>

#include "base/obstacle.hpp"

namespace sbx::changes {
namespace {

const char* change_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::created:
      return "created";
    case ChangeKind::modified:
      return "modified";
    case ChangeKind::deleted:
      return "deleted";
    case ChangeKind::mode:
      return "mode";
    case ChangeKind::links:
      return "links";
  }
  return "modified";
}

}  // namespace

const char* type_name(FileType type) {
  switch (type) {
    case FileType::file:
      return "file";
    case FileType::directory:
      return "directory";
    case FileType::link:
      return "link";
    case FileType::fifo:
      return "fifo";
    case FileType::socket:
      return "socket";
    case FileType::device:
      return "device";
  }
  return "file";
}

Json changes_json(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes) {
    Json json;
    put_name(json, "path", change.path);
    json["change"] = change_name(change.change);
    json["type"] = type_name(change.type);
    json["bytes"] = change.bytes;
    json["mode"] = fmt::format("{:04o}", change.mode);
    list.push_back(std::move(json));
  }
  return list;
}

Json left_json(const std::vector<workspace::Left>& left) {
  Json list = Json::array();
  for (const workspace::Left& each : left) {
    Json json;
    put_name(json, "path", each.path);
    put_name(json, "why", each.why);
    if (each.obstacle != Obstacle::none) {
      json["kind"] = name_of(each.obstacle);
      json["side"] = name_of(each.side);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json lost_json(const std::vector<LostChange>& lost) {
  std::vector<workspace::Left> left;
  for (const LostChange& each : lost) left.push_back({.path = each.path, .why = each.why});
  return left_json(left);
}

Json kept_json(const KeptFacts& kept) {
  Json json{{"name", kept.name}, {"changes", kept.count}, {"bytes", kept.bytes}};
  if (!kept.lost.empty()) json["lost"] = lost_json(kept.lost);
  return json;
}

Json applied_json(const workspace::Applied& applied) {
  return {{"done", changes_json(applied.done)},
          {"conflicts", left_json(applied.conflicts)},
          {"left", left_json(applied.left)},
          {"hazards", left_json(applied.hazards)}};
}

}  // namespace sbx::changes
