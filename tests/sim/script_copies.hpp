#pragma once

#include <string>

/// Copies of the scripts that Lua may run in place of the scripts themselves. The linker inserts
/// this between the host of the scripts and Lua (--wrap=luaL_loadbuffer). It does nothing until one
/// of the copies is chosen. What clients send to servers, and its digest, does not change.
namespace redlock::sim::script_copies {

/// From now on scripts report which outcomes their conditions had in this process (conditions.py).
/// To be called before the first script.
void report_conditions();

/// From now on the functions of the scripts are made once for each host, and not in each run, as a
/// server does. Nothing else is different: replay.sh compares. To be called before the first
/// script.
void make_functions_once();

/// Writes a line for each outcome that was reported: the condition's number, a space, and 1 for
/// true or 0 for false. -> false: the file cannot be written
bool write_outcomes(const std::string& path);

}  // namespace redlock::sim::script_copies
