// tessera mount
#include <fmt/format.h>

#include <mount.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct MountWords {
    std::string path, folder, zarr = "v3", order = "C";
    bool write = false, others = false;
};

int mount_path(Session& session, const MountWords& o) {
    const IoOptions io = session.io();
    const mount::MountOptions options{.io = {.threads = session.options().threads},
                                      .max_memory = session.options().max_memory,
                                      .follow_links = session.options().follow_links,
                                      .write = o.write,
                                      .order = o.order == "F" ? Order::F : Order::C,
                                      .zarr = o.zarr};
    session.clear_progress();
    mount::show(o.path, o.folder, options, o.others, io.stop, [&] {
        if (session.options().json) {
            Value value = Value::object();
            value.set("path", path_value(o.path));
            value.set("folder", path_value(o.folder));
            print(json_text(value) + "\n");
        } else {
            print(fmt::format("{} is shown in {}; to end it: Ctrl-C, or fusermount3 -u {}\n", o.path, o.folder,
                              o.folder));
        }
        flush_output();
    });
    return exit_done;
}

}  // namespace

Run declare_mount(CLI::App& app) {
    auto o = std::make_shared<MountWords>();
    app.add_option("PATH", o->path, "an array, a group, a zip, an array file, or a directory of them")
        ->required()
        ->option_text(" ");
    app.add_option("DIR", o->folder, "an empty folder")->required()->option_text(" ");
    app.add_flag("--write", o->write, "let the elements of .npy files be changed, as mapped files are");
    app.add_option("--as", o->zarr, "the format of Zarr below NAME.zarr: v3 (default) or v2")
        ->check(CLI::IsMember({"v2", "v3"}))
        ->option_text("FORMAT");
    app.add_option("--order", o->order, "the order of elements in .npy files: C (default) or F")
        ->check(CLI::IsMember({"C", "F"}))
        ->option_text("ORDER");
    app.add_flag("--allow-other", o->others,
                 "let other users of this machine read, too (needs user_allow_other in /etc/fuse.conf)");
    return [o](Session& session) { return mount_path(session, *o); };
}

}  // namespace tessera::cli
