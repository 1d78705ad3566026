// What a person can do about an error or a finding: the list behind Advice (error.h), and how it becomes a text.
//
// The program says it in options and commands, Python in keywords and functions: each has one table of names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/error.h>

namespace tessera {

enum class Action : std::uint8_t {
    // Settings of what was called.
    absent_status,  ///< take a status for absent: "403"
    accept,         ///< seal the files that are named as they are
    allow_outside,  ///< let references lead out of their folder
    break_seal,     ///< change sealed data
    cast,           ///< convert by another rule: "clip"
    chunks,         ///< chunks of another shape
    coarsening,     ///< coarsen in another way: "nearest"
    dimension_names,
    drop_attributes,  ///< leave out what the format has no place for
    dtype,            ///< read or convert to a dtype: "f8"
    encode_cf,        ///< write times as numbers with units, as the CF conventions have it
    fill,             ///< another fill value: "null"
    follow_links,     ///< write and delete through links
    format,           ///< make the array in another format: "v3"
    max_memory,       ///< allow so much memory: "71M"
    no_locks,         ///< go on without locks
    overwrite,        ///< replace what is there
    recursive,        ///< remove what lies below, too
    resume,           ///< go on with an unfinished copy
    selection,        ///< take a part: "0, :, :"
    skip_damaged,     ///< restore all but what is damaged
    // Operations on a path, which is the value unless it is the one that failed.
    accept_snapshot,  ///< take a snapshot's files as they are
    calc_functions,   ///< the list of functions that expressions have
    copy,
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

/// The name that an interface has for an action, without its value and with it ("{}").
struct ActionName {
    Action action;
    std::string_view name;
    std::string_view with_value = {};
};

/// "; NAME EFFECT, NAME EFFECT", to stand after a message; empty without advice. Actions that `names` lacks are left
/// out.
[[nodiscard]] std::string advice_text(const std::vector<Advice>& advice, std::span<const ActionName> names);

}  // namespace tessera
