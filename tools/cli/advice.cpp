#include "advice.h"

#include <array>

#include <tessera/action.h>

namespace tessera::cli {

namespace {

constexpr std::array names{
    ActionName{Action::absent_status, "--absent", "--absent {}"},
    ActionName{Action::accept, "--accept", "--accept {}"},
    ActionName{Action::accept_snapshot, "`tessera snapshot PATH accept`", "`tessera snapshot PATH accept {}`"},
    ActionName{Action::allow_outside, "--allow-outside"},
    ActionName{Action::break_seal, "--break-seal"},
    ActionName{Action::calc_functions, "`tessera calc --help`"},
    ActionName{Action::cast, "--cast", "--cast {}"},
    ActionName{Action::chunks, "--chunks"},
    ActionName{Action::coarsening, "--with", "--with {}"},
    ActionName{Action::copy, "`tessera copy`", "`tessera copy {} DIRECTORY`"},
    ActionName{Action::decode_cf, "--decode-cf"},
    ActionName{Action::diff, "`tessera diff`"},
    ActionName{Action::drop_damaged, "`tessera repair --drop-damaged`"},
    ActionName{Action::drop_attributes, "--drop-attributes"},
    ActionName{Action::dimension_names, "--dims"},
    ActionName{Action::dtype, "--dtype", "--dtype {}"},
    ActionName{Action::encode_cf, "--encode-cf"},
    ActionName{Action::fill, "--fill", "--fill {}"},
    ActionName{Action::follow_links, "--follow-links"},
    ActionName{Action::format, "--format", "--format {}"},
    ActionName{Action::give_up_batches, "`tessera repair --give-up-batches`", "`tessera repair {} --give-up-batches`"},
    ActionName{Action::make_group, "`tessera group`", "`tessera group {}`"},
    ActionName{Action::leave_out, "--except", "--except {}"},
    ActionName{Action::max_memory, "--max-memory", "--max-memory {}"},
    ActionName{Action::no_locks, "--no-locks"},
    ActionName{Action::overwrite, "--overwrite"},
    ActionName{Action::recursive, "--recursive"},
    ActionName{Action::reduce, "`tessera reduce`", "`tessera reduce SRC DST --with {}`"},
    ActionName{Action::remove, "`tessera rm`", "`tessera rm {} --force`"},
    ActionName{Action::repair, "`tessera repair`", "`tessera repair {}`"},
    ActionName{Action::repair_to_seal, "`tessera repair --to-seal`", "`tessera repair --to-seal {}`"},
    ActionName{Action::resume, "--resume"},
    ActionName{Action::seal, "`tessera seal`", "`tessera seal {}`"},
    ActionName{Action::seal_with_parity, "`tessera seal --parity`"},
    ActionName{Action::selection, "--sel", "--sel '{}'"},
    ActionName{Action::set_element, "`tessera set`"},
    ActionName{Action::skip_old, "--skip-old"},
    ActionName{Action::skip_damaged, "--skip-damaged"},
    ActionName{Action::undo, "`tessera undo`"},
    ActionName{Action::unstack, "`tessera unstack`"},
    ActionName{Action::verify, "`tessera verify`"},
    ActionName{Action::without_references, "stacking without --virtual"},
};

}  // namespace

std::string advised(const std::string& message, const std::vector<Advice>& advice) {
    return message + advice_text(advice, names);
}

std::string message_of(const Error& error) {
    return advised(error.what(), error.advice());
}

}  // namespace tessera::cli
