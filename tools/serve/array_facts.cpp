#include "array_facts.h"

#include <tessera/element.h>
#include <tessera/json.h>

#include <utility>

namespace tessera::serve {

Value fill_json(const ArrayMetadata& metadata) {
    const FillValue& fill = metadata.fill;
    if (!fill.error.empty() || !fill.bytes) return nullptr;
    const VariableSlot slot{reinterpret_cast<const char*>(fill.bytes->data()), fill.bytes->size()};
    const bool variable = metadata.dtype.is_variable();
    return element_to_json(metadata.dtype, variable ? reinterpret_cast<const std::byte*>(&slot) : fill.bytes->data());
}

Value fields_json(const DType& dtype) {
    return dtype.kind() == Kind::structure ? dtype.descr() : Value::array();
}

Value codecs_json(const std::vector<CodecConfig>& codecs) {
    Value list = Value::array();
    for (const CodecConfig& codec : codecs) {
        Value one = Value::object();
        one.set("name", codec.name);
        one.set("configuration", codec.configuration);
        list.push_back(std::move(one));
    }
    return list;
}

}  // namespace tessera::serve
