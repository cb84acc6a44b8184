#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "referee.hpp"

namespace redlock::sim {

/// A referee for each lock of a schedule. All of them see what concerns processes and servers.
class Referees final : public Watcher {
 public:
  Referees(Timeline& timeline, History& history, const std::vector<Resource>& resources,
           std::size_t quorum, std::string_view judged) {
    for (const Resource& resource : resources) {
      referees_.emplace_back(
          resource.key(), std::make_unique<Referee>(timeline, history, resource, quorum, judged));
    }
  }

  [[nodiscard]] Referee& first() { return *referees_.front().second; }
  [[nodiscard]] Referee& of(const Resource& resource) { return *find(resource.key()); }
  [[nodiscard]] bool any_violation() const {
    return std::ranges::any_of(referees_,
                               [](const auto& one) { return one.second->violation().has_value(); });
  }
  [[nodiscard]] std::optional<Violation> violation() const {
    for (const auto& [key, referee] : referees_) {
      if (referee->violation()) return referee->violation();
    }
    return std::nullopt;
  }
  [[nodiscard]] std::size_t scripts() const {
    return sum([](const Referee& referee) { return referee.scripts(); });
  }
  [[nodiscard]] std::size_t grants() const {
    return sum([](const Referee& referee) { return referee.grants(); });
  }
  template <class Action>
  void each(Action action) {
    for (const auto& [key, referee] : referees_) action(*referee);
  }

  void before(const Run& run) override {
    if (Referee* referee = find(run.keys.front())) referee->before(run);
  }
  void after(const Run& run, const Reply& reply) override {
    if (Referee* referee = find(run.keys.front())) referee->after(run, reply);
  }
  void saw_end(Server& server, Process& process, bool read_all) override {
    each([&](Referee& referee) { referee.saw_end(server, process, read_all); });
  }
  void broke(Server& server, Process& process) override {
    each([&](Referee& referee) { referee.broke(server, process); });
  }
  void redirected(Server& server, Process& process, const Reply& error) override {
    each([&](Referee& referee) { referee.redirected(server, process, error); });
  }
  void moved(Server& from, Server& to) override {
    each([&](Referee& referee) { referee.moved(from, to); });
  }

 private:
  [[nodiscard]] Referee* find(std::string_view key) {
    for (const auto& [name, referee] : referees_) {
      if (name == key) return referee.get();
    }
    return nullptr;
  }
  template <class Number>
  [[nodiscard]] std::size_t sum(Number number) const {
    std::size_t all = 0;
    for (const auto& [key, referee] : referees_) all += number(*referee);
    return all;
  }

  std::vector<std::pair<std::string, std::unique_ptr<Referee>>> referees_;
};

}  // namespace redlock::sim
