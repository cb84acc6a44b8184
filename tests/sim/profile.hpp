#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::sim {

/// The kinds of votes.
enum class VoteKind {
  server,
  cluster,   ///< a Redis Cluster, whose slots move and whose masters change
  sentinel,  ///< the master that sentinels name, with replicas that may become the master
};

/// What may happen in a schedule. With `in_promise`, the whole promise holds; otherwise, the rules
/// that `judged` names. A profile with neither breaks a condition of the promise, and must show
/// that the referee notices.
struct Profile {
  std::string_view name;
  std::string_view what;
  bool in_promise = false;
  std::int64_t rate_ppm = 4900;  ///< clocks run faster or slower by at most this: two of them
                                 ///< differ by less than 1 %
  bool wipes_unguarded = false;  ///< servers lose their data, and no client has a restart guard
  bool servers_jump_forward = false;  ///< their wall clock, by which keys expire
  bool one_that_forgets = false;      ///< a single server, which loses its data
  bool nightly = false;               ///< the same job once a day, with --once-per
  bool spoils_helper_keys = false;    ///< another program writes into them
  bool has_host_names = false;   ///< waiters' ids tell hosts apart; else all seem to be on one host
  bool asks_to_stop = false;     ///< processes ask the holder of the lock to stop
  bool takes_slots = false;      ///< most leases take some of several slots; queues are bounded
  bool names_slots = false;      ///< most leases take slots by name, whose lists differ by host
  bool ranks_waiters = false;    ///< waiters have priorities, and are sent away
  bool hands_over = false;       ///< most leases are handed over, and used by other processes
  std::string_view judged = {};  ///< the only rules that are promised; empty: all
  VoteKind votes = VoteKind::server;  ///< most of them; others are a server each
};

inline constexpr Profile profiles[] = {
    {"promise", "all that the promise covers", true},
    {"fast-clocks", "clock rates that differ by up to 20 %", false, 100'000},
    {"amnesia", "servers that lose their data, without a restart guard", false, 4900, true},
    {"forward-jumps", "wall clocks of servers that jump forward", false, 4900, false, true},
    {.name = "one-forgets",
     .what = "a single server that loses its data: fences rise, whatever clients' clocks say",
     .one_that_forgets = true,
     .judged = "fence"},
    {"nightly", "within the promise, the same job on many hosts once a day, with --once-per", true,
     4900, false, false, false, true},
    {.name = "cluster",
     .what = "within the promise, votes that are a Redis Cluster each",
     .in_promise = true,
     .votes = VoteKind::cluster},
    {.name = "sentinel",
     .what = "within the promise, votes that are a master under Sentinel each",
     .in_promise = true,
     .votes = VoteKind::sentinel},
    {.name = "hosts",
     .what = "within the promise, waiters whose ids tell on which host they are",
     .in_promise = true,
     .has_host_names = true},
    {.name = "stops",
     .what = "within the promise, holders that are asked to stop, or replaced",
     .in_promise = true,
     .asks_to_stop = true},
    {.name = "slots",
     .what = "within the promise, leases that take several slots, and queues with an end",
     .in_promise = true,
     .takes_slots = true},
    {.name = "pools",
     .what = "within the promise, slots with names, of which each host has another list",
     .in_promise = true,
     .names_slots = true},
    {.name = "ranks",
     .what = "within the promise, waiters of several classes, and some are sent away",
     .in_promise = true,
     .ranks_waiters = true},
    {.name = "users",
     .what = "leases that are handed over: each excludes others until all who work under it end",
     .hands_over = true,
     .judged = "exclusion, deadline, expiry"},
    {.name = "spoilt-keys",
     .what = "helper keys that another program spoils: leases exclude each other all the same",
     .spoils_helper_keys = true,
     .has_host_names = true,
     .judged = "exclusion"},
};

inline const Profile* find_profile(std::string_view name) {
  for (const Profile& profile : profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

}  // namespace redlock::sim
