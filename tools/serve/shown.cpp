#include "shown.h"

#include <tessera/array.h>
#include <tessera/complex_part.h>
#include <tessera/derived_source.h>
#include <tessera/shared_source.h>

#include <utility>

namespace tessera::serve {

Shown shown_by(Served& served, const HttpRequest& request) {
    Shown shown{.node = served.node(request.parameter("path").value_or("")),
                .field = std::string(request.parameter("field").value_or("")),
                .source = nullptr};
    const ArraySource& elements = shown.node->source();
    if (shown.field.empty()) {
        shown.source = {shown.node, &elements};
    } else if (elements.info().dtype.kind() == Kind::complex) {
        shown.source =
            std::make_shared<ComplexPart>(std::shared_ptr<const ArraySource>(shown.node, &elements), shown.field);
    } else if (shown.node->array) {
        shown.source = std::make_shared<ArrayField>(*shown.node->array, shown.field);
    } else {
        shown.source = field_source(shared_source(shown.node->file), shown.field);
    }
    return shown;
}

}  // namespace tessera::serve
