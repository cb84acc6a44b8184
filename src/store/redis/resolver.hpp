#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The addresses of a host. A numeric host costs nothing. A name is resolved by getaddrinfo(3) in a
/// thread of its own that is never joined: a name server that does not answer must not delay our
/// end (Asio's own resolver joins its thread when the program ends).
asio::awaitable<Result<std::vector<asio::ip::tcp::endpoint>, Fault>> resolve(std::string host,
                                                                             std::uint16_t port);

}  // namespace redlock::redis
