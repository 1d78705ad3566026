// Errors: one exception class, a code that callers test, and a message for people.
//
// A message names everything that a person needs to act: the array, the key, the chunk, the codec stage, what was
// expected, what was found, and what to do. The layer that knows a name adds it once, with `in_context`, while the
// error propagates.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// What went wrong, by meaning. Callers test this, never the text.
enum class ErrorCode {
    invalid_argument,  ///< the caller asked for something that makes no sense (bad shape, dtype mismatch, bad text)
    out_of_bounds,     ///< a region, selection or index outside the array
    not_found,         ///< a missing path, key, array or member
    already_exists,    ///< creating over something without permission to overwrite
    corrupt,           ///< bytes that violate their format
    unsupported,       ///< valid, but not something that Tessera or the chosen dialect can do
    io,                ///< a system call failed; the message names the file and the system's reason
    budget,            ///< impossible within the memory budget; the message names the smallest budget that works
    cancelled,         ///< stopped by a stop token
    recorded,          ///< the change is recorded and will take effect, but is not in place yet: do not repeat it
    sealed,            ///< a change to a sealed array or group, without permission to break the seal
};

/// The name of the enumerator, for a person or a program: "not_found".
[[nodiscard]] std::string_view code_name(ErrorCode code);

/// A setting to give, or an operation to call.
enum class Action : std::uint8_t {
    // Settings of what was called.
    absent_status,  ///< take a status for absent: "403"
    accept,         ///< seal the files that are named as they are
    allow_outside,  ///< let references lead out of their folder
    break_seal,     ///< change sealed data
    cast,           ///< convert by another rule: "clip"
    chunks,         ///< chunks of another shape
    coarsening,     ///< coarsen in another way: "nearest"
    decode_cf,      ///< read what elements stand for, as the CF conventions have it
    dimension_names,
    drop_attributes,  ///< leave out what the format has no place for
    dtype,            ///< read or convert to a dtype: "f8"
    encode_cf,        ///< write times as numbers with units, as the CF conventions have it
    fill,             ///< another fill value: "null"
    follow_links,     ///< write and delete through links
    format,           ///< make the array in another format: "v3"
    leave_out,        ///< work without an array: "crs"
    max_memory,       ///< allow so much memory: "71M"
    no_locks,         ///< go on without locks
    overwrite,        ///< replace what is there
    recursive,        ///< remove what lies below, too
    resume,           ///< go on with an unfinished copy
    selection,        ///< take a part: "0, :, :"
    skip_old,         ///< leave out what is there already
    skip_damaged,     ///< restore all but what is damaged
    // Operations on a path, which is the value unless it is the one that failed.
    accept_snapshot,  ///< take a snapshot's files as they are
    calc_functions,   ///< the list of functions that expressions have
    copy,
    diff,
    drop_damaged,  ///< delete what repair set aside
    give_up_batches,
    make_group,
    reduce,  ///< reduce along dimensions: "mean"
    remove,
    repair,
    repair_to_seal,  ///< restore files from parity to what was sealed
    seal,
    seal_with_parity,
    set_element,
    undo,
    unstack,
    verify,
    without_references,  ///< join arrays by copying them
};

/// What a person can do. The library names no option, function or command: whoever shows the message says it in the
/// words of its own interface.
struct Advice {
    Action action;
    std::string effect = {};  ///< what it does, to stand after its name: "replaces it"; may be empty
    std::string value = {};   ///< what the setting or the operation takes: "71M", a path; may be empty
};

/// Something that a person should know, but that stops nothing.
struct Note {
    Note(std::string what, std::vector<Advice> todo = {}) : text(std::move(what)), advice(std::move(todo)) {}
    std::string text;
    std::vector<Advice> advice;
};

/// The one exception class of Tessera.
/// Thread rule: a value type; copies share nothing mutable.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }
    /// In the order in which it is best said; usually empty.
    [[nodiscard]] const std::vector<Advice>& advice() const noexcept { return advice_; }

    /// The same error with one more advice.
    [[nodiscard]] Error advising(Action action, std::string_view effect = {}, std::string_view value = {}) const;
    /// An error of another code and message with the advice of this one.
    [[nodiscard]] Error reworded(ErrorCode code, const std::string& message) const;
    /// The same error with `where` and ": " before its message.
    [[nodiscard]] Error within(std::string_view where) const {
        return reworded(code_, std::string(where) + ": " + what());
    }

private:
    ErrorCode code_;
    std::vector<Advice> advice_;
};

// Named makers, so that call sites read as sentences: `throw corrupt("...")`.
[[nodiscard]] inline Error invalid_argument(const std::string& m) {
    return {ErrorCode::invalid_argument, m};
}
[[nodiscard]] inline Error out_of_bounds(const std::string& m) {
    return {ErrorCode::out_of_bounds, m};
}
[[nodiscard]] inline Error not_found(const std::string& m) {
    return {ErrorCode::not_found, m};
}
[[nodiscard]] inline Error already_exists(const std::string& m) {
    return {ErrorCode::already_exists, m};
}
[[nodiscard]] inline Error corrupt(const std::string& m) {
    return {ErrorCode::corrupt, m};
}
[[nodiscard]] inline Error unsupported(const std::string& m) {
    return {ErrorCode::unsupported, m};
}
[[nodiscard]] inline Error over_budget(const std::string& m) {
    return {ErrorCode::budget, m};
}
[[nodiscard]] inline Error cancelled(const std::string& m) {
    return {ErrorCode::cancelled, m};
}

/// An `io` error: "DOING PATH: REASON", the reason taken from `error_number` (an errno value). ENOENT becomes
/// `not_found`; every other number is `io`.
[[nodiscard]] Error io_error(std::string_view doing, std::string_view path, int error_number);

/// Runs `body`; an Error that leaves it gets `where()` before its message. `where` is only called on failure.
template <class Where, class Body>
decltype(auto) in_context(Where&& where, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw e.within(std::forward<Where>(where)());
    }
}

}  // namespace tessera
