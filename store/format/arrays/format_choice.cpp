#include "format_choice.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error.h>

namespace tessera {

bool names_are_read(const Dialect& dialect) {
    return dialect.dimension_names || dialect.fill_is_missing;
}

Note v3_note(std::string_view why) {
    return {fmt::format("made in format v3, because {}", why), {{Action::format, "chooses another"}}};
}

std::string no_names_text(const Dialect& dialect) {
    return fmt::format("{} has no names of dimensions that other programs read", dialect.name);
}

ArrayMetadata expressed(const ArrayOptions& options, const Dialect& dialect) {
    ArrayOptions own = options;
    own.format = dialect.name;
    ArrayMetadata metadata = make_metadata(own);
    dialect.require_expressible(metadata);
    return metadata;
}

FormatChoice chosen(const ArrayOptions& options, bool names, const Dialect& own) {
    std::string why;
    try {
        (void)expressed(options, own);
        if (!names || names_are_read(own)) return {.dialect = &own};
        why = no_names_text(own);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::invalid_argument) throw;
        why = e.what();
    }
    try {
        const Dialect& v3 = dialect_named("v3");
        (void)expressed(options, v3);
        return {.dialect = &v3, .note = v3_note(why)};
    } catch (const Error&) {
        return {.dialect = &own};  // it is not the format
    }
}

}  // namespace tessera
