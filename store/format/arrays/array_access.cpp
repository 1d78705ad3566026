#include "array_access.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/place.h>

#include "dialects.h"

namespace tessera {

Array ArrayAccess::open_settled(Place place) {
    auto found = find_array(place);
    if (!found) throw absence(place, "array");
    return open_found(std::move(place), *found->dialect, std::move(found->document));
}

Array ArrayAccess::open_found(Place place, const Dialect& dialect, Buffer document) {
    auto state = std::make_shared<ArrayState>(std::move(place.store), place.prefix, dialect);
    state->take(std::move(document));
    return Array(std::move(state));
}

Array ArrayAccess::create_whole(Place place, const ArrayOptions& given, Waiter* waiter) {
    ArrayOptions options = given;
    FormatChoice choice;
    ArrayMetadata metadata = in_context([&] { return place.name(); },
                                        [&] {
                                            choice = choose_format(options);
                                            options.format = choice.dialect->name;
                                            return make_metadata(options);
                                        });
    Array array = Array::create(std::move(place), *choice.dialect, std::move(metadata), false);
    const auto undefined = options.fill_value ? std::nullopt : undefined_note(*choice.dialect, array.metadata());
    for (const auto& note : {choice.note, undefined}) {
        if (note && waiter != nullptr) waiter->notes(fmt::format("{}: {}", array.name(), note->text));
    }
    const Value attributes = new_attributes(options);
    if (!attributes.as_object().empty()) array.attributes().replace(attributes);
    array.publish();
    return array;
}

}  // namespace tessera
