#include "engine/survey.hpp"

#include <set>

#include "engine/ballot.hpp"

namespace redlock {
namespace {

template <class Vote, class Question>
asio::awaitable<std::vector<Vote>> ask_everybody(Electorate& electorate, Question question) {
  const auto ballot = std::make_shared<Ballot<VoteList<Vote>>>(electorate);
  for (std::size_t i = 0; i < electorate.size(); ++i) ask(electorate, ballot, i, question);
  while (!ballot->tally.complete()) co_await ballot->bell->wait_until(Instant::max());
  co_return ballot->tally.votes();
}

using ListVote = std::variant<std::vector<Resource>, Fault>;

asio::awaitable<ListVote> list_one(LockServer& server, Instant deadline) {
  auto listed = co_await server.list(deadline);
  if (!listed) co_return listed.error();
  co_return std::move(*listed);
}

}  // namespace

asio::awaitable<std::vector<InspectVote>> inspect(Electorate& electorate, Resource resource) {
  const Instant deadline = electorate.clock().now() + electorate.server_timeout();
  return ask_everybody<InspectVote>(electorate,
                                    [resource, deadline](LockServer& server) { return server.inspect(resource, std::nullopt, deadline); });
}

asio::awaitable<std::vector<BreakVote>> break_lock(Electorate& electorate, BreakRequest request) {
  const Instant deadline = electorate.clock().now() + electorate.server_timeout();
  return ask_everybody<BreakVote>(
      electorate, [request, deadline](LockServer& server) { return server.break_lock(request, deadline); });
}

asio::awaitable<Listing> list_resources(Electorate& electorate) {
  const Instant deadline = electorate.clock().now() + electorate.server_timeout();
  const auto votes = co_await ask_everybody<ListVote>(electorate, [deadline](LockServer& server) { return list_one(server, deadline); });
  std::set<Resource> resources;
  for (const ListVote& vote : votes) {
    if (const auto* listed = std::get_if<std::vector<Resource>>(&vote)) resources.insert(listed->begin(), listed->end());
  }
  co_return Listing{{resources.begin(), resources.end()}, faults_among(electorate, [&](std::size_t i) { return &votes[i]; })};
}

}  // namespace redlock
