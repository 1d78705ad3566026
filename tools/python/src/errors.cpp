// One Python exception for each ErrorCode; the classes are those of tessera/_errors.py.
#include <tessera/action.h>
#include <tessera/secrets.h>
#include <tessera/store_kind.h>

#include <array>

#include "work.h"

namespace tessera::python {

namespace {

const char* class_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument:
            return "InvalidArgument";
        case ErrorCode::out_of_bounds:
            return "OutOfBounds";
        case ErrorCode::not_found:
            return "NotFound";
        case ErrorCode::already_exists:
            return "AlreadyExists";
        case ErrorCode::corrupt:
            return "Corrupt";
        case ErrorCode::unsupported:
            return "Unsupported";
        case ErrorCode::io:
            return "IoError";
        case ErrorCode::budget:
            return "OverBudget";
        case ErrorCode::cancelled:
            return "Cancelled";
        case ErrorCode::recorded:
            return "Recorded";
        case ErrorCode::sealed:
            return "Sealed";
    }
    return "Error";
}

/// What the library advises, in Python's keywords and functions.
constexpr std::array names{
    ActionName{Action::absent_status, "storage_options", "storage_options={{'absent': {}}}"},
    ActionName{Action::accept, "accept=[...]", "accept={}"},
    ActionName{Action::break_seal, "break_seal=True"},
    ActionName{Action::cast, "cast", "cast=\"{}\""},
    ActionName{Action::chunks, "chunks"},
    ActionName{Action::coarsening, "how", "how=\"{}\""},
    ActionName{Action::copy, "tessera.copy", "tessera.copy(\"{}\", …)"},
    ActionName{Action::decode_cf, "cf=\"decode\""},
    ActionName{Action::diff, "tessera.diff"},
    ActionName{Action::drop_damaged, "tessera.repair(…, drop_damaged=True)"},
    ActionName{Action::drop_attributes, "drop_attributes=True"},
    ActionName{Action::dimension_names, "dims"},
    ActionName{Action::dtype, "dtype", "dtype=\"{}\""},
    ActionName{Action::fill, "fill_value", "fill_value={}"},
    ActionName{Action::follow_links, "follow_links=True"},
    ActionName{Action::format, "format", "format=\"{}\""},
    ActionName{Action::give_up_batches, "tessera.repair(…, give_up_batches=True)",
               "tessera.repair(\"{}\", give_up_batches=True)"},
    ActionName{Action::make_group, "tessera.create_group", "tessera.create_group(\"{}\")"},
    ActionName{Action::leave_out, "exclude", "exclude=[\"{}\"]"},
    ActionName{Action::max_memory, "max_memory", "max_memory=\"{}\""},
    ActionName{Action::no_locks, "locks=False"},
    ActionName{Action::overwrite, "overwrite=True"},
    ActionName{Action::recursive, "recursive=True"},
    ActionName{Action::reduce, "tessera.reduce", "tessera.reduce(…, how=\"{}\")"},
    ActionName{Action::remove, "Group.remove", "Group.remove(\"{}\", force=True)"},
    ActionName{Action::repair, "tessera.repair", "tessera.repair(\"{}\")"},
    ActionName{Action::repair_to_seal, "tessera.repair(…, to_seal=True)", "tessera.repair(…, to_seal=[\"{}\"])"},
    ActionName{Action::resume, "resume=True"},
    ActionName{Action::seal, "tessera.seal", "tessera.seal(\"{}\")"},
    ActionName{Action::seal_with_parity, "tessera.seal(…, parity=…)"},
    ActionName{Action::selection, "sel"},
    ActionName{Action::skip_old, "skip_old=True"},
    ActionName{Action::skip_damaged, "skip_damaged=True"},
    ActionName{Action::undo, "tessera.undo"},
    ActionName{Action::unstack, "tessera.unstack"},
    ActionName{Action::verify, "tessera.verify"},
};

void raise(const Error& error) {
    const std::string text = without_secrets(advised(error.what(), error.advice()));
    const py::object type = py::module_::import("tessera._errors").attr(class_name(error.code()));
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    PyErr_SetObject(type.ptr(), message.ptr());
}

}  // namespace

std::string advised(const std::string& message, const std::vector<Advice>& advice) {
    return message + advice_text(advice, names);
}

void bind_errors(py::module_& module) {
    module.def("without_secrets", [](const std::string& text) { return without_secrets(text); });
    module.def("path_below", path_below);
    py::register_local_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const Error& error) {
            raise(error);
        }
    });
}

}  // namespace tessera::python
