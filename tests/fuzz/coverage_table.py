#!/usr/bin/python3
"""Prints which part of each parser's lines was reached.

usage: tests/fuzz/coverage_table.py FILE   (FILE: what `llvm-cov export -summary-only` wrote)
"""
import json
import sys

# What is read, and the sources that read it.
PARSERS = [
    ("URLs of servers", ["store/redis/endpoint"]),
    ("durations", ["support/duration"]),
    ("text for terminals and shells", ["support/text"]),
    ("TOML configuration", ["cli/config_file", "cli/option_types"]),
    ("REDLOCK_LEASE, REDLOCK_HELD", ["core/lease_handle"]),
    ("token files", ["run/lease_file"]),
    ("/proc and cgroup texts", ["child/process_stat", "child/cgroup"]),
    ("RESP", ["store/redis/reply_reader"]),
    ("connections, logins, pushes", ["store/redis/connection", "store/redis/links",
                                     "store/redis/redis_server", "store/redis/subscription"]),
    ("Sentinel", ["store/redis/sentinel"]),
    ("Cluster", ["store/redis/topology", "store/redis/cluster"]),
    ("INFO, TIME, CONFIG", ["store/redis/server_info", "store/redis/findings",
                            "store/redis/diagnosis"]),
    ("error replies", ["store/redis/error_reply"]),
    ("replies of the scripts", ["store/script_votes"]),
    ("owner records", ["store/owner_record"]),
    ("`status`, for people and as JSON", ["output/status", "output/describe", "output/json"]),
    ("`local:` files", ["store/local/lock_file_format"]),
    ("the scripts' commands, and Lua", ["store/local/commands", "store/local/keyspace",
                                        "store/local/lua_host"]),
]


def main():
    with open(sys.argv[1], encoding="utf-8") as export:
        files = json.load(export)["data"][0]["files"]
    lines = {file["filename"]: file["summary"]["lines"] for file in files}
    print("| what is read | source | lines reached |")
    print("|---|---|---|")
    for what, sources in PARSERS:
        for source in sources:
            path = f"src/{source}.cpp"
            [found] = [lines[name] for name in lines if name.endswith("/" + path)]
            reached, count = found["covered"], found["count"]
            print(f"| {what} | `{path}` | {reached} of {count}, {100 * reached // count} % |")


if __name__ == "__main__":
    main()
