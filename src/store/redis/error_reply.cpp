#include "store/redis/error_reply.hpp"

#include <algorithm>
#include <array>

#include "core/protocol.hpp"
#include "core/types.hpp"
#include "store/script_votes.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

struct Meaning {
  /// A code in capitals counts only where an error begins: see begins_with_code(). Any other text
  /// is searched anywhere, as an error inside a script contains the original one.
  std::string_view pattern;
  FaultKind kind;
  std::string_view advice;  ///< empty: the server's own text is clear enough
  /// Fault::refused: the server is in a lasting state, which does not begin in the middle of a
  /// script.
  bool refused = false;
};

constexpr std::string_view key_advice =
    "the user lacks access to the key, or to its redlock:* keys";

constexpr std::string_view needless_advice =
    "a password was given (REDISCLI_AUTH, --password-file or the URL), but the server has none for "
    "its default user; name another user with --user, or give none";

constexpr std::string_view login_advice =
    "it requires a password: set REDISCLI_AUTH or --password-file, and --user if its default user "
    "is off";

constexpr std::string_view replica_advice =
    "it is a read-only replica; name its master, unless a failover is under way";

constexpr std::string_view missing_command_advice =
    "a command that locks need is renamed, forbidden or missing there, `redlock-cli doctor` names "
    "it";

constexpr std::string_view sentinel_advice =
    "it runs no scripts; if it is a Sentinel, write sentinel://HOST:PORT/MASTER";

constexpr std::array meanings{
    Meaning{"WRONGPASS", FaultKind::denied,
            "wrong user or password, or the user is off; --user names another than the default "
            "user"},
    Meaning{"NOAUTH", FaultKind::denied, login_advice},
    // Redis 7 accepts no command of our size before the login.
    Meaning{"unauthenticated", FaultKind::denied, login_advice},
    Meaning{"invalid password", FaultKind::denied, "wrong password"},
    Meaning{"without any password configured", FaultKind::denied, needless_advice},
    Meaning{"DENIED", FaultKind::denied,
            "it accepts connections from its own host only (protected mode)"},
    Meaning{"no password is set", FaultKind::denied,  // Redis 5
            needless_advice},
    Meaning{"wrong number of arguments for 'auth'", FaultKind::denied,
            "it knows no users (Redis before 6): give the password alone"},
    Meaning{"to access one of the keys", FaultKind::denied, key_advice},
    Meaning{"permissions to access a key", FaultKind::denied, key_advice},
    Meaning{"run the 'scan' command", FaultKind::denied,
            "listing locks needs the right +scan; or name a key"},
    Meaning{"NOPERM", FaultKind::denied, ""},
    // NOPERM inside a script, without the name of the command.
    Meaning{"can't run this command", FaultKind::denied,
            "a right is missing, `redlock-cli doctor` names it"},
    // Redis 7.2 and later; for keys there is another row.
    Meaning{"ACL failure in script", FaultKind::denied,
            "a right is missing, `redlock-cli doctor` names it"},
    Meaning{"can't access at least one of the keys", FaultKind::denied, key_advice},
    Meaning{"LOADING", FaultKind::unavailable, "it is loading its data", true},
    Meaning{"BUSY", FaultKind::unavailable, "it is busy with a script of another client", true},
    Meaning{"READONLY", FaultKind::unavailable, replica_advice, true},
    Meaning{"OOM", FaultKind::unavailable, "it is out of memory (maxmemory): give it more"},
    Meaning{"MISCONF", FaultKind::unavailable,
            "it cannot save to disk, and refuses writes for that: see its log", true},
    Meaning{"NOREPLICAS", FaultKind::unavailable,
            "it has too few replicas to accept writes (min-replicas-to-write)", true},
    Meaning{"MASTERDOWN", FaultKind::unavailable,
            "it is a replica that lost its master: name the master", true},
    Meaning{"CLUSTERDOWN", FaultKind::unavailable, "its cluster is down", true},
    Meaning{"TRYAGAIN", FaultKind::unavailable, "its cluster is moving this key", true},
    Meaning{"max number of clients", FaultKind::unavailable, "it has too many clients (maxclients)",
            true},
    Meaning{"cluster support disabled", FaultKind::misconfigured,
            "it is part of no cluster: write redis://"},
    Meaning{
        "MOVED", FaultKind::misconfigured,
        "it is part of a Redis Cluster, and this key belongs to another server: write cluster://"},
    Meaning{"ASK", FaultKind::misconfigured,
            "it is part of a Redis Cluster, and this key is moving to another server: write "
            "cluster://"},
    Meaning{"DB index is out of range", FaultKind::misconfigured, "it has no such database"},
    Meaning{"invalid DB index", FaultKind::misconfigured, "it has no such database"},
    Meaning{"SELECT is not allowed in cluster mode", FaultKind::misconfigured,
            "it is part of a Redis Cluster, which has database 0 only"},
    Meaning{"unknown command 'EVAL", FaultKind::misconfigured, sentinel_advice},
    Meaning{"unknown command `EVAL", FaultKind::misconfigured, sentinel_advice},  // Redis 5
    Meaning{"unknown command 'SENTINEL'", FaultKind::misconfigured,
            "it is not a Sentinel: write redis://, or cluster:// for a Redis Cluster"},
    Meaning{"unknown command `SENTINEL`", FaultKind::misconfigured,
            "it is not a Sentinel: write redis://, or cluster:// for a Redis Cluster"},
    Meaning{"unknown command", FaultKind::misconfigured, ""},
    Meaning{"Unknown Redis command", FaultKind::misconfigured, missing_command_advice},
    Meaning{"nknown command called from script", FaultKind::misconfigured, missing_command_advice},
    // Managed services.
    Meaning{"not support for", FaultKind::denied, missing_command_advice},
    Meaning{"not supported for", FaultKind::denied, missing_command_advice},
    Meaning{protocol::word::named_slots_error, FaultKind::misconfigured, named_slots_text},
    Meaning{protocol::word::numbered_slots_error, FaultKind::misconfigured, numbered_slots_text},
    Meaning{protocol::word::unknown_slot_error, FaultKind::unavailable, unknown_slot_text},
    Meaning{protocol::word::fence_error, FaultKind::misconfigured,
            "the fence counter of this key was overwritten by another client: delete it, and reset "
            "what checks fences (they begin anew with the clock)"},
};

