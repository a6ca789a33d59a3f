# Runs while sbx is built: writes the drivers as a .cpp (drivers.hpp).  cmake -D OUTPUT=FILE -D DIRECTORY=DIR -P embed_drivers.cmake
set(text "// Made by embed_drivers.cmake from src/session/drivers.\n#include \"session/drivers.hpp\"\n\nnamespace sbx::session {\n\n")
foreach(file python.py javascript.js r.R bash.sh)
  file(READ ${DIRECTORY}/${file} source)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND text "extern const std::string_view k_${name}_driver;\nconst std::string_view k_${name}_driver = R\"sbx-driver(${source})sbx-driver\";\n")
endforeach()
string(APPEND text "\n}  // namespace sbx::session\n")
file(WRITE ${OUTPUT} "${text}")
