#include <tessera/group_documents.h>

#include <utility>

namespace tessera {

Value v2_group_document() {
    Value group = Value::object();
    group.set("zarr_format", 2);
    return group;
}

Value v2_consolidated_document(Value documents) {
    Value consolidated = Value::object();
    consolidated.set("metadata", std::move(documents));
    consolidated.set("zarr_consolidated_format", 1);
    return consolidated;
}

Value v3_group_document(Value attributes) {
    Value group = Value::object();
    group.set("attributes", std::move(attributes));
    group.set("zarr_format", 3);
    group.set("node_type", "group");
    return group;
}

Value v3_consolidated_metadata(Value documents) {
    Value consolidated = Value::object();
    consolidated.set("kind", "inline");
    consolidated.set("must_understand", false);
    consolidated.set("metadata", std::move(documents));
    return consolidated;
}

}  // namespace tessera
