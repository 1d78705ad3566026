// Leases of stretches of units, so that processes share what is left. Private to the store module.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <tessera/store_kind.h>

namespace tessera {

/// Leases by number, each a file in a folder or an object in a store far away. A holder renews its leases. Whoever
/// waits measures with a clock of its own how long one stays the same, so that no two clocks are compared. Two may hold
/// one lease after all, if one was cut off: that costs time, because units can be done twice. Thread rule: one thread,
/// but for holds().
class UnitClaims {
public:
    virtual ~UnitClaims() = default;  ///< gives all leases back

    /// Whether the lease is this object's now. Takes over one that is not valid any more.
    virtual bool take(std::int64_t number) = 0;
    virtual void give_back(std::int64_t number) = 0;
    /// Whether a lease that was taken is this object's still. May be called in other threads meanwhile.
    [[nodiscard]] virtual bool holds(std::int64_t number) = 0;
};

/// Leases in `claims` below a place of records.
[[nodiscard]] std::unique_ptr<UnitClaims> unit_claims(Place records, std::chrono::milliseconds lease);

}  // namespace tessera
