// The documents of groups, and attributes.
#include <fmt/format.h>
#include <tessera/dialect.h>
#include <tessera/group.h>

#include "keys.h"
#include "metadata_json.h"
#include "verify_run.h"

namespace tessera {

void verify_attributes(VerifyRun& run, const std::string& node, const Dialect& dialect) {
    run.guarded({.node = node, .key = join_key(node, dialect.documents.back())}, [&] {
        (void)dialect.load_attributes({*run.store, run.place(node)});
    });
}

void verify_group_documents(VerifyRun& run, const std::string& node, const Dialect& dialect) {
    const std::string prefix = run.place(node);
    const std::string group_key = join_key(node, dialect.group_key);
    run.guarded({.node = node, .key = group_key}, [&] { (void)get_object(*run.store, run.place(group_key)); });
    if (dialect.documents.back() != dialect.group_key) verify_attributes(run, node, dialect);
    const std::string consolidated =
        join_key(node, dialect.consolidated_key.empty() ? dialect.group_key : dialect.consolidated_key);
    const bool readable = run.guarded({.remedy = Remedy::consolidate, .node = node, .key = consolidated}, [&] {
        (void)dialect.load_consolidated({*run.store, prefix});
    });
    if (!readable) return;
    ConsolidatedState state;
    try {
        state = Group::open({run.store, prefix}).consolidated_state();
    } catch (...) {
        (void)current_fault();  // the document of a node, which reports it
        return;
    }
    if (!state.present || state.fresh()) return;
    const std::string& first = state.stale.front();
    run.add({.kind = FindingKind::leftover,
             .remedy = Remedy::consolidate,
             .node = node,
             .key = consolidated,
             .text = fmt::format("consolidated metadata say otherwise than {} of the nodes, the first being {}: other "
                                 "programs go by them",
                                 state.stale.size(), first.empty() ? "the group itself" : first)});
}

}  // namespace tessera
