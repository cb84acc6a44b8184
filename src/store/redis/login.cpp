#include "store/redis/login.hpp"

namespace redlock::redis {

std::vector<Command> login_commands(const Endpoint& endpoint,
                                    const std::optional<std::string>& password) {
  std::vector<Command> commands;
  if (endpoint.user || password) {
    // A user without a password is an ACL user with `nopass`, which any password fits; never the
    // default user in its place.
    Command auth{"AUTH"};
    if (endpoint.user) auth.push_back(*endpoint.user);
    auth.push_back(password.value_or(""));
    commands.push_back(std::move(auth));
  }
  if (endpoint.database != 0) commands.push_back({"SELECT", std::to_string(endpoint.database)});
  return commands;
}

}  // namespace redlock::redis
