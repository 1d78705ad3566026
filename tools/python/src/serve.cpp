// The server behind tessera.serve().
#include <pybind11/stl.h>

#include <server.h>

#include <memory>
#include <string>
#include <vector>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

/// A forked child has none of the server's threads: there it is closed.
class ServerHandle {
public:
    ServerHandle(const std::vector<std::string>& paths, const serve::ServedOptions& served,
                 const serve::ServerOptions& options)
        : server_(std::make_unique<serve::Server>(paths, served, options)),
          url_(server_->url()),
          port_(server_->port()) {}
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] bool closed() const { return !server_.usable(); }
    void close() { server_.reset(); }

private:
    Held<serve::Server> server_;
    std::string url_;
    int port_;
};

std::unique_ptr<ServerHandle> start(const std::vector<py::object>& paths, int port, bool token,
                                    const std::vector<std::string>& hosts, const std::vector<std::string>& origins,
                                    const std::string& bind, bool follow_links, bool frames, const WorkOptions& work) {
    std::vector<std::string> texts;
    for (const py::object& path : paths) texts.push_back(path_from_python(path));
    serve::ServedOptions served{.io = {.threads = work.threads}, .follow_links = follow_links};
    if (work.max_memory > 0) served.max_memory = work.max_memory;
    const serve::ServerOptions options{
        .bind = bind, .port = port, .token = token, .hosts = hosts, .origins = origins, .frames = frames};
    return Work().run([&](const IoOptions&) { return std::make_unique<ServerHandle>(texts, served, options); });
}

}  // namespace

void bind_servers(py::module_& module) {
    py::class_<ServerHandle>(module, "ServerHandle")
        .def_property_readonly("url", &ServerHandle::url)
        .def_property_readonly("port", &ServerHandle::port)
        .def_property_readonly("closed", &ServerHandle::closed)
        .def("close", &ServerHandle::close);
    module.def("serve", &start, py::arg("paths"), py::arg("port"), py::kw_only(), py::arg("token"), py::arg("hosts"),
               py::arg("origins"), py::arg("bind"), py::arg("follow_links"), py::arg("frames"), py::arg("options"));
}

}  // namespace tessera::python
