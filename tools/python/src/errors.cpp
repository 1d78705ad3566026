// One Python exception for each ErrorCode; the classes are those of tessera/_errors.py.
#include <tessera/error.h>

#include "handle.h"

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

/// What to do in Python's words; the library's messages state facts.
std::string advice(ErrorCode code) {
    return code == ErrorCode::sealed ? "; break_seal=True, where it is opened or given to what changes it, allows it"
                                     : "";
}

/// The message in Python's words: 'give --max-memory 71M' becomes 'give max_memory="71M"'.
std::string text_of(const Error& error) {
    constexpr std::string_view option = "--max-memory";
    std::string text = error.what() + advice(error.code());
    if (error.code() != ErrorCode::budget) return text;
    for (std::size_t at = text.find(option); at != std::string::npos; at = text.find(option, at)) {
        text.replace(at, option.size(), "max_memory");
        at += std::string_view("max_memory").size();
        const std::size_t end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
        if (text.compare(at, 1, " ") != 0 || end == at + 1 || text.compare(end, 1, "M") != 0) continue;
        text.insert(end + 1, "\"");
        text.replace(at, 1, "=\"");
    }
    return text;
}

void raise(const Error& error) {
    const std::string text = text_of(error);
    const py::object type = py::module_::import("tessera._errors").attr(class_name(error.code()));
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    PyErr_SetObject(type.ptr(), message.ptr());
}

}  // namespace

void bind_errors(py::module_& /*module*/) {
    py::register_local_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const Error& error) {
            raise(error);
        }
    });
}

}  // namespace tessera::python
