// How a case is measured, and how other programs take part.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "bench.h"

namespace bench {

namespace {

double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

/// What one side gave, round by round.
struct Series {
    std::vector<double> wall;
    std::vector<double> ratio;
    std::vector<double> cpu_ratio;
    double memory = 0;
};

}  // namespace

Peer::Peer(const std::string& command) {
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::dup2(to[0], 0);
        ::dup2(from[1], 1);
        ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
        ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
    char line[256];
    if (std::fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error(command + " did not begin");
    name_ = line;
    name_.pop_back();
}

Peer::~Peer() {
    std::fclose(to_);  // it ends by itself then
    std::fclose(from_);
    ::waitpid(pid_, nullptr, 0);
}

std::optional<Cost> Peer::ask(const std::string& request) {
    std::fputs((request + '\n').c_str(), to_);
    std::fflush(to_);
    char line[256];
    if (std::fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error(name_ + " died of " + request);
    Cost cost;
    std::istringstream answer(line);
    if (answer >> cost.wall >> cost.cpu >> cost.memory) return cost;
    return std::nullopt;
}

Bench::Bench(Settings settings) : settings_(std::move(settings)) {
    for (const auto& command : settings_.peers) peers_.push_back(std::make_unique<Peer>(command));
}

bool Bench::wanted(const std::string& name) const {
    return settings_.only.empty() || std::ranges::any_of(settings_.only, [&](const std::string& words) {
               return name.find(words) != std::string::npos;
           });
}

bool Bench::wants_any(const std::string& workload) const {
    return wanted(workload) || std::ranges::any_of(settings_.only, [&](const std::string& words) {
               return words.starts_with(workload + ' ');
           });
}

void Bench::compare(const Case& c, const Side& plain, const Side& ours,
                    const std::function<std::string()>& request) const {
    if (!wanted(c.name)) return;
    std::vector<std::function<std::optional<Cost>()>> sides;
    std::vector<std::string> names;
    for (const Side* side : {&plain, &ours}) {
        sides.emplace_back([side]() -> std::optional<Cost> {
            side->prepare();
            return cost_of(side->run);
        });
        names.emplace_back("Tessera");
    }
    for (const auto& peer : peers_) {
        if (!request) break;
        sides.emplace_back([&request, p = peer.get()] { return p->ask(request()); });
        names.push_back(peer->name());
    }
    // A disk that is waited for thousands of times takes half a minute, more than can be repeated often.
    const int rounds = c.name.ends_with(" durable") ? std::min(settings_.rounds, 3) : settings_.rounds;
    std::vector<Series> series(sides.size());
    for (int round = 0; round <= rounds; ++round) {  // the first one warms up
        std::vector<std::optional<Cost>> cost(sides.size());
        for (std::size_t turn = 0; turn < sides.size(); ++turn) {
            // Forwards and backwards in turn: what one side leaves behind (pages just freed) is not for the same next
            // one.
            const std::size_t step = round % 2 == 0 ? turn : sides.size() - 1 - turn;
            const std::size_t who = (static_cast<std::size_t>(round / 2) + step) % sides.size();
            cost[who] = sides[who]();
        }
        for (std::size_t who = 0; who < sides.size(); ++who) {
            if (!cost[who]) continue;
            series[who].memory = std::max(series[who].memory, cost[who]->memory);
            if (round == 0) continue;
            series[who].wall.push_back(cost[who]->wall);
            series[who].ratio.push_back(cost[who]->wall / cost[0]->wall);
            series[who].cpu_ratio.push_back(cost[who]->cpu / cost[0]->cpu);
        }
    }
    for (std::size_t who = 1; who < sides.size(); ++who) {
        const Series& s = series[who];
        if (s.wall.empty()) continue;
        std::cout << fmt::format("{}\t{}\t{}\t{}\t{:.3f}\t{:.3f}\t{:.3f}\t{:.3f}\t{:.1f}\t{:.1f}\n", c.name, c.threads,
                                 c.offset, names[who], 1e3 * median(series[0].wall), 1e3 * median(s.wall),
                                 median(s.ratio), median(s.cpu_ratio), series[0].memory, s.memory)
                  << std::flush;
    }
}

}  // namespace bench
