#pragma once

#include <sys/types.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/lease.hpp"
#include "core/vote.hpp"
#include "engine/server_set.hpp"

namespace redlock::output {

/// The parts that all JSON of `--json`, `--status-fd` and `--events-fd` shares. Each result is one
/// object on one line, without a newline. The shapes are documented in the manual and in
/// docs/output.schema.json; fields are only ever added. Each duration that is measured from or
/// until now is accompanied by a wall-clock time (timestamp()). Pure, except that some functions
/// read that clock and the names of processes.

/// Keeps fields in the order in which they are set, which is stable and easier to read.
using Json = nlohmann::ordered_json;

long long milliseconds(Duration span);

/// The wall-clock time `span` from now.
std::string time_in(Duration span);

/// A key that is not UTF-8 is shown with replacement characters and, byte by byte, as `key_base64`.
void set_key(Json& json, const Resource& resource);

/// A single key as `set_key` does, several as "keys".
void set_keys(Json& json, const std::vector<Resource>& resources);

void set_owner(Json& json, const Owner& owner);

/// The object that describes a lease: `json` itself for a single lease, else a new element of
/// "leases".
Json& object_for(Json& json, const Lease& lease, std::size_t leases);

/// Adds "shared" and the slots.
void set_hold(Json& json, const Hold& hold);

/// Adds the leases without their secret tokens.
void set_fences(Json& json, const std::vector<Lease>& leases);

Json stop_request_json(const StopRequest& request);

Json faults_json(const std::vector<ServerFault>& faults);

/// The names of processes in the order of their pids; empty for one that has ended.
Json names_json(const std::vector<pid_t>& pids);

}  // namespace redlock::output