bool is_code(std::string_view pattern) {
  return std::ranges::all_of(pattern, [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// Whether an error with this code begins in the text: the error itself, or the one that ended a
/// script, as in `ERR Error running script: @user_script:44: -OOM command not allowed`.
bool begins_with_code(std::string_view text, std::string_view code) {
  for (std::size_t at = text.find(code); at != text.npos; at = text.find(code, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::string_view after = text.substr(at + code.size());
    const bool begins = before.empty() || before.ends_with('-') || before.ends_with(": ");
    if (begins && (after.empty() || after.front() == ' ')) return true;
  }
  return false;
}

bool has(std::string_view text, std::string_view pattern) {
  return is_code(pattern) ? begins_with_code(text, pattern)
                          : text.find(pattern) != std::string_view::npos;
}

/// The server's own text, without the parts that repeat our command: the arguments of an unknown
/// command may contain a password.
std::string_view own_words(std::string_view error_text) {
  return error_text.substr(0, error_text.find(", with args beginning with"));
}

/// Removes everything that could be a token, as a server may repeat what it was sent.
std::string without_tokens(std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const std::size_t digits = std::min(words.find_first_not_of("0123456789abcdef"), words.size());
    if (digits >= Token::digits) {
      text += "***";
    } else {
      text += words.substr(0, digits);
    }
    words.remove_prefix(digits);
    const std::size_t others = std::min(words.find_first_of("0123456789abcdef"), words.size());
    text += words.substr(0, others);
    words.remove_prefix(others);
  }
  return text;
}

}  // namespace

std::string quote_of(std::string_view error_text) {
  constexpr std::size_t longest = 200;
  // Omit what Redis adds about the script (`script: 5ec…, on @user_script:12.`), unless there is no
  // other text.
  const std::size_t end = error_text.rfind(" script: ");
  const std::string_view words = error_text.substr(0, end == 0 ? std::string_view::npos : end);
  return escape_for_terminal(without_tokens(words).substr(0, longest));
}

Fault fault_of_error(std::string_view error_text) {
  const std::string_view words = own_words(error_text);
  for (const Meaning& meaning : meanings) {
    if (!has(words, meaning.pattern)) continue;
    std::string text = quote_of(words);
    if (!meaning.advice.empty()) text = std::string(meaning.advice) + " (" + text + ")";
    return {meaning.kind, std::move(text), meaning.refused};
  }
  return {FaultKind::unavailable, "it reports an error: " + quote_of(words)};
}

Fault is_replica() {
  return {FaultKind::unavailable, std::string(replica_advice), /*refused=*/true};
}

bool means_the_same(std::string_view one, std::string_view other) {
  const Fault fault = fault_of_error(one);
  const Fault other_fault = fault_of_error(other);
  return fault.kind == other_fault.kind && fault.refused == other_fault.refused &&
         is_needless_password(one) == is_needless_password(other) &&
         is_noscript(one) == is_noscript(other) && is_read_only(one) == is_read_only(other) &&
         refuses_connection(one) == refuses_connection(other) && !is_redirect(one) &&
         !is_redirect(other);
}

bool is_needless_password(std::string_view error_text) {
  return error_text.find("without any password configured") != std::string_view::npos ||
         error_text.find("no password is set") != std::string_view::npos;  // Redis 5
}

bool wants_login(std::string_view error_text) {
  return error_text.starts_with("NOAUTH") ||
         error_text.find("unauthenticated") != std::string_view::npos;
}

bool refuses_connection(std::string_view error_text) {
  return error_text.starts_with("DENIED") || error_text.starts_with("ERR max number of clients");
}

bool is_noscript(std::string_view error_text) {
  return error_text.starts_with("NOSCRIPT");
}

bool is_read_only(std::string_view error_text) {
  return begins_with_code(error_text, "READONLY");
}

bool is_redirect(std::string_view error_text) {
  return error_text.starts_with("MOVED ") || error_text.starts_with("ASK ") ||
         error_text.starts_with("TRYAGAIN");
}

}  // namespace redlock::redis
