#include "equal_values.h"

#include <fmt/format.h>
#include <tessera/buffer.h>
#include <tessera/error.h>
#include <tessera/fnv.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "directory_store.h"
#include "settled_values.h"
#include "sha256.h"

namespace tessera {

namespace {

constexpr std::string_view first_line = "{\"tessera_equal\": 1}\n";
constexpr std::string_view clock_key = ".tessera/equal-clock";
constexpr std::uint64_t longest_file = std::uint64_t{1} << 30;
constexpr std::size_t sum_size = 8;

/// Whether stamps of an array's values can be relied on.
bool tells_changes(const ArrayState& state) {
    return is_directory_store(*state.store) && has_good_times(state.store->name_of(state.prefix));
}

void add(Hasher& hasher, std::uint64_t number) {
    hasher.add(&number, sizeof number);
}

void add(Hasher& hasher, const ValueStamp& stamp) {
    add(hasher, stamp.size);
    add(hasher, stamp.id);
    add(hasher, static_cast<std::uint64_t>(stamp.modified));
    add(hasher, static_cast<std::uint64_t>(stamp.changed));
}

std::string sum_of(std::string_view bytes) {
    std::string sum(sum_size, '\0');
    const std::uint64_t hash = fnv1a(bytes);
    for (std::size_t i = 0; i < sum_size; ++i) sum[i] = static_cast<char>(hash >> (8 * i) & 0xffU);
    return sum;
}

/// Runs what must not be a reason to fail; false if it did.
template <class Body>
bool in_passing(const Body& body) {
    try {
        body();
        return true;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        return false;
    }
}

}  // namespace

EqualValues::EqualValues(const ArrayState& from, const ArrayState& to, bool recall, bool record)
    : from_(from), to_(to), usable_(tells_changes(from) && tells_changes(to)) {
    if (!usable_) return;
    if (recall && !in_passing([&] { load(); })) known_.clear();
    if (!record) return;
    const bool writes = in_passing([&] {
        own_ = directory_store(to.store->name_of(to.prefix), {.durability = Durability::none, .process_locks = false});
        settled_ = settled_before(*own_, std::string(clock_key));
    });
    if (!writes) own_ = nullptr;
}

void EqualValues::load() {
    Buffer bytes;
    if (!to_.store->get(to_.key(equal_values_key), bytes, longest_file)) return;
    const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (file.size() < first_line.size() + sum_size || !file.starts_with(first_line)) return;
    const std::string_view covered = file.substr(0, file.size() - sum_size);
    const std::string_view hashes = covered.substr(first_line.size());
    if (file.substr(covered.size()) != sum_of(covered) || hashes.size() % sizeof(Hash) != 0) return;
    known_.resize(hashes.size() / sizeof(Hash));
    if (!known_.empty()) std::memcpy(known_.data(), hashes.data(), hashes.size());
    if (!std::ranges::is_sorted(known_)) known_.clear();
}

std::optional<EqualValues::Pair> EqualValues::look(const std::string& key) const {
    if (!usable_ || (known_.empty() && own_ == nullptr)) return std::nullopt;
    const auto source = from_.store->stamp(from_.key(key));
    const auto there = to_.store->stamp(to_.key(key));
    if (!source || !there || source->by_content || there->by_content) return std::nullopt;
    Hasher hasher;
    add(hasher, *source);
    add(hasher, *there);
    hasher.add(key.data(), key.size());
    Pair pair{.changed = std::max(source->changed, there->changed)};
    const Sha256 sum = hasher.finish();
    std::copy_n(sum.begin(), pair.hash.size(), pair.hash.begin());
    return pair;
}

bool EqualValues::knows(const Pair& pair) {
    if (!std::ranges::binary_search(known_, pair.hash)) return false;
    if (own_ == nullptr) return true;
    const std::lock_guard lock(mutex_);
    found_.push_back(pair.hash);
    return true;
}

void EqualValues::note(const std::string& key, const std::optional<Pair>& before) {
    if (own_ == nullptr || !before || before->changed >= *settled_) return;
    const auto after = look(key);
    if (!after || after->hash != before->hash) return;
    const std::lock_guard lock(mutex_);
    found_.push_back(after->hash);
}

void EqualValues::write() {
    if (own_ == nullptr) return;
    std::ranges::sort(found_);
    if (std::ranges::equal(found_, known_)) return;
    (void)in_passing([&] {
        std::string file(first_line);
        for (const Hash& hash : found_) file.append(reinterpret_cast<const char*>(hash.data()), hash.size());
        file += sum_of(file);
        own_->put(equal_values_key, std::as_bytes(std::span(file)));
    });
}

}  // namespace tessera
