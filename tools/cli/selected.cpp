#include "selected.h"

#include <tessera/dimensions.h>
#include <tessera/turned.h>

#include <utility>

#include "options.h"

namespace tessera::cli {

Selection chosen_part(Session& session, const std::string& path, const std::string& text, const ArraySource& source) {
    std::string said;
    const Selection selection = about_path(path, [&] { return parse_selection(text, source, &said); });
    if (!said.empty()) session.note(path + ": " + said);
    return selection;
}

Selection chosen_part(Session& session, const std::string& path, const std::string& text,
                      std::unique_ptr<ArraySource>& source) {
    source = turned_source(std::move(source), text);
    return chosen_part(session, path, text, std::as_const(*source));
}

}  // namespace tessera::cli
