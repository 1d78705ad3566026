#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <tessera/remote_options.h>
#include <unistd.h>

#include <algorithm>

#include "report.h"

namespace tessera::cli {

namespace {

constexpr std::int64_t redraw_ms = 100;

void write_terminal(std::string_view text) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar() : watcher_([this](const std::stop_token& ended) { watch(ended); }) {}

ProgressBar::~ProgressBar() {
    watcher_.request_stop();
    watcher_.join();
    clear();
}

void ProgressBar::watch(const std::stop_token& ended) {
    constexpr std::chrono::milliseconds between{500};
    std::mutex mutex;
    std::unique_lock guard(mutex);
    while (!ends_.wait_for(guard, ended, between, [] { return false; }) && !ended.stop_requested()) {
        if (!remote_activity().waits_for.empty()) draw();
    }
}

bool ProgressBar::wanted() {
    return ::isatty(STDERR_FILENO) == 1;
}

void ProgressBar::start(std::int64_t total_bytes, std::string_view what) {
    const std::lock_guard lock(drawing_);
    what_ = printable(what);
    total_ = total_bytes;
    begun_ = Clock::now();
    done_ = 0;
    next_draw_ = redraw_ms;  // shorter work draws nothing
}

void ProgressBar::advance(std::int64_t bytes) {
    done_ += bytes;
    const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun_).count();
    std::int64_t due = next_draw_;
    if (now >= due && next_draw_.compare_exchange_strong(due, now + redraw_ms)) draw();
}

void ProgressBar::draw() {
    const std::lock_guard lock(drawing_);
    const std::int64_t done = std::min(done_.load(), total_);
    const double part = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1.0;
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    const RemoteActivity far = remote_activity();
    const auto rate = static_cast<std::uint64_t>(seconds > 0 ? static_cast<double>(done) / seconds : 0.0);
    constexpr int bar_width = 24;
    const int filled = static_cast<int>(part * bar_width);
    std::string line;
    if (!what_.empty()) {
        line = fmt::format("{} [{}{}] {:3d}%  {} of {}  {}/s", what_, std::string(filled, '#'),
                           std::string(bar_width - filled, '.'), static_cast<int>(part * 100),
                           bytes_text(static_cast<std::uint64_t>(done)), bytes_text(static_cast<std::uint64_t>(total_)),
                           bytes_text(rate));
    }
    if (far.requests > 0) {
        line += fmt::format("{}{} in {} requests", line.empty() ? "" : "  ", bytes_text(far.bytes), far.requests);
    }
    if (!far.waits_for.empty()) line = fmt::format("waiting for {}  {}", printable(far.waits_for), line);
    line.resize(std::min(line.size(), terminal_width() - 1));
    write_terminal("\r\x1b[K" + line);
    drawn_ = true;
}

void ProgressBar::clear() {
    const std::lock_guard lock(drawing_);
    if (drawn_) write_terminal("\r\x1b[K");
    drawn_ = false;
}

}  // namespace tessera::cli
