// Rows that a program adds to one of the library's tables, until the table is read for the first time.
#pragma once

#include <tessera/error_text.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace tessera {

/// Why frozen: a table that is read needs no lock then, and what opens an array once opens it always. Why not objects
/// that register themselves: they vanish when a static library is linked. Thread rule: any thread.
template <class Row>
class AddedRows {
public:
    /// Throws invalid_argument if the table was read, or has a row of this name. `what`: "codec".
    void add(const Row& row, std::span<const Row> own, std::string_view what, std::string_view Row::*name) {
        const std::lock_guard guard(mutex_);
        const auto taken = [&](const Row& other) { return other.*name == row.*name; };
        if (std::ranges::any_of(own, taken) || std::ranges::any_of(rows_, taken)) {
            throw invalid_argument("adding {} \"{}\": there is one of that name", what, row.*name);
        }
        if (frozen_) {
            throw invalid_argument(
                "adding {} \"{}\": the table of them is in use already; add it before anything is opened or created",
                what, row.*name);
        }
        rows_.push_back(row);
    }

    /// The library's own rows and the added ones, and none more from now on.
    [[nodiscard]] std::vector<Row> table(std::span<const Row> own) {
        const std::lock_guard guard(mutex_);
        frozen_ = true;
        std::vector<Row> all(own.begin(), own.end());
        all.insert(all.end(), rows_.begin(), rows_.end());
        return all;
    }

private:
    std::mutex mutex_;
    bool frozen_ = false;
    std::vector<Row> rows_;
};

}  // namespace tessera
