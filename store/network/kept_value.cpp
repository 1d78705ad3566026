#include "kept_value.h"

#include <fcntl.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <deque>
#include <utility>

#include "spool.h"

namespace tessera {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::size_t most_at_once = 4;

/// Bytes of one request: as many as a budget allows, and the same for each value, so that a cache knows them again.
std::uint64_t request_bytes() {
    const auto& account = MemoryAccount::current();
    if (account == nullptr) return 16 * mib;
    return std::bit_floor(std::clamp<std::uint64_t>(account->limit() / 16, mib, 16 * mib));
}

}  // namespace

// ---- KeptFile

bool KeptFile::write(std::uint64_t at, ByteSpan bytes) noexcept {
    try {
        const std::lock_guard guard(mutex_);
        if (!file_ && !failed_) file_ = file_without_name(large_files_folder());
    } catch (...) {
        failed_ = true;
    }
    if (!failed_ && !pwrite_all(file_.get(), bytes, at)) failed_ = true;
    return !failed_;
}

bool KeptFile::read(std::uint64_t at, MutableByteSpan out) noexcept {
    if (!failed_ && pread_all(file_.get(), out, at) != out.size()) failed_ = true;
    return !failed_;
}

void KeptFile::forget(std::uint64_t at, std::uint64_t size) noexcept {
    const std::lock_guard guard(mutex_);
    // Where holes cannot be made, the room is free again at the end.
    if (file_ && size > 0) {
        (void)os::punch(file_.get(), at, (size + page - 1) / page * page);
    }
}

// ---- KeptValue

KeptValue::KeptValue(std::shared_ptr<KeptFile> file, std::unique_ptr<const RangedSource> source, bool whole)
    : file_(std::move(file)),
      source_(std::move(source)),
      whole_(whole),
      longest_(request_bytes()),
      piece_(whole ? longest_ : mib),
      place_(file_->place(source_->size())),
      pieces_(static_cast<std::size_t>((source_->size() + piece_ - 1) / piece_), Piece::missing) {}

KeptValue::~KeptValue() {
    file_->forget(place_, size());
}

bool KeptValue::fill(ByteSpan all) {
    if (!file_->write(place_, all)) return false;
    set({0, pieces_.size()}, Piece::here);
    return true;
}

void KeptValue::read(std::uint64_t offset, MutableByteSpan out) {
    require_range(*source_, offset, out.size());
    if (out.empty() || source_->take_first(offset, out)) return;
    const ByteSource::Extent part{offset, offset + out.size()};
    fetch({&part, 1});
    if (!file_->read(place_ + offset, out)) source_->read(offset, out);
}

void KeptValue::fetch(std::span<const ByteSource::Extent> parts) {
    while (file_->works()) {
        std::size_t at_once =
            static_cast<std::size_t>(std::clamp<std::uint64_t>(memory_left() / 4 / longest_, 1, most_at_once));
        bool others = false;
        const std::vector<Run> runs = claim(parts, at_once, others);
        if (!runs.empty()) {
            fetch_claimed(runs, at_once);
            continue;
        }
        if (!others) return;
        require_not_stopped();
        std::unique_lock guard(mutex_);
        changed_.wait_until(guard, std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    }
}

/// Those of the pieces that nobody has or fetches. Of a value that will be read whole, also those that follow.
std::vector<KeptValue::Run> KeptValue::claim(std::span<const ByteSource::Extent> parts, std::size_t at_once,
                                             bool& others) {
    const std::size_t most = std::max<std::size_t>(1, longest_ / piece_);
    std::vector<Run> runs;
    const std::lock_guard guard(mutex_);
    const auto take = [&](std::size_t n) {
        pieces_[n] = Piece::coming;
        if (runs.empty() || runs.back().end != n || n - runs.back().begin >= most) runs.push_back({n, n});
        runs.back().end = n + 1;
    };
    for (const ByteSource::Extent& part : parts) {
        if (part.end <= part.begin) continue;
        const std::size_t last = std::min<std::size_t>(pieces_.size(), (part.end - 1) / piece_ + 1);
        for (std::size_t n = part.begin / piece_; n < last; ++n) {
            if (pieces_[n] == Piece::missing) {
                take(n);
            } else if (pieces_[n] == Piece::coming) {
                others = others || runs.empty() || n < runs.back().begin;
            }
        }
    }
    if (!whole_ || runs.empty()) return runs;
    for (std::size_t n = runs.back().end; n < pieces_.size() && runs.size() < at_once; ++n) {
        if (pieces_[n] != Piece::missing) break;
        take(n);
    }
    return runs;
}

void KeptValue::fetch_claimed(const std::vector<Run>& runs, std::size_t at_once) {
    std::size_t done = 0;
    try {
        MemoryHold held;
        bool is_held = false;
        for (at_once = std::min(at_once, runs.size()); at_once > 1; at_once /= 2) {
            try {
                held = MemoryHold(at_once * longest_);
                break;
            } catch (const Error&) {  // less at once
            }
        }
        std::deque<HttpTicket> tickets;
        for (std::size_t next = 0; done < runs.size(); ++done) {
            for (; next < runs.size() && tickets.size() < at_once; ++next) {
                const std::uint64_t begin = runs[next].begin * piece_;
                tickets.push_back(source_->start(begin, std::min(runs[next].end * piece_, size()) - begin, is_held));
            }
            HttpResponse response = source_->finish(std::move(tickets.front()));
            tickets.pop_front();
            const std::uint64_t begin = runs[done].begin * piece_;
            const std::uint64_t end = std::min(runs[done].end * piece_, size());
            if (response.first != begin || response.body.size() != end - begin) {
                throw corrupt("{}: asked for {} bytes at offset {}, and got others", name(), end - begin, begin);
            }
            if (!file_->write(place_ + begin, response.body)) break;
            HttpClient::shared().reuse(std::move(response));
            set(runs[done], Piece::here);
        }
    } catch (...) {
        for (; done < runs.size(); ++done) set(runs[done], Piece::missing);
        throw;
    }
    for (; done < runs.size(); ++done) set(runs[done], Piece::missing);
}

void KeptValue::set(const Run& run, Piece piece) {
    const std::lock_guard guard(mutex_);
    std::fill(pieces_.begin() + static_cast<std::ptrdiff_t>(run.begin),
              pieces_.begin() + static_cast<std::ptrdiff_t>(run.end), piece);
    changed_.notify_all();
}

}  // namespace tessera
